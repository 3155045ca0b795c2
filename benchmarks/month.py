"""Live a scripted month (benchmarks/data/month.json) through the product, and score what it remembers at the end.

    python benchmarks/month.py [SET] [--keep DIR] [--show] [--pages N] [--hostile [--exchanges N]]

A brain on real files with a clock moved by hand: each prompt is dropped, answered by the offline engine and reflected;
whenever the script is silent for long enough, the `quiet` hook is called as the daemon would. With `--hostile` a model
on loopback serves all purposes and does harm wherever it can; what it achieved is counted instead. The last line
printed is one line of JSON.
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
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from brainiac.language.sentences import content_stems

from brainiac.brain import Brain
from brainiac.clock import ManualClock, parse_iso
from brainiac.doctor import examine
from brainiac.errors import ModelError
from brainiac.notes.memory import Memory, parse_exchanges, parse_memory
from brainiac.pipeline.daemon import answer_one
from brainiac.promotion.past import text_hash
from brainiac.skeleton import create_brain

QUIET_STEPS = (310.0, 2000.0)  # after the last exchange: promotion's idle time, and well past it


@dataclass(frozen=True)
class Line:
    """A statement as it stands at the end."""

    path: str
    title: str
    text: str
    is_history: bool
    until: str
    section: str
    exchanges: frozenset[str]  # ids of the script's exchanges that it rests on


def make(data: Mapping[str, Any], root: Path) -> Brain:
    """Make a brain at the moment of the first exchange."""
    clock = ManualClock(parse_iso(data["exchanges"][0]["at"]))
    create_brain(root, clock=clock)
    with (root / "system/config.yaml").open("a", encoding="utf-8") as config:
        config.write("\nrecall: {embedder: none}\n")  # the model for meaning takes half the time and is not judged here
    return Brain(root, clock=clock)


def live(data: Mapping[str, Any], brain: Brain) -> float:
    """Drop every prompt at its moment and let the processes work; return the seconds it took."""
    exchanges, root, clock = data["exchanges"], brain.root, brain.clock
    assert isinstance(clock, ManualClock)
    brain.observed.adopt()
    started = time.perf_counter()
    for number, one in enumerate(exchanges):
        _move_to(clock, one["at"])
        path = f"inbox/{one['at'][:10]}/{one['id']}.md"
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(one["user"] + "\n", encoding="utf-8")
        answer_one(brain, path)
        following = exchanges[number + 1]["at"] if number + 1 < len(exchanges) else None
        _be_quiet(brain, clock, one["at"], following)
    return time.perf_counter() - started


def suffer(data: Mapping[str, Any], root: Path, show: bool) -> dict[str, Any]:
    """Live the month with a hostile model, and count what it achieved."""
    sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]
    from hostile_model import HostileModel, damage, outside, settings_of

    from tests.models import write_machine
    from tests.openai_server import ChatServer

    brain = make(data, root)
    brain.tree.config.write_text(settings_of(brain.tree.config.read_text("utf-8")), encoding="utf-8")
    model, before = HostileModel(), outside(root)
    with ChatServer() as server:
        write_machine(brain, {"api_bases": {"openai": server.url}})
        model.serve(server)
        seconds = live(data, brain)
    figures: dict[str, Any] = {"set": "hostile month"}
    figures["verbatim"] = _share(_kept_word_for_word(data, lines_of(brain)[1], brain), show, "not word for word")
    figures |= damage(brain, before, model)
    brain.close()
    for name, value in figures.items():
        if isinstance(value, dict):
            _list(name, [f"{count:5}  {what}" for what, count in value.items()])
        else:
            print(f"{name:24}{value}")
    return {**figures, "seconds": round(seconds, 1)}


def _move_to(clock: ManualClock, at: str) -> None:
    clock.advance(max(0.0, (parse_iso(at) - clock.now()).total_seconds()))


def _be_quiet(brain: Brain, clock: ManualClock, last: str, following: str | None) -> None:
    """Call the quiet hook as the daemon would until somebody writes again."""
    for idle_seconds in QUIET_STEPS if following else (*QUIET_STEPS, 13 * 3600.0):
        at = parse_iso(last) + timedelta(seconds=idle_seconds)
        if following and at >= parse_iso(following):
            return
        clock.advance((at - clock.now()).total_seconds())
        with suppress(ModelError):  # the daemon tries again, too
            brain.plugins.call("quiet", brain=brain, idle_seconds=idle_seconds)


def lines_of(brain: Brain) -> tuple[list[Line], dict[str, Memory]]:
    """Return every statement of long-term memory, steps of how-tos included, and the pages."""
    lines, pages, said = [], {}, _sources(brain)
    for entry in sorted(brain.tree.walk(brain.tree.long_term), key=lambda entry: entry.path):
        path = brain.tree.relative(entry.path)
        if entry.name == "_index.md":
            continue
        pages[path] = memory = parse_memory(path, brain.read_text(path) or "")
        for one in memory.statements:
            exchanges = frozenset(said.get((memory.uuid, text_hash(one.text)), ()))
            lines.append(Line(path, memory.title, one.text, one.is_history, one.until, one.section, exchanges))
    return lines, pages


def _sources(brain: Brain) -> dict[tuple[str, str], set[str]]:
    """Return the script's exchanges behind every statement, by page and text hash."""
    asked = {event.id: Path(event.data["prompt"]).stem for event in brain.journal.events(kinds={"prompt-answered"})}
    found: dict[tuple[str, str], set[str]] = {}
    for event in brain.journal.events(kinds={"memory-promoted"}):
        for one in event.data["statements"]:
            for each in (one, *one.get("steps", ())):
                sources = found.setdefault((one["page"], each.get("hash", "")), set())
                sources.update(asked[source] for source in one["sources"] if source in asked)
    return found


