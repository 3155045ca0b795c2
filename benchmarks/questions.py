"""Questions about what one person told, one message at a time, through the product's own files and search.

    python benchmarks/questions.py FILE...                # the product beside the usual ways, on the same messages
    python benchmarks/questions.py --embedder none FILE   # by words only

Weights are learned from `data/questions`, never from `data/unseen` and `data/languages`: in the latter forty facts each
in German, Spanish, French, Japanese and Chinese are asked for in other words. A file is `{"language", "told": [{"id",
"at", "text"}], "questions": [{"id", "text", "answers": [ids]}], "unanswerable": [{"id", "text", "absent": [words]}]}`.
What was told lies in a brain as the daemon would have filed it:
the last messages in short-term memory, all others on the pages of their days, each answered by links alone. Each
question is asked the day after the last message; then all of them are asked on two more days, each being noted as
the daemon would. Shown is how often a message that answers stands first, among three and among five; how often nothing
is found; and of what cannot be answered, how often a word that stands nowhere is named. Ends with one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks.baselines import usual_ways
from brainiac.clock import iso, parse_iso
from brainiac.formats.markdown import StmEvent, render_exchange
from brainiac.formats.page import new_memory
from brainiac.formats.short_term import EMPTY, ShortTermDocument
from brainiac.search.query import searches
from brainiac.search.search import Recall
from brainiac.settings import RecallSettings, Settings
from brainiac.text.dates import format_date
from brainiac.tree import LocalPlaces, Tree

SETS = Path(__file__).parent / "data" / "questions"  # those that weights are learned from
SNOWBALL = {"en": "english", "de": "german", "es": "spanish", "fr": "french", "it": "italian", "pt": "portuguese"}
IN_SHORT_TERM = 10
DEPTHS = (1, 3, 5)
TIMES = 3
SETTLE_SECONDS = 30.0
PAUSE = timedelta(minutes=20)  # between two questions
ANSWER = '[9 January 2026](../long_term/events/2026/01/09/2026-01-09.md "uuid:day")'


@dataclass(frozen=True)
class Question:
    """What is asked, and the messages that answer it."""

    text: str
    answers: frozenset[str]


@dataclass(frozen=True)
class QuestionSet:
    """What one person told and what is asked of it."""

    name: str
    language: str
    told: list[StmEvent]
    questions: list[Question]
    unanswerable: list[tuple[str, frozenset[str]]]

    @property
    def asked_at(self) -> datetime:
        """The day after the last message."""
        return parse_iso(self.told[-1].at) + timedelta(days=1)


def read(path: Path) -> QuestionSet:
    """Read a set."""
    raw = json.loads(path.read_text("utf-8"))
    told = [StmEvent(one["id"], iso(parse_iso(one["at"])), one["text"], ANSWER) for one in raw["told"]]
    return QuestionSet(
        path.stem if path.parent.name == "questions" else f"{path.parent.name}/{path.stem}",
        raw["language"],
        sorted(told, key=lambda event: event.at),
        [Question(one["text"], frozenset(one["answers"])) for one in raw["questions"]],
        [(one["text"], frozenset(one.get("absent", ()))) for one in raw.get("unanswerable", ())],
    )


def build_brain(told: Sequence[StmEvent], root: Path) -> None:
    """Write what was told as the daemon files it."""
    (root / "system").mkdir(parents=True)
    (root / "system" / "core_identity.md").write_text("# Core Identity\n", "utf-8")
    days: dict[str, list[StmEvent]] = defaultdict(list)
    for event in told[:-IN_SHORT_TERM]:
        days[event.at[:10]].append(event)
    for day, events in days.items():
        folder = root / "memory" / "long_term" / "events" / day.replace("-", "/")
        folder.mkdir(parents=True)
        body = "\n".join(map(render_exchange, events))
        title = format_date(parse_iso(events[0].at).date())
        (folder / f"{day}.md").write_text(new_memory(title, uuid=f"day-{day}", now=events[-1].at, body=body), "utf-8")
    short_term = root / "memory" / "short_term.md"
    short_term.write_text(EMPTY, "utf-8")
    note(root, told[-IN_SHORT_TERM:])


def note(root: Path, events: Sequence[StmEvent]) -> None:
    """Add exchanges to short-term memory."""
    short_term = root / "memory" / "short_term.md"
    document = ShortTermDocument(short_term.read_text("utf-8"))
    for event in events:
        document = document.with_event(event)
    short_term.write_text(str(document), "utf-8")


def asked_on(now: datetime, questions: Sequence[Question]) -> list[StmEvent]:
    """Return the exchanges in which questions are asked, from a moment on."""
    texts = [question.text for question in questions]
    return [StmEvent(f"asked-{now:%d}-{n}", iso(now + n * PAUSE), text, ANSWER) for n, text in enumerate(texts)]


def open_recall(root: Path, cache: Path, language: str, embedder: str) -> Recall:
    """Return the product's search with an index of its own."""
    places = LocalPlaces(state=cache, cache=cache, config=cache / "config.yaml", device=cache)
    settings = Settings(recall=RecallSettings(embedder=embedder, language=SNOWBALL.get(language, "none")))
    return Recall(Tree(root), places, settings)


