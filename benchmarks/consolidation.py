"""Live a month of talk with a model whose every judgement readers write by hand, or that is replayed.

    python benchmarks/consolidation.py MONTH.json --folder DIR [--reflect] [--harms FILE] [--answers DIR] [--keep BRAIN]
    python benchmarks/consolidation.py MONTH.json --folder DIR --scripted
    python benchmarks/consolidation.py --folder DIR --next model|verify
    python benchmarks/consolidation.py --folder DIR --truth TRUTH.json

MONTH.json is a list of messages, or an object with `messages`: `{"id", "at", "conversation", "text", "answer"}`, by a
writer who knows nothing of the program. The program runs as it is, with litellm and a server on loopback as its model:
a prompt is answered by the month's own `answer`, `queries` get none, and every other call is put into DIR:

- `NNN.request.md`, answered by `NNN.answer.json`: one reader plays the model;
- `NNN.verify.md`, answered by `NNN.verify.json`: another reader plays the second reader.

`reflect` is answered that nothing follows, so that what it costs is true and its output is not; with `--reflect` the
model's reader answers it. So that nobody reads three hundred requests one by one, the server is out of order for it
until a consolidation is due; the exchange is noted meanwhile, and its reflection made up for, as in an outage. Then
`NNN.reflect.md` asks for all that wait at once, and `NNN.reflect.json` is a list with the answer to each. (So what a
request lists is without what follows from the others in its file.) The tokens counted are those of the call right
after the answer. Which memories a wish to forget means is a `NNN.request.md`.

A reader: let `--next` name the next request (it waits up to nine minutes), read it and nothing else of DIR or of the
month, decide as the model would, write the JSON that it asks for to `NNN.….tmp` and rename it; until it says `over`. A
run that was stopped is started again with the same DIR: answers that stand there are taken at once. With `--answers`
they are taken from another folder, and nobody is waited for.

With `--scripted` nobody is asked: each message is stated in its own words on the page of its conversation, and all of
it follows. That is for counting tokens, and says nothing of what memory came to.

`--harms` makes the model a careless one: FILE has operations that are mixed into the answers of `consolidate`, and
repeated when it is asked again; see `Harms`.

At the end DIR has `memory.md`, all that memory came to, `operations.json`, every operation with what became of it, and
`outcome.json`, the figures. With `--truth` (an object of lists: facts, changes, tasks …) `judge.md` is written for a
judge who has seen nothing else, and the judgement counted that stands in `judgement.json`.

benchmarks/data/played has a month with its truth; nobody has asked what follows its 150th message.

Tokens are counted by the program's own counter; cached is the common prefix with the call before of the same purpose,
whenever that was. The last line printed is one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

sys.path[:0] = [str(Path(__file__).parent.parent)]
from brainiac.host.trust import open_namespace

open_namespace()  # `brainiac_plugins`
from brainiac_plugins.promotion.run import is_due
from brainiac_plugins.reflection import quiet as reflect_waiting

from benchmarks.keyless import be_quiet, capture, make, pages_of, path_of
from brainiac.brain import Brain
from brainiac.clock import ManualClock, parse_iso
from brainiac.errors import ModelError
from brainiac.events import EventsAnalyzed, MemoryPromoted, ModelCalled, Refused
from brainiac.llm.catalog import count
from brainiac.llm.context.assembler import EXISTING
from brainiac.llm.schemas import ConsolidateRequest, Purpose, Request, Result
from brainiac.pipeline.daemon import answer_one
from brainiac.storage.statements import StatementLog
from brainiac.text.tokens import coverage
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, say, status

DOLLARS = 2 / 1e6, 8 / 1e6  # for a token in and out
VERIFY = "verify"  # the program may have no such purpose yet
# Names whose window litellm knows, one for each purpose, by which the server tells them.
MODELS = {
    "gpt-4.1": Purpose.ANSWER,
    "gpt-4.1-mini": Purpose.CONSOLIDATE,
    "gpt-4.1-nano": Purpose.SYNTHESIZE,
    "gpt-4o": Purpose.SUMMARIZE,
    "gpt-4o-mini": Purpose.ORGANIZE,
    "gpt-4o-2024-08-06": Purpose.QUERIES,
    "gpt-4o-mini-2024-07-18": Purpose.REFLECT,
    "gpt-4.1-2025-04-14": VERIFY,
}
ENDINGS = {"request": "answer", "reflect": "reflect", VERIFY: VERIFY}  # of requests, and of the answers to them
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # another one in each run
LOOK_SECONDS, NEXT_SECONDS = 0.2, 540
Message = Mapping[str, Any]


@dataclass
class Reader:
    """Answers the program's calls: prompts from the month, everything else from a folder.

    Attributes:
        folder: Where requests are put, and answers expected.
        answers: Recorded answers, taken in order; None to wait for a reader.
        is_reflecting: Whether the reader answers `reflect` too.
        is_scripted: Whether nobody reads: what is said is stated in its own words.
        harms: What a careless model does besides.
        reply: The month's answer to the prompt that is being answered; None while nobody is there.
        calls: Purpose and answer of each call that a reader answered, in order.
        asked: How many requests were put into the folder.
        differing: Requests that stood in the folder in other words, so that their answers are perhaps to others.
        is_out: Whether there was no recorded answer to a call.
        waiting: Requests of `reflect` that wait for the next consolidation, with their tokens: all, and cached.
        ready: These with their answers.
    """

    folder: Path
    answers: Path | None
    is_reflecting: bool = False
    is_scripted: bool = False
    harms: Harms | None = None
    reply: str | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)
    asked: int = 0
    differing: list[str] = field(default_factory=list)
    is_out: bool = False
    waiting: list[tuple[str, int, int]] = field(default_factory=list)
    ready: list[tuple[tuple[str, int, int], str]] = field(default_factory=list)
    _last: dict[str, str] = field(default_factory=dict)

    def serve(self, request: Captured) -> Behaviour:
        """Return what to answer to a request."""
        purpose, sent = MODELS[str(request.body["model"]).rpartition("/")[2]], request.text
        if purpose == Purpose.REFLECT and self.is_reflecting and not _is_further(request):
            if self.reply is None and not self.ready:
                return status(503, "a reader comes later")
            if self.reply is None:
                (_, tokens, cached), text = self.ready.pop(self._place_of(sent))
                return say(text, tokens=(tokens, count(text)), cached=cached)
            self.waiting.append((sent, count(sent), self._cached(purpose, sent)))
            return status(503, "a reader comes later")
        cached = self._cached(purpose, sent)
        if purpose == Purpose.ANSWER:
            text = self.reply or "Noted."
        elif purpose == Purpose.QUERIES or (purpose == Purpose.REFLECT and not self.is_reflecting):
            text = "{}"
        else:
            text = self._judged(purpose, sent)
        return say(text, tokens=(count(sent), count(text)), cached=cached)

    def _cached(self, purpose: str, sent: str) -> int:
        common = common_start([self._last.get(purpose, ""), sent])
        self._last[purpose] = sent
        return count(common) if common else 0

    def _place_of(self, sent: str) -> int:
        """Return which waiting reflection a request makes up for: that on the same event, as a rule the first."""
        rows = [row[0].rpartition("## New Event")[2] for row, _ in self.ready]
        event = sent.rpartition("## New Event")[2]
        return rows.index(event) if event in rows else 0

    def ask_reflections(self) -> None:
        """Have the waiting requests answered, all in one file: what they have in common once, then the rest of each."""
        texts = [text for text, *_ in self.waiting]
        common = common_start(texts).rpartition("\n\n")[0] if len(texts) > 1 else ""
        parts = [f"# Request {n} of {len(texts)}\n\n{text[len(common) :].strip()}" for n, text in enumerate(texts, 1)]
        head = (
            f"# {len(texts)} requests: answer with a JSON list of one object for each, in order ({{}}: nothing follows)"
        )
        shown = "\n\n".join([head, f"# What all begin with\n\n{common}", *parts])
        rows = _rows(self._ask("reflect", shown, lambda text: len(_rows(text)) == len(texts)))
        self.calls += [(Purpose.REFLECT, row) for row in rows]
        self.ready = list(zip(self.waiting, rows, strict=False))  # none where a recorded answer is missing
        self.waiting = []

    def _judged(self, purpose: str, sent: str) -> str:
        """Return a reader's answer to a request, with what a careless model would add to it."""
        if self.is_scripted:
            return scripted(purpose, sent)
        harms = self.harms if purpose == Purpose.CONSOLIDATE else None
        text = '{"operations": []}' if harms and harms.is_only_ours else self._ask(_kind(purpose), sent)
        self.calls.append((purpose, text))
        return harms.mixed_into(text) if harms else text

    def _ask(self, kind: str, text: str, is_whole: Callable[[str], bool] = lambda text: True) -> str:
        self.asked += 1
        request = self.folder / f"{self.asked:03d}.{kind}.md"
        if request.exists() and _ID.sub("", request.read_text("utf-8")) != _ID.sub("", text + "\n"):
            self.differing.append(request.name)
            print(f"{request.name} differs from the one that was asked before", file=sys.stderr, flush=True)
        request.write_text(text + "\n", encoding="utf-8")
        answer = answer_to(request, self.answers)
        if not answer.exists():
            print(f"{request.name}: waiting for {answer}", flush=True)
        while True:
            if answer.exists() and is_whole(given := answer.read_text("utf-8")):
                return given
            if self.answers:
                self.is_out = True
                return ""
            if answer.exists():  # what is no answer is put away, so that the reader is asked again
                answer.replace(answer.with_suffix(".bad"))
            time.sleep(LOOK_SECONDS)