def holds(text: str, words: Sequence[str]) -> bool:
    """Tell whether a text has all the words."""
    low = text.casefold()
    return all(word.casefold() in low for word in words)


def score(data: Mapping[str, Any], brain: Brain, show: bool) -> dict[str, Any]:
    """Compare memory with what the script says should stand at the end."""
    lines, pages = lines_of(brain)
    current = [line for line in lines if not line.is_history and line.section != "Steps"]
    figures: dict[str, Any] = {"statements": len(current), "pages": len(pages)}
    figures["verbatim"] = _share(_kept_word_for_word(data, pages, brain), show, "not word for word")
    recalled = {one["id"]: any(holds(_whole(line), one["must_contain"]) for line in current) for one in data["current"]}
    missing = [f"{one['id']} {one['statement']}" for one in data["current"] if not recalled[one["id"]]]
    figures["recall"] = _share(recalled.items(), False, "")
    figures |= _precision(data, current, show)
    figures |= _changed(data, lines, show)
    duplicates = _duplicates(current)
    figures["duplicates"] = len(duplicates)
    figures["on_own_page"] = _share(_own_pages(data, current, pages), show, "not on its page")
    figures["howtos"] = _share(_howtos(data, pages), show, "how-to without its page")
    forgotten = [one for one in data["forgotten"] for line in current if holds(line.text, one["must_contain"])]
    figures["forgotten_standing"] = len(forgotten)
    problems = [f"{problem.path}: {problem.what}" for problem in examine(brain)]
    refused = [f"{one['statement']}: {one['reason']}" for event in brain.journal.events(kinds={"memory-promoted"})
               for one in event.data["refused"]]  # fmt: skip
    figures["refused"] = len(refused)
    figures["doctor"] = len(problems)
    if show:
        _list("missing", missing)
        _list("said twice", duplicates)
        _list("refused", refused)
        _list("doctor", problems)
    return figures


def _whole(line: Line) -> str:
    """A statement as a reader has it: below its page's title."""
    return f"{line.text} {line.title}"