def ask(recall: Recall, text: str, now: datetime) -> list[str]:
    """Return the ids of the messages that are shown, best first."""
    hits = recall.search(searches(text, ())[0], limit=max(DEPTHS), now=now)
    return [hit.anchor for hit in hits]


def settle(recall: Recall) -> None:
    """Wait until what was noted has its vectors, as it has in the daemon long before the next day."""
    recall.note_change(recall.tree.relative(recall.tree.short_term))
    until = time.monotonic() + SETTLE_SECONDS
    recall.flush()
    while recall.status()["not_yet_embedded"] and time.monotonic() < until:
        time.sleep(0.1)


def shares(found: Sequence[Sequence[str]], questions: Sequence[Question]) -> list[float]:
    """Return in how many of a hundred a message that answers stands first, among three and among five."""
    met = [[not q.answers.isdisjoint(ids[:depth]) for depth in DEPTHS] for ids, q in zip(found, questions, strict=True)]
    return [round(100 * float(share), 1) for share in np.mean(met, axis=0)]


def measure(given: QuestionSet, folder: Path, embedder: str, days: int = TIMES) -> dict[str, object]:
    """Ask everything on some days, each time noting afterwards what was asked."""
    root = folder / f"{given.name.replace('/', '-')}-{embedder}"
    build_brain(given.told, root)
    recall = open_recall(root, root / ".cache", given.language, embedder)
    recall.reindex()
    result: dict[str, object] = {}
    absent = [recall.absent(text) for text, _ in given.unanswerable]
    named = [
        any(word in other or other in word for word in words for other in wanted)
        for words, (_, wanted) in zip(absent, given.unanswerable, strict=True)
        if wanted
    ]
    result["absent_named"] = round(100 * float(np.mean(named)), 1) if named else None
    said = {word for event in given.told for word in re.findall(r"\w+", event.user.casefold())}
    result["falsely_absent"] = [
        word for question in given.questions for word in recall.absent(question.text) if word.casefold() in said
    ]
    for day in range(days):
        now = given.asked_at + timedelta(days=day)
        found = [ask(recall, question.text, now) for question in given.questions]
        result[f"asked_{day + 1}"] = shares(found, given.questions)
        result[f"nothing_{day + 1}"] = round(100 * float(np.mean([not ids for ids in found])), 1)
        note(root, asked_on(now, given.questions))
        settle(recall)
    recall.close()
    return result


def measure_usual_ways(given: QuestionSet) -> dict[str, list[float]]:
    """Ask every question in the usual ways, on the same messages."""
    texts = [event.user for event in given.told]
    found = {}
    for name, find in usual_ways(texts, SNOWBALL.get(given.language, "")):
        ids = [[given.told[number].id for number in find(one.text, max(DEPTHS))] for one in given.questions]
        found[name] = shares(ids, given.questions)
    return found


def main() -> None:
    """Measure the sets of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--embedder", default="", help="of the product; without it: none, then auto")
    arguments = parser.parse_args()
    results: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in arguments.files:
            given = read(path)
            row: dict[str, object] = {"questions": len(given.questions), **measure_usual_ways(given)}
            for embedder in [arguments.embedder] if arguments.embedder else ["none", "auto"]:
                row["words" if embedder == "none" else "hybrid"] = measure(given, Path(folder), embedder)
            results[given.name] = row
            print(given.name, row, file=sys.stderr, flush=True)
    print(json.dumps(results, ensure_ascii=False))


if __name__ == "__main__":
    main()
