"""Live a month of prompts without a model, and count what was kept, lost, changed and found.

    python benchmarks/keyless.py [SET] [--keep DIR] [--show] [--embedder auto]

SET (benchmarks/data/month.json) is a list of messages by a writer who had not seen the code: `{"id", "at", "kind":
"prompt"|"note", "conversation", "text", "marked", "same_shape", "changes", "repeats", "asks"}`. Each is dropped at its
moment, answered and reflected; whenever the script is silent for long enough the `quiet` hook is called as the daemon
does. The last line printed is one line of JSON.
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
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from brainiac.brain import Brain
from brainiac.clock import ManualClock, parse_iso
from brainiac.errors import ModelError
from brainiac.events import NoteCaptured
from brainiac.formats.frontmatter import split
from brainiac.formats.markdown import blocks_of, tags_in, wiki_links_in
from brainiac.formats.page import Memory, parse_exchanges, parse_memory
from brainiac.formats.prompt import arguments, parse_commands
from brainiac.health.doctor import examine
from brainiac.llm.redaction import redact
from brainiac.pipeline.daemon import answer_one
from brainiac.pipeline.dispatch import exchange_of
from brainiac.pipeline.inbox import Inbox
from brainiac.skeleton import create_brain

QUIET_STEPS = (310.0, 2000.0)  # after the last exchange: promotion's idle time, and well past it
Message = Mapping[str, Any]


def make(messages: Sequence[Message], root: Path, embedder: str) -> Brain:
    """Make a brain at the moment of the first message."""
    clock = ManualClock(parse_iso(messages[0]["at"]))
    create_brain(root, clock=clock)
    config = root / "system/config.yaml"
    config.write_text(re.sub(r"(?m)^time_zone:.*$", "time_zone: UTC", config.read_text("utf-8")), encoding="utf-8")
    with config.open("a", encoding="utf-8") as settings:
        settings.write(f"\nrecall: {{embedder: {embedder}}}\n")
    return Brain(root, clock=clock)


def path_of(message: Message) -> str:
    """Return where a message is dropped."""
    if message["kind"] == "note":
        return f"inbox/notes/{message['id']}.md"
    folder = message["conversation"]
    return f"inbox/{folder + '/' if folder else ''}{message['id']}.md"


def live(messages: Sequence[Message], brain: Brain) -> float:
    """Drop every message at its moment and let the processes work; return the seconds it took."""
    clock = brain.clock
    assert isinstance(clock, ManualClock)
    brain.observed.adopt()
    started = time.perf_counter()
    for number, message in enumerate(messages):
        clock.advance(max(0.0, (parse_iso(message["at"]) - clock.now()).total_seconds()))
        file = brain.root / path_of(message)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(message["text"] + "\n", encoding="utf-8")
        if message["kind"] == "note":
            capture(brain, path_of(message))
        else:
            answer_one(brain, path_of(message))
        following = messages[number + 1]["at"] if number + 1 < len(messages) else None
        be_quiet(brain, clock, message["at"], following)
    return time.perf_counter() - started


def capture(brain: Brain, path: str) -> None:
    """Take a note in and have it reflected, as the daemon does."""
    last = brain.journal.last()[0]
    Inbox(brain, lambda path, seconds: None).take(path)
    for event in list(brain.journal.events(since_seq=last, kinds={NoteCaptured})):
        if exchange := exchange_of(brain, event):
            brain.plugins.call("response_arrived", brain=brain, exchange=exchange)


def be_quiet(
    brain: Brain,
    clock: ManualClock,
    last: str,
    following: str | None,
    before: Callable[[float], None] = lambda idle_seconds: None,
) -> None:
    """Call the quiet hook, and something before it, as the daemon would until somebody writes again."""
    for idle_seconds in QUIET_STEPS if following else (*QUIET_STEPS, 13 * 3600.0):
        at = parse_iso(last) + timedelta(seconds=idle_seconds)
        if following and at >= parse_iso(following):
            return
        clock.advance((at - clock.now()).total_seconds())
        before(idle_seconds)
        with suppress(ModelError):
            brain.plugins.call("quiet", brain=brain, idle_seconds=idle_seconds)


def pages_of(brain: Brain) -> Iterator[Memory]:
    """Yield the pages of long-term memory, index pages left out."""
    for entry in sorted(brain.tree.walk(brain.tree.long_term), key=lambda entry: entry.path):
        path = brain.tree.relative(entry.path)
        if entry.name != "_index.md":
            yield parse_memory(path, brain.read_text(path) or "")


def is_off(message: Message) -> bool:
    """Return whether nothing of a message may be kept."""
    return any(command.name in ("off", "forget") for command in parse_commands(message["text"])[0])


def marked_texts(message: Message) -> list[str]:
    """Return the words of a message that its writer marked."""
    commands, said = parse_commands(message["text"])
    found = arguments(commands, "remember")
    if message["kind"] == "note":
        return [*found, said]
    return found + [block for block in blocks_of(said) if tags_in(block) or wiki_links_in(block)]


def score(messages: Sequence[Message], brain: Brain) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return the figures, and by name what was counted."""
    kept = [message for message in messages if not is_off(message)]
    pages = list(pages_of(brain))
    lists: dict[str, list[str]] = {}
    said = [event.user for page in pages for event in parse_exchanges(page.text)]
    said += [event.user for event in brain.short_term().memory.events]
    texts = [redact(brain, message["text"].strip("\n").rstrip()) for message in kept]
    lists["exchanges lost"] = [text for text in texts if text not in said]
    lists["exchanges doubled"] = [text for text in set(texts) if said.count(text) > texts.count(text)]
    typed = "\n".join(texts)
    knowledge = [page for page in pages if "/events/" not in page.path]
    lists["not word for word"] = [
        f"{page.path}: {statement.text}" for page in knowledge for statement in page.statements
        if statement.text not in typed and not _is_of_own_page(page, typed)
    ]  # fmt: skip
    lists["retired"] = [s.text for page in pages for s in page.statements if s.is_history]
    stands = "\n".join(body_of(page) for page in knowledge)
    wanted = [redact(brain, text) for message in kept for text in marked_texts(message)]
    lists["marked, not kept"] = [text for text in wanted if text.strip() not in stands]
    lists["kept as said again"] = kept_as_said_again(brain)
    lists["off the record, found"] = leaks(brain, [message for message in messages if is_off(message)])
    lists["doctor"] = [f"{problem.path}: {problem.what}" for problem in examine(brain)]
    figures: dict[str, Any] = {name: len(found) for name, found in lists.items()}
    figures["marked"] = len(wanted)
    figures["statements"] = sum(not s.is_history for page in knowledge for s in page.statements)
    figures["pages"] = len(knowledge)
    return figures | asked(kept, brain, lists) | same_shape(kept, brain, lists), lists