def _share(results: Iterable[tuple[str, bool]], show: bool, what: str) -> float:
    results = list(results)
    if show:
        _list(what, [name for name, ok in results if not ok])
    return round(sum(ok for _, ok in results) / max(1, len(results)), 3)


def _list(title: str, lines: Sequence[str]) -> None:
    if lines:
        print(f"--- {title} ({len(lines)})")
        print("\n".join(f"  {line}" for line in lines))


def _kept_word_for_word(data: Mapping[str, Any], pages: Mapping[str, Memory], brain: Brain) -> list[tuple[str, bool]]:
    said = [event.user for page in pages.values() for event in parse_exchanges(page.text)]
    said += [event.user for event in brain.short_term().memory.events]
    return [(one["id"], said.count(one["user"]) == sum(o["user"] == one["user"] for o in data["exchanges"]))
            for one in data["exchanges"]]  # fmt: skip


def _precision(data: Mapping[str, Any], current: Sequence[Line], show: bool) -> dict[str, Any]:
    """Judge each statement: right when it holds something that is current; wrong when it holds what is past, was to be
    forgotten, is a question or small talk; the rest (happenings of a day) count neither way."""
    wanted = [one["must_contain"] for one in data["current"]]
    past = [(one["what"], old["must_contain"], one["current"]["must_contain"]) for one in data["changed"]
            for old in one["past"] if one["kind"] != "planned"]  # fmt: skip
    gone = [one["must_contain"] for one in data["forgotten"]]
    by_id = {one["id"]: one["user"] for one in data["exchanges"]}
    idle = [set(content_stems(by_id[one])) for one in (*data["smalltalk"], *data["questions"])]
    right, wrong, neither = [], [], []
    for line in current:
        text, stems = _whole(line), set(content_stems(line.text))
        stale = [what for what, old, now in past if holds(line.text, old) and not holds(line.text, now)
                 and not _tells_past(line.text)]  # fmt: skip
        if any(holds(text, one) for one in wanted):
            right.append(line)
        elif stale or any(holds(line.text, one) for one in gone):
            wrong.append(f"{line.text}  [{line.path.split('long_term/')[1]}] past: {', '.join(stale)}")
        elif any(stems and len(stems & one) >= 0.8 * len(stems) and len(stems & one) >= 0.6 * len(one) for one in idle):
            wrong.append(f"{line.text}  [{line.path.split('long_term/')[1]}] small talk or question")
        else:
            neither.append(f"{line.text}  [{line.path.split('long_term/')[1]}]")
    if show:
        _list("wrong", wrong)
        _list("neither", neither)
    return {
        "precision": round(len(right) / max(1, len(right) + len(wrong)), 3),
        "right": len(right), "wrong": len(wrong), "neither": len(neither),
    }  # fmt: skip


def _tells_past(text: str) -> bool:
    signs = (
        r"previously|used to|no longer|from .* to |formerly|was |until|not |n't |instead of|outgrown|overtaken|finished"
        r"|last day"
    )
    return bool(re.search(signs, text))


def _changed(data: Mapping[str, Any], lines: Sequence[Line], show: bool) -> dict[str, float]:
    """Each changed fact has one current statement; its past stands under History with a date, or is told as past.

    Only statements made from the exchanges that told the fact count: another's flat may well be in the same town.
    """
    now, past = [], []
    for one in data["changed"]:
        current = one["current"]["must_contain"]
        standing = [line for line in lines if not line.is_history and holds(_whole(line), current)]
        now.append((f"{one['what']}: {[line.text for line in standing]}", bool(standing)))
        telling = [line for line in lines if line.exchanges.intersection(one["from"])]
        for old in one["past"]:
            if one["kind"] == "planned":
                continue
            named = [line for line in telling if holds(_whole(line), old["must_contain"])]
            dated = [line for line in named if line.is_history and line.until]
            told = [line for line in named if not line.is_history and _tells_past(line.text)]
            still = [line for line in named if not (line.is_history or line in told or holds(line.text, current))]
            is_told = any(holds(_whole(line), current) for line in told)
            label = f"{one['what']}: {old['must_contain']} until {old['until']}"
            past.append((f"{label}; standing: {[line.text for line in still]}", bool(dated or is_told) and not still))
    return {
        "changed_current": _share(now, show, "changed fact without its current statement"),
        "changed_past": _share(past, show, "changed fact whose past is not dated"),
    }


