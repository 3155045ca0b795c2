"""What a small model on this machine can serve: every purpose by cases, then the whole pipeline once.

    python benchmarks/local_model.py GGUF [--python PYTHON] [--purpose NAME ...] [--no-pipeline] [--tool-rounds 4]

The file is served over the OpenAI protocol on loopback by llama.cpp, as the package `xllamacpp` brings it; PYTHON is an
interpreter that has it. A case is valid when a typed result came (at once, or when asked again with the errors), and
right when it holds what it must and nothing that it must not; no case is an example of a template. The last line is
one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent)]
from brainiac.host.trust import open_namespace

open_namespace()  # `brainiac_plugins`
from brainiac_plugins.promotion.run import promote

from brainiac.brain import Brain
from brainiac.errors import ModelError
from brainiac.formats.prompt import Exchange, Response
from brainiac.llm.schemas import (
    AnswerRequest,
    ConsolidateRequest,
    Existing,
    OrganizeRequest,
    PageName,
    QueriesRequest,
    ReflectRequest,
    Request,
    Result,
    Said,
    SummarizeRequest,
    SynthesizeRequest,
)
from brainiac.pipeline.daemon import answer_one
from tests.support.models import NOW, UUID, event_of, hit_of, make_brain, prompt_of, short_term, write_machine

MODEL = "openai/local"
SERVE = """
import os, sys, time
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel, params.cpuparams.n_threads = sys.argv[1], 12288, 1, int(sys.argv[2])
server = xllamacpp.Server(params)
print("serving", server.listening_address, flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Case:
    """One request and what must come of it.

    Attributes:
        needs: Patterns that the result must hold, as JSON.
        never: Patterns that it must not hold.
    """

    request: Request
    needs: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    def is_right(self, result: Result) -> bool:
        told = result.model_dump_json()
        found = all(re.search(pattern, told, re.IGNORECASE) for pattern in self.needs)
        return found and not any(re.search(pattern, told, re.IGNORECASE) for pattern in self.never)


@dataclass(frozen=True)
class Row:
    """What one case got."""

    purpose: str
    calls: int
    seconds: float
    result: str
    is_valid: bool
    is_right: bool


def cases() -> Iterator[Case]:
    """Return the cases, purpose by purpose."""
    yield from _queries()
    yield from _answers()
    yield from _reflections()
    yield from _consolidations()
    yield from _pages()
    yield from _summaries()
    yield from _proposals()


def _queries() -> Iterator[Case]:
    def ask(text: str, **told: Any) -> QueriesRequest:
        return QueriesRequest(now=NOW, prompt=prompt_of(text), short_term=short_term(**told))

    yield Case(ask("Where did I buy my bicycle?"), ("bicycle|bike",))
    about_mara = [event_of(1, "My sister Mara came for tea.", "How nice.")]
    yield Case(ask("What does she do for a living?", events=about_mara), ("Mara",))
    yield Case(ask("Good night, sleep well!"), (r'"queries":\[\]',))


def _answers() -> Iterator[Case]:
    def ask(text: str, *hits: Any) -> AnswerRequest:
        return AnswerRequest(now=NOW, prompt=prompt_of(text), short_term=short_term(0, facts=(), tasks=()), hits=hits)

    yield Case(ask("Where do I live?", hit_of()), ("Portland", f"uuid:{UUID}1"))
    mara = hit_of("Mara is User's sister.", number=2, path="memory/long_term/concrete/mara.md", title="Mara")
    yield Case(ask("Who is Mara?", hit_of(), mara), ("sister",), (r"text\":\"[^\"]*Portland",))
    yield Case(ask("When does my passport expire?"), (r"\b(?:no|not|nothing|does ?n.t|n.t)\b",), (r"\b20\d\d\b",))
    yield Case(ask("I bought a green kettle yesterday."), ("kettle",))


def _reflections() -> Iterator[Case]:
    def note(user: str, ai: str = "Noted.", **told: Any) -> ReflectRequest:
        response = Response("inbox/q.response.md", ai, "q.md", "p1", "", "2025-09-16T15:30:00Z", "m")
        exchange = Exchange("x1", prompt_of(user), response, "2025-09-16T15:30:00Z")
        return ReflectRequest(now=NOW, exchange=exchange, short_term=short_term(0, **told))

    yield Case(
        note("I live in Portland with my sister Mara."), (r'"facts":\["[^]]*Portland[^]]*Mara|Mara[^]]*Portland',)
    )
    yield Case(note("Remind me to call the plumber on Friday."), (r'"tasks":\[[^]]*plumber',))
    yield Case(note("I bought the milk."), (r'"done":\[[^]]*milk',))
    yield Case(note("What did I say about the boiler?", "That it drips."), (r'"facts":\[\]', r'"tasks":\[\]'))
    yield Case(note("We decided to paint the kitchen yellow."), (r'"(?:decisions|facts)":\[[^]]*yellow',))


def _consolidations() -> Iterator[Case]:
    path = "memory/long_term/concrete/user.md"

    def join(said: str, *known: str) -> ConsolidateRequest:
        existing = [Existing(f"s{number}", text, path, "User") for number, text in enumerate(known, 1)]
        pages = [PageName(path, ("User",))] if known else []
        exchanges = [Said("e1", event_of(1, said, "Noted."))]
        return ConsolidateRequest(now=NOW, said=exchanges, short_term=short_term(0), existing=existing, pages=pages)

    yield Case(join("I live in Portland."), ('"new"', "Portland", '"e1"'))
    yield Case(join("Hello, how are you?"), (r'"operations":\[\]',))
    yield Case(join("Yesterday I met Ines in Leith. I never eat nuts."), ("Ines", "nuts"))
    yield Case(
        join("To descale the kettle, boil vinegar in it, wait an hour and rinse."), ("skill", "vinegar", "rinse")
    )
    yield Case(join("I have played chess since 2015.", "User plays chess"), ('"replace"', '"s1"', "2015"))
    yield Case(join("I play chess.", "User plays chess", "User lives in Portland"), ('"same"', '"s1"'))
    yield Case(join("I teach physics.", "User has a garden in Leith"), ('"new"', "physics"))
    yield Case(join("I do not drink coffee any more.", "User drinks coffee every morning"), ('"end"|"replace"', '"s1"'))
    moved = join("I moved to Seattle.", "User lives in Dallas and works at Boeing", "User likes jazz")
    yield Case(moved, ('"replace"|"end"', '"s1"', "Seattle"))
    yield Case(join("I have a dog named Rex."), ('"new"', "Rex"))


def _pages() -> Iterator[Case]:

    def name(statement: str, kind: Any = "concrete", steps: tuple[str, ...] = ()) -> SynthesizeRequest:
        candidates = [Existing("n1", statement)]
        return SynthesizeRequest(now=NOW, kind=kind, title="", candidates=candidates, steps=steps)

    yield Case(name("User's cousin Priya is a vet in Turin"), ('"concrete"', "Priya"))
    steps = ("Soak the stone", "Stroke at 20 degrees", "Strop")
    yield Case(name("How to sharpen a knife", "skill", steps), ('"skill"', "[Kk]nife", "Strop"))
    yield Case(name("The kitchen of User's flat is yellow"), ('"concrete"', "[Kk]itchen|home|flat"))


def _summaries() -> Iterator[Case]:
    examples = "Bergmann|Gotland|recipe"  # of the template: nothing of them may come back
    boiler = event_of(1, "The boiler drips, Henning looks at it on Thursday.", "Noted.")
    course = event_of(2, "I signed up for the pottery course in October.", "Noted.")
    yield Case(SummarizeRequest(now=NOW, remaining=[boiler, course]), ("boiler", "Henning", "pottery"), (examples,))
    yield Case(SummarizeRequest(now=NOW, remaining=[boiler], archived=[course]), ("boiler",), (examples,))
    yield Case(SummarizeRequest(now=NOW, remaining=[], archived=[course]), ("pottery",), (examples, "boiler"))


def _proposals() -> Iterator[Case]:
    pair = ["memory/long_term/concrete/portland.md", "memory/long_term/concrete/mara.md"]
    structure = {"memory/long_term/concrete": 2, "memory/long_term/events": 40}
    co = OrganizeRequest(now=NOW, patterns={"co_accessed": [{"paths": pair, "cited": 12}]}, structure=structure)
    yield Case(co, ('"link"', "portland", "mara"), ('"archive"',))
    unused = {"unused": [{"path": pair[0], "last_used": "2024-01-01"}]}
    yield Case(OrganizeRequest(now=NOW, patterns=unused, structure=structure), ('"archive"', "portland"), ("mara",))
    yield Case(OrganizeRequest(now=NOW, patterns={}, structure=structure), (r'"proposals":\[\]',))


def measure(brain: Brain, case: Case) -> Row:
    """Make one request and tell what came of it."""
    before = _calls(brain)
    started = time.monotonic()
    try:
        result = brain.models.run(case.request)
        told, is_valid, is_right = result.model_dump_json(), True, case.is_right(result)
    except ModelError as error:
        told, is_valid, is_right = str(error), False, False
    calls = _calls(brain) - before
    return Row(str(case.request.purpose), calls, time.monotonic() - started, told, is_valid, is_right)


def _calls(brain: Brain) -> int:
    return sum(1 for _ in brain.journal.events(kinds={"model-called"}))


SAID = (
    "I live in Portland with my sister Mara. Remind me to call the plumber on Friday.",
    "I play the cello since 2011 and I am allergic to nuts.",
    "Where do I live, and with whom?",
)


def pipeline(brain: Brain) -> dict[str, Any]:
    """Answer and reflect some prompts and promote them; return how it went."""
    started, answers = time.monotonic(), []
    for number, text in enumerate(SAID):
        (brain.tree.inbox / f"said{number}.md").write_text(text)
        try:
            path = answer_one(brain, f"inbox/said{number}.md")
            answers.append(path.read_text().split("---\n", 2)[-1].strip())
        except ModelError as error:
            answers.append(f"failed: {error}")
    outcome = promote(brain)
    kept = [path.relative_to(brain.root).as_posix() for path in brain.tree.long_term.rglob("*.md")]
    return {
        "answers": answers,
        "short_term": (brain.read_text("memory/short_term.md") or "")[:1500],
        "statements": outcome.statements,
        "left": len(outcome.left),
        "refused": len(outcome.refused),
        "problem": outcome.problem,
        "pages": sorted(path for path in kept if not path.endswith("_index.md")),
        "seconds": round(time.monotonic() - started),
    }


@contextmanager
def served(python: str, gguf: Path, threads: int) -> Iterator[str]:
    """Serve a model on loopback; yield its address."""
    command = [python, "-c", SERVE, str(gguf), str(threads)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        line = next((line for line in process.stdout if line.startswith("serving ")), "")
        if not line:
            sys.exit(f"{python} could not serve {gguf}; it needs the package xllamacpp")
        try:
            yield line.split()[1] + "/v1"
        finally:
            process.kill()


def run(brain: Brain, wanted: Callable[[str], bool]) -> list[Row]:
    """Measure the cases, printing each."""
    rows = []
    for case in cases():
        if wanted(str(case.request.purpose)):
            rows.append(row := measure(brain, case))
            mark = "right" if row.is_right else "valid" if row.is_valid else "INVALID"
            print(f"{row.purpose:11}{mark:8}{row.seconds:6.1f} s {row.calls} calls  {row.result[:400]}", flush=True)
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--purpose", action="append", default=[])
    parser.add_argument("--no-pipeline", action="store_true")
    parser.add_argument("--tool-rounds", type=int, default=4, help="as the setting context.tool_rounds")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory() as folder,
        served(options.python, options.gguf, options.threads) as url,
    ):
        for name in ("STATE", "CACHE", "CONFIG"):
            os.environ[f"XDG_{name}_HOME"] = f"{folder}/{name.lower()}"
        settings = {"llm": {"model": MODEL, "timeout_seconds": 600}, "context": {"tool_rounds": options.tool_rounds}}
        brain = make_brain(Path(folder) / "brain", settings)
        write_machine(brain, {"api_bases": {"openai": url}})
        rows = run(brain, lambda purpose: not options.purpose or purpose in options.purpose)
        went = {} if options.no_pipeline else pipeline(brain)
        brain.close()
    _print(rows, went)


def _print(rows: Sequence[Row], went: dict[str, Any]) -> None:
    purposes = list(dict.fromkeys(row.purpose for row in rows))
    print(f"\n{'purpose':11}{'cases':>6}{'valid':>6}{'at once':>8}{'right':>6}{'s a call':>9}")
    told = {}
    for purpose in purposes:
        some = [row for row in rows if row.purpose == purpose]
        calls = max(1, sum(row.calls for row in some))
        told[purpose] = {
            "cases": len(some),
            "valid": sum(row.is_valid for row in some),
            "at_once": sum(row.is_valid and row.calls <= 1 for row in some),
            "right": sum(row.is_right for row in some),
            "seconds_a_call": round(sum(row.seconds for row in some) / calls, 1),
        }
        print(
            f"{purpose:11}" + "".join(f"{v:{w}}" for v, w in zip(told[purpose].values(), (6, 6, 8, 6, 9), strict=True))
        )
    for name, value in went.items():
        print(f"{name}: {value}")
    print(json.dumps({"purposes": told, "pipeline": went}))


if __name__ == "__main__":
    main()