def body_of(page: Memory) -> str:
    """Return a page's text below its front matter."""
    return page.text[split(page.text)[1] :]


def _is_of_own_page(page: Memory, typed: str) -> bool:
    """Return whether a page is a note of its own, its body as typed: its list items are no statements."""
    return body_of(page).replace("\r\n", "\n").strip() in typed


def kept_as_said_again(brain: Brain) -> list[str]:
    """Return what repetition alone brought into long-term memory."""
    pages = {page.uuid: page for page in pages_of(brain)}
    found = []
    for event in brain.journal.events(kinds={"memory-promoted"}):
        for record in event.data["statements"]:
            if record.get("marked_by") == "repetition" and record["operation"] == "NEW":
                page = pages.get(record["page"])
                texts = [s.text for s in page.statements if s.block_id == record["block"]] if page else []
                found.append(f"{(texts or ['(a page of its own)'])[0]}  [{record['path']}]")
    return found


def leaks(brain: Brain, messages: Sequence[Message]) -> list[str]:
    """Return the files below the brain, the inbox left out, that hold a line of what is off the record."""
    lines = [line.encode() for message in messages for line in message["text"].split("\n")[1:] if len(line) > 20]
    files = [path for path in brain.root.rglob("*") if path.is_file() and "inbox" not in path.parts]
    return [str(path) for path in files if any(line in path.read_bytes() for line in lines)]