def _duplicates(current: Sequence[Line]) -> list[str]:
    found = []
    stems = [(line, frozenset(content_stems(line.text))) for line in current]
    for index, (line, one) in enumerate(stems):
        for other, theirs in stems[index + 1 :]:
            if one and len(one & theirs) / len(one | theirs) >= 0.9:
                found.append(f"{line.text}  ||  {other.text}")
    return found


def _own_pages(data: Mapping[str, Any], current: Sequence[Line], pages: Mapping[str, Memory]) -> list[tuple[str, bool]]:
    """A statement that names a person or project stands on the page of one that it names."""
    names = [one["name"] for one in data["subjects"] if one["kind"] in ("person", "project")]
    results = []
    for line in current:
        named = [name for name in names if re.search(rf"\b{re.escape(name)}\b", line.text)]
        if named:
            title = line.title.casefold()
            ok = any(re.search(rf"\b{re.escape(name.casefold())}\b", title) for name in named)
            results.append((f"{line.text} [{line.path.split('long_term/')[1]}]", ok))
    return results


def _howtos(data: Mapping[str, Any], pages: Mapping[str, Memory]) -> list[tuple[str, bool]]:
    results = []
    for one in data["howtos"]:
        wanted = [_plain(step) for step in one["steps"]]
        ok = any("/skills/" in path and [_plain(step) for step in page.steps] == wanted for path, page in pages.items())
        nearest = [page.steps for path, page in pages.items() if "/skills/" in path]
        results.append((f"{one['title']}: {'' if ok else nearest}", ok))
    return results


def _plain(step: str) -> str:
    return re.sub(r"^(?:first|then|after that|and finally|finally|next|and)[, ]+", "", step.casefold()).strip(" .")


def tree(brain: Brain) -> str:
    """Return long-term memory as a listing."""
    names = sorted(brain.tree.relative(entry.path) for entry in brain.tree.walk(brain.tree.long_term))
    shown = [name for name in names if "/events/" not in name or name.endswith("31.md")]
    return "\n".join(name.removeprefix("memory/long_term/") for name in shown)


def main() -> int:
    """Read the arguments, live the month, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", type=Path, nargs="?", default=Path(__file__).parent / "data" / "month.json")
    parser.add_argument("--keep", type=Path, help="leave the brain here")
    parser.add_argument("--show", action="store_true", help="print what went wrong")
    parser.add_argument("--pages", type=int, default=0, help="print so many pages, the longest first")
    parser.add_argument("--hostile", action="store_true", help="with a model that does harm")
    parser.add_argument("--exchanges", type=int, help="only so many, from the first")
    arguments = parser.parse_args()
    data = json.loads(arguments.set.read_text("utf-8"))
    data["exchanges"] = data["exchanges"][: arguments.exchanges]
    with tempfile.TemporaryDirectory() as scratch:
        for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            os.environ[variable] = f"{scratch}/{variable.lower()}"
        root = arguments.keep or Path(scratch) / "brain"
        shutil.rmtree(root, ignore_errors=True)
        if arguments.hostile:
            print(json.dumps(suffer(data, root, arguments.show)))
            return 0
        brain = make(data, root)
        seconds = live(data, brain)
        figures = score(data, brain, arguments.show)
        print(tree(brain))
        pages = sorted(lines_of(brain)[1].items(), key=lambda pair: -len(pair[1].statements))
        for path, page in pages[: arguments.pages]:
            print(f"\n===== {path}\n{page.text}")
        brain.close()
    print(json.dumps({"set": arguments.set.stem, **figures, "seconds": round(seconds, 1)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