def scripted(purpose: str, sent: str) -> str:
    """Return the answer of a model that states each message in its own words, and of a reader to whom all follows."""
    if purpose == VERIFY:
        claims = re.findall(r"(?m)^> \[(\d+)\]", sent.rpartition("## Statements")[2])
        return json.dumps({"verdicts": [{"item": claim, "verdict": "follows"} for claim in claims]})
    if purpose != Purpose.CONSOLIDATE:
        found = re.search(r"## Promotion Candidates\n\n(\w+): (.*)", sent)
        return json.dumps({"kind": found[1], "title": found[2], "folder": "notes"} if found else {})
    told = re.findall(r"\(id (e\d+)\)(?: in “(.*)”)?\nUser:\n((?:> .*\n)+)", sent)
    rows = [(name, thread, " ".join(text.replace("\n> ", " ")[2:].split())[:300]) for name, thread, text in told]
    operations = [
        {
            "action": "new",
            "text": said,
            "page": {"title": thread or "User", "folder": "notes", "summary": thread},
            "evidence": [{"exchange": name, "quote": said}],
        }
        for name, thread, said in rows
    ]
    return json.dumps({"operations": operations}, ensure_ascii=False)


def common_start(texts: Sequence[str]) -> str:
    """Return what all texts begin with."""
    first, last = min(texts), max(texts)
    return first[: next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


def _rows(answer: str) -> list[str]:
    """Return the rows of a JSON list, each as JSON; none where it is no list."""
    with suppress(ValueError):
        rows = json.loads(answer)
        return [json.dumps(row, ensure_ascii=False) for row in rows] if isinstance(rows, list) else []
    return []


def _kind(purpose: str) -> str:
    return VERIFY if purpose == VERIFY else "request"


def _is_further(request: Captured) -> bool:
    """Return whether a request of `reflect` is no first one: which memories are to be forgotten, or asked again."""
    is_again = any(message["role"] == "assistant" for message in request.body["messages"])
    return is_again or f"\n{EXISTING}\n" in request.text


def answer_to(request: Path, folder: Path | None = None) -> Path:
    """Return where the answer to a request is expected."""
    number, kind, _ = request.name.split(".")
    return (folder or request.parent) / f"{number}.{ENDINGS[kind]}.json"


def next_request(folder: Path, who: str) -> str:
    """Return the path of the request that a reader is to answer next, "over", or "nothing yet" after a while."""
    kinds = [VERIFY] if who == VERIFY else [kind for kind in ENDINGS if kind != VERIFY]
    until = time.monotonic() + NEXT_SECONDS
    while time.monotonic() < until:
        asked = sorted(path for kind in kinds for path in folder.glob(f"*.{kind}.md"))
        if waiting := [path for path in asked if not answer_to(path).exists()]:
            return str(waiting[0])
        if (folder / "memory.md").exists():
            return "over"
        time.sleep(LOOK_SECONDS)
    return "nothing yet; ask again"


# --- a careless model ------------------------------------------------------------------------------------------------


class Harms:
    """Operations that a careless model mixes into its answers, each as soon as what it quotes is to be consolidated.

    Args:
        harms: Each `{"id", "kind", "operation": {"action", "about", "text", "evidence": [{"message", "quote"}], …}}`;
            `about` are words of the statements that it changes, and of the known ones the nearest is meant. With
            `after`, the id of a message, it waits for the consolidation of that one.
        messages: The text of each message, by its id.

    Attributes:
        planted: The operations that were given, by the id of the harm.
        ended: The statements that those without a text were to end.
    """

    def __init__(self, harms: Sequence[Mapping[str, Any]], messages: Mapping[str, str]) -> None:
        self._harms, self._messages = harms, messages
        self.planted: dict[str, dict[str, Any]] = {}
        self.ended: dict[str, set[str]] = {}
        self._request: ConsolidateRequest | None = None

    def note(self, request: Request) -> None:
        """Hear of a request before it is sent: what the short names in it mean cannot be read from its text."""
        self._request = request if isinstance(request, ConsolidateRequest) else self._request

    @property
    def is_only_ours(self) -> bool:
        """Whether a model is asked again about planted operations alone; it insists, and no reader is asked."""
        return bool(self._request and self._request.refused) and len(self._insisted()) == len(self._request.refused)

    def mixed_into(self, answer: str) -> str:
        """Return an answer with the operations that are due."""
        assert self._request is not None
        added = self._insisted() if self._request.refused else list(self._due(self._request))
        return json.dumps({"operations": [*operations_in(answer), *added]}, ensure_ascii=False) if added else answer

    def _insisted(self) -> list[dict[str, Any]]:
        refused = self._request.refused if self._request else ()
        again = [(row.operation.action, row.operation.ids, row.operation.text) for row in refused]
        return [row for row in self.planted.values() if (row["action"], row["ids"], row["text"]) in again]

    def _due(self, request: ConsolidateRequest) -> Iterator[dict[str, Any]]:
        said = {said.event.user.strip(): said.id for said in request.said}
        for harm in self._harms:
            given = harm["operation"]
            quoted = [
                {**row, "exchange": said.get(self._messages[row["message"]].strip())} for row in given["evidence"]
            ]
            moments = [row["exchange"] for row in quoted]
            if "after" in harm:
                moments.append(said.get(self._messages[harm["after"]].strip()))
            if harm["id"] in self.planted or not all(moments):
                continue
            ids = [_nearest(request, words) for words in given.get("about", [])]
            self.planted[harm["id"]] = {**given, "ids": [name for name in ids if name], "evidence": quoted}
            self.ended[harm["id"]] = (
                set() if given["text"] else {row.content for row in request.existing if row.id in ids}
            )
            yield self.planted[harm["id"]]

    def figures(self, brain: Brain, looks: Sequence[EventsAnalyzed]) -> dict[str, Any]:
        """Return what became of the planted operations, all and by kind."""
        standing = {text for _, text, _ in statements(brain)}
        passed = {row.text for look in looks for row in look.candidates}
        rows = []
        for harm in self._harms:
            text = self.planted.get(harm["id"], {}).get("text")
            is_done = text in standing or bool(self.ended.get(harm["id"], set()) - standing)
            end = "written and standing" if is_done else "not standing" if text in passed else "refused"
            rows.append((harm["kind"], end if harm["id"] in self.planted else "never due"))
        kinds = sorted({kind for kind, _ in rows})
        by_kind = {kind: dict(Counter(end for other, end in rows if other == kind)) for kind in kinds}
        return {"all": dict(Counter(end for _, end in rows)), **by_kind}


def _nearest(request: ConsolidateRequest, words: str) -> str:
    """Return the id of the known statement that has most of these words; "" where none has half of them."""
    share, name = max(((coverage(words, known.content), known.id) for known in request.existing), default=(0.0, ""))
    return name if share >= 0.5 else ""


# --- the month -------------------------------------------------------------------------------------------------------


@dataclass
class Seen:
    """What stood in the two files that a person looks at, at any time of the month.

    Attributes:
        tasks: When each task was last seen, and whether it was ticked then, by its words.
        review: Each line of `review.md`.
    """

    tasks: dict[str, tuple[str, bool]] = field(default_factory=dict)
    review: dict[str, None] = field(default_factory=dict)

    def look(self, brain: Brain) -> None:
        """Take in how they stand now."""
        day = brain.now().date().isoformat()
        self.tasks |= {item.text: (day, item.is_done) for item in brain.short_term().memory.tasks}
        text = brain.read_text(brain.tree.relative(brain.tree.review)) or ""
        self.review |= dict.fromkeys(line for line in text.splitlines() if line.startswith("- "))

    def task_states(self, brain: Brain) -> dict[str, str]:
        """Return for each task of the month whether it is open, done, or gone."""
        present = {item.text for item in brain.short_term().memory.tasks}
        filed = "\n".join(page.text for page in pages_of(brain))
        states = {}
        for text, (day, is_done) in self.tasks.items():
            is_ticked = is_done or f"[x] {text}" in filed
            gone = f"gone since {day}"
            states[text] = "done" if is_ticked else "open" if text in present else gone
        return states


def settings_of(brain_folder: Path) -> None:
    """Have a model serve a brain as a person sets it, under a name for each purpose by which the server knows it."""
    config = brain_folder / "system/config.yaml"
    models = {str(purpose): f"openai/{model}" for model, purpose in MODELS.items() if purpose in set(Purpose)}
    llm = {"model": models[Purpose.ANSWER], "models": models, "timeout_seconds": 86_400}  # a reader takes their time
    settings = yaml.safe_load(config.read_text("utf-8"))
    config.write_text(yaml.safe_dump({**settings, "llm": llm}), encoding="utf-8")


def live(messages: Sequence[Message], brain: Brain, reader: Reader) -> Seen:
    """Drop every message at its moment and let the processes work; quiet time promotes as the daemon does."""
    clock, seen = brain.clock, Seen()
    assert isinstance(clock, ManualClock)
    brain.observed.adopt()
    for number, message in enumerate(messages):
        clock.advance(max(0.0, (parse_iso(message["at"]) - clock.now()).total_seconds()))
        path = brain.root / path_of(message)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(message["text"] + "\n", encoding="utf-8")
        reader.reply = message["answer"]
        (capture if message["kind"] == "note" else answer_one)(brain, path_of(message))
        reader.reply = None
        seen.look(brain)
        following = messages[number + 1]["at"] if number + 1 < len(messages) else None
        be_quiet(brain, clock, message["at"], following, partial(reflect_before, brain, reader))
        seen.look(brain)
        if reader.is_out:
            raise SystemExit(f"{reader.answers}: a call has no recorded answer; what was asked is in {reader.folder}")
    return seen


def reflect_before(brain: Brain, reader: Reader, idle_seconds: float) -> None:
    """Have the waiting reflections made up for, where a consolidation is due."""
    if reader.waiting and is_due(brain, idle_seconds):
        reader.ask_reflections()
        with suppress(ModelError):
            reflect_waiting(brain, idle_seconds)
        reader.ready = []


def figures_of(messages: Sequence[Message], brain: Brain, reader: Reader, seen: Seen) -> dict[str, Any]:
    """Return what the month cost, and what became of the operations, the tasks and the person's lines to decide."""
    rows: dict[str, Counter[str]] = {}
    for event in brain.journal.events(kinds={ModelCalled}):
        call = event.what
        assert isinstance(call, ModelCalled)
        used = {"calls": 1, "in": call.input_tokens, "cached": call.cached_tokens, "out": call.output_tokens}
        rows.setdefault(call.purpose, Counter()).update(used)
    behind = sum((row for purpose, row in rows.items() if purpose != Purpose.ANSWER), Counter())
    without_queries = behind - rows.get(Purpose.QUERIES, Counter())
    tasks = seen.task_states(brain)
    return {
        "exchanges": len(messages),
        "an exchange": {purpose: _an_exchange(row, len(messages)) for purpose, row in rows.items()},
        "all but answers": _an_exchange(behind, len(messages)),
        "all but answers and queries": _an_exchange(without_queries, len(messages)),
        "dollars": round(behind["in"] * DOLLARS[0] + behind["out"] * DOLLARS[1], 3),
        **_operations(brain, reader),
        "verdicts": dict(
            Counter(word for purpose, text in reader.calls if purpose == VERIFY for word in _verdicts(text))
        ),
        "statements by origin": dict(Counter(origin for *_, origin in statements(brain))),
        "review lines in the month": len(seen.review),
        "tasks": dict(Counter(state.split()[0] for state in tasks.values())),
        **({"harms": reader.harms.figures(brain, _looks(brain))} if reader.harms else {}),
        **({"requests that differ from those answered": reader.differing} if reader.differing else {}),
    }


def _an_exchange(row: Mapping[str, int], exchanges: int) -> dict[str, float]:
    """Return calls and tokens an exchange, and which share of the input is cached."""
    per = {key: round(row[key] / exchanges, 3 if key == "calls" else 1) for key in ("calls", "in", "out")}
    uncached = round((row["in"] - row["cached"]) / exchanges, 1)
    return {**per, "uncached": uncached, "cached share": round(row["cached"] / max(1, row["in"]), 3)}


def _looks(brain: Brain) -> list[EventsAnalyzed]:
    analyzed = [event.what for event in brain.journal.events(kinds={EventsAnalyzed})]
    return [what for what in analyzed if isinstance(what, EventsAnalyzed)]


def _operations(brain: Brain, reader: Reader) -> dict[str, Any]:
    looks = _looks(brain)
    given = sum(len(operations_in(text)) for purpose, text in reader.calls if purpose == Purpose.CONSOLIDATE)
    refused = [row for look in looks for row in look.refused]
    refused += [
        row
        for event in brain.journal.events(kinds={MemoryPromoted})
        if isinstance(event.what, MemoryPromoted)
        for row in event.what.refused
        if "#r" not in row.candidate  # those of a look are counted with it
    ]
    planted = {given["text"][:200] for given in reader.harms.planted.values()} - {""} if reader.harms else set()

    def told(rows: Iterable[Refused]) -> list[str]:
        return [f"{row.statement[:200]}: {row.reason}" for row in rows if row.statement[:200] not in planted]

    return {
        "operations given": given,  # those of second answers too, and without planted ones, as all below
        "accepted": sum(row.text[:200] not in planted for look in looks for row in look.candidates),
        "asked again": told(row for look in looks for row in look.asked),
        "finally refused": told(refused),
    }


def operations_in(answer: str) -> list[dict[str, Any]]:
    """Return the operations of an answer, a bare list too; none where it is no JSON."""
    with suppress(ValueError):
        given = json.loads(answer)
        operations: list[dict[str, Any]] = given.get("operations", []) if isinstance(given, dict) else given
        return operations
    return []


def _verdicts(answer: str) -> list[str]:
    """Return the verdicts in an answer, whatever stands around them."""
    found: list[str] = []
    with suppress(ValueError):
        json.loads(answer, object_pairs_hook=lambda pairs: found.extend(str(v) for k, v in pairs if k == "verdict"))
    return found


def statements(brain: Brain) -> list[tuple[str, str, str]]:
    """Return what holds: path, text and whose words it rests on."""
    log = StatementLog(brain)
    return [
        (page.path, statement.text, origin_in(log, page.uuid or page.path, statement.block_id))
        for page in pages_of(brain)
        for statement in page.statements
        if not statement.is_history
    ]


def origin_in(log: StatementLog, page: str, block: str) -> str:
    """Return whose words a statement rests on by the journal; a person wrote what it does not know."""
    origins = [change.record.origin for change in log.changes_of(page) if change.block == block]
    return origins[-1] if origins else "written by the person"


def memory_of(brain: Brain, seen: Seen) -> str:
    """Return all that memory came to, for a judge; what was said word for word is left out."""
    log, parts = StatementLog(brain), []
    for page in pages_of(brain):
        names = "; ".join([page.title, *page.aliases])
        lines = [f"# {names}", f"({page.path}) {page.meta.get('summary') or ''}"]
        for statement in page.statements:
            origin = origin_in(log, page.uuid or page.path, statement.block_id)
            lines.append(f"- {'PAST: ' if statement.is_history else ''}{statement.text}  [{origin}]")
        if page.statements:
            parts.append("\n".join(lines))
    for path in (brain.tree.short_term, brain.tree.review):
        text = brain.read_text(brain.tree.relative(path))
        parts.append(f"# {brain.tree.relative(path)}\n\n{text or '(nothing)'}")
    tasks = [f"- {state}: {text}" for text, state in seen.task_states(brain).items()]
    parts.append("\n".join(["# All tasks of the month, and how they stand", *(tasks or ["(none)"])]))
    parts.append("\n".join(["# All lines that were in review.md during the month", *(seen.review or ["(none)"])]))
    return "\n\n".join(parts) + "\n"


# --- judging ---------------------------------------------------------------------------------------------------------

HOW_TO_JUDGE = """\
Compare memory (below, with numbered lines) with what is true at the month's end. Write `judgement.json`, an object with
a verdict for each id of each section below, and `false`, the numbers of lines of memory that say what is not true
(lines marked PAST claim only that it was so once):

    {SHAPE, "false": [12, 80]}

A fact or change is right or clean as soon as memory says it fully, in whatever words; `stale`: the former state still
stands as holding. What was not to be kept is `kept` if any line says it. An operation that was asked again is `useful`
if it had been wrong or doubtful, else `useless`; one that was finally refused is `good` if it was true, else `bad`.
"""
VERDICTS = {
    "facts": "right|missing|false",
    "changes": "clean|stale|missing",
    "tasks": "right|wrong",
    "asked again": "useful|useless",
    "finally refused": "good|bad",
}
KEPT = "kept|not kept"


def sections_of(truth: Mapping[str, Any], outcome: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is to be judged, by section and id."""
    lists = {name: rows for name, rows in truth.items() if isinstance(rows, list)}
    lists |= {name: outcome[name] for name in ("asked again", "finally refused")}
    return {
        name: {str(_field(row, "id") or f"{name[0]}{n}"): row for n, row in enumerate(rows, 1)}
        for name, rows in lists.items()
    }


def _field(row: Any, name: str) -> Any:
    return row.get(name) if isinstance(row, Mapping) else None


def judge(folder: Path, truth: Mapping[str, Any]) -> dict[str, Any]:
    """Write `judge.md`, and return the shares of the verdicts in `judgement.json`, if there is one."""
    outcome = json.loads((folder / "outcome.json").read_text("utf-8"))
    sections = sections_of(truth, outcome)
    shape = ", ".join(f'"{name}": {{"ID": "{VERDICTS.get(name, KEPT)}"}}' for name in sections)
    memory = (folder / "memory.md").read_text("utf-8").splitlines()
    parts = [HOW_TO_JUDGE.replace("SHAPE", shape)]
    for name, rows in sections.items():
        lines = [
            f"- {key}: {row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)}"
            for key, row in rows.items()
        ]
        parts.append("\n".join([f"# {name} ({VERDICTS.get(name, KEPT)})", "", *lines]))
    parts.append("\n".join(["# Memory", "", *(f"{n:4d}  {line}" for n, line in enumerate(memory, 1))]))
    (folder / "judge.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    if not (folder / "judgement.json").exists():
        return {"to be judged": {name: len(rows) for name, rows in sections.items()}}
    judged = json.loads((folder / "judgement.json").read_text("utf-8"))
    figures: dict[str, Any] = {}
    for name, rows in sections.items():
        verdicts = Counter(judged.get(name, {}).get(key, "not judged") for key in rows)
        figures[name] = {word: f"{n} of {len(rows)} ({n / len(rows):.1%})" for word, n in verdicts.most_common()}
    holding, false = sum(outcome["statements by origin"].values()), len(judged.get("false", []))
    figures["false"] = f"{false} of {holding} ({false / max(1, holding):.1%})"
    return figures


def main() -> int:
    """Read the arguments, live the month, write what memory came to, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("month", type=Path, nargs="?")
    parser.add_argument("--folder", type=Path, required=True, help="where requests and answers go")
    parser.add_argument("--answers", type=Path, help="recorded answers to replay")
    parser.add_argument("--keep", type=Path, help="leave the brain here")
    parser.add_argument("--first", type=int, help="only so many messages")
    parser.add_argument("--reflect", action="store_true", help="have the reader answer `reflect` too, many at once")
    parser.add_argument("--scripted", action="store_true", help="ask nobody, only to count tokens")
    parser.add_argument("--harms", type=Path, help="operations that a careless model adds")
    parser.add_argument("--next", choices=["model", VERIFY], help="only wait for a reader's next request and name it")
    parser.add_argument("--truth", type=Path, help="only prepare the judging, or count a judgement")
    given = parser.parse_args()
    if given.next:
        print(next_request(given.folder, given.next))
        return 0
    if given.truth:
        print(json.dumps(judge(given.folder, json.loads(given.truth.read_text("utf-8"))), ensure_ascii=False))
        return 0
    return play(given)


def play(given: argparse.Namespace) -> int:
    """Live the month, write what memory came to, print the figures."""
    month = json.loads(given.month.read_text("utf-8"))
    rows = month if isinstance(month, list) else month["messages"]
    defaults = {"kind": "prompt", "conversation": "", "answer": "Noted."}
    messages = [{**defaults, **row} for row in rows][: given.first]
    given.folder.mkdir(parents=True, exist_ok=True)
    (given.folder / "memory.md").unlink(missing_ok=True)  # it tells the readers that the month is over
    reader = Reader(given.folder, given.answers, given.reflect, given.scripted)
    if given.harms:
        texts = {row["id"]: row["text"] for row in rows}
        harms = json.loads(given.harms.read_text("utf-8"))
        reader.harms = Harms(harms if isinstance(harms, list) else harms["harms"], texts)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch, ChatServer() as server:
        for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            os.environ[variable] = f"{scratch}/{variable.lower()}"
        root = given.keep or Path(scratch) / "brain"
        shutil.rmtree(root, ignore_errors=True)
        server.default = by_request(reader.serve)
        brain = make(messages, root, "none")
        settings_of(root)
        brain.places.config.parent.mkdir(parents=True, exist_ok=True)
        brain.places.config.write_text(f"api_bases: {{openai: {server.url}}}\n")
        if reader.harms:
            overhear(brain, reader.harms)
        try:
            seen = live(messages, brain, reader)
        except ModelError as error:
            print(f"the month ended early: {error}", file=sys.stderr)
            return 1
        figures = {"month": given.month.stem, **figures_of(messages, brain, reader, seen)}
        looks = [event.data for event in brain.journal.events(kinds={EventsAnalyzed})]
        for name, data in (("operations", looks), ("outcome", figures)):
            text = json.dumps(data, ensure_ascii=False, indent=1)
            (given.folder / f"{name}.json").write_text(text, encoding="utf-8")
        (given.folder / "memory.md").write_text(memory_of(brain, seen), encoding="utf-8")
        brain.close()
    counted = {
        key: len(value) if key in ("asked again", "finally refused") else value for key, value in figures.items()
    }
    print(json.dumps(counted, ensure_ascii=False))
    return 0


def overhear(brain: Brain, harms: Harms) -> None:
    """Have each request shown to the harms before the program's own gateway serves it."""
    serve = brain.models.run

    def run(request: Request) -> Result:
        harms.note(request)
        return serve(request)

    brain.models.run = run  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main())