def asked(messages: Sequence[Message], brain: Brain, lists: dict[str, list[str]]) -> dict[str, Any]:
    """Return how often the answering words were quoted, first or among the three, by the time they were asked for."""
    texts = {message["id"]: message["text"] for message in messages}
    turns: dict[str, int] = defaultdict(int)
    by_turn: dict[int, list[tuple[bool, bool]]] = defaultdict(list)
    missed = []
    for message in messages:
        if not message["asks"]:
            continue
        answer = brain.root / path_of(message).replace(".md", ".response.md")
        quotes = quotes_of(answer.read_text("utf-8"))
        hit = [any(_quotes(texts[wanted], quote) for wanted in message["asks"]) for quote in quotes]
        key = ",".join(sorted(message["asks"]))
        turns[key] += 1
        by_turn[turns[key]].append((hit[:1] == [True], any(hit)))
        if not any(hit):
            missed.append(f"{message['text']} | {[texts[wanted] for wanted in message['asks']]}")
    lists["asked, not quoted"] = missed
    every = [result for results in by_turn.values() for result in results]
    figures = {"asked": len(every), "quoted first": _share(every, 0), "among three": _share(every, 1)}
    for turn, results in sorted(by_turn.items()):
        figures[f"quoted first, time {turn}"] = f"{_share(results, 0)} of {len(results)}"
    return figures


def _share(results: Sequence[tuple[bool, bool]], which: int) -> float:
    return round(sum(result[which] for result in results) / max(1, len(results)), 3)


def quotes_of(answer: str) -> list[str]:
    """Return the block quotes of an answer."""
    found = re.findall(r"(?:^> ?.*\n?)+", answer, re.MULTILINE)
    return [
        "\n".join(line.removeprefix(">").removeprefix(" ") for line in quote.strip().split("\n")) for quote in found
    ]


def _quotes(said: str, quote: str) -> bool:
    """Return whether a quote is of these words; one that was cut says so by its ellipses."""
    parts = [part.strip() for part in quote.split("…") if part.strip()]
    return bool(parts) and all(" ".join(part.split()) in " ".join(said.split()) for part in parts)


def same_shape(messages: Sequence[Message], brain: Brain, lists: dict[str, list[str]]) -> dict[str, Any]:
    """Return how many facts of one shape are found by their own words, each among the first three."""
    facts = [message for message in messages if message["same_shape"]]
    lists["one shape, not found"] = []
    for fact in facts:
        hits = brain.recall.search(
            re.sub(r'["\-:]', " ", fact["text"]), limit=3, now=brain.clock.now(), include_repeats=True
        )
        if not any(_quotes(fact["text"], hit.text) for hit in hits):
            lists["one shape, not found"].append(fact["text"])
    return {"facts of one shape": len(facts), "of these not found": len(lists["one shape, not found"])}


def main() -> int:
    """Read the arguments, live the month, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", type=Path, nargs="?", default=Path(__file__).parent / "data" / "month.json")
    parser.add_argument("--keep", type=Path, help="leave the brain here")
    parser.add_argument("--show", action="store_true", help="print what was counted")
    parser.add_argument("--embedder", default="none", help="as `recall.embedder`")
    arguments_ = parser.parse_args()
    messages = json.loads(arguments_.set.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as scratch:
        for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            os.environ[variable] = f"{scratch}/{variable.lower()}"
        root = arguments_.keep or Path(scratch) / "brain"
        shutil.rmtree(root, ignore_errors=True)
        brain = make(messages, root, arguments_.embedder)
        seconds = live(messages, brain)
        figures, lists = score(messages, brain)
        brain.close()
    for name, lines in lists.items():
        if lines and (arguments_.show or name == "kept as said again"):
            print(f"--- {name} ({len(lines)})", *(f"  {line}" for line in lines), sep="\n")
    print(json.dumps({"set": arguments_.set.stem, **figures, "seconds": round(seconds, 1)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
