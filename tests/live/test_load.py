"""Hundreds of prompts at once against a real daemon, killed while it files: the short form of benchmarks/load.py."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.load import Tail, prompt, wrong
from tests.support.living import CONFIG, events_of, journal_of, living, living_brain, unfolded
from tests.support.pipeline import eventually

LIMIT = 400
SETTINGS = f"{CONFIG}promotion: {{max_tokens: {LIMIT}, idle_seconds: 100000}}\n"
LIVES, PROMPTS = 3, 50


def test_kills_amid_filing_lose_and_double_nothing_and_short_term_memory_stays_small(tmp_path: Path) -> None:
    """Each of 150 prompts has one answer and stands once in memory; after no commit short-term memory holds more than
    three times its limit and one exchange; tree and journal agree."""
    root = living_brain(tmp_path / "brain", SETTINGS)
    journal, total = Tail(root / "logs/journal"), LIVES * PROMPTS
    for life in range(LIVES):
        with living(root) as one:
            for number in range(life * PROMPTS, (life + 1) * PROMPTS):
                one.drop(f"p{number}.md" if number % 2 else f"talk-{number % 5}/p{number}.md", prompt(number))
            if life < LIVES - 1:
                filings = journal.of("exchanges-filed") + 3
                eventually(partial(has, journal, "exchanges-filed", filings), "filings", 60)
                one.kill()
            else:
                eventually(partial(has, journal, "exchange-reflected", total), "all reflected", 120)
                assert 0 == one.terminate()
    assert not any(wrong(root).values()), wrong(root)
    assert total == journal.of("prompt-answered") == journal.of("exchange-reflected")
    assert [] == unfolded(root)
    assert [] == [text for text in versions(root) if tokens(text) > 3 * LIMIT + size_of_newest(text)]
    filed = [each for event in events_of(root, "exchanges-filed") for each in event.data["exchanges"]]
    assert len(filed) == len(set(filed)) > total - 40


def has(journal: Tail, kind: str, number: int) -> bool:
    return journal.of(kind) >= number


def versions(root: Path) -> list[str]:
    """Every version of short-term memory that a commit left."""
    journal = journal_of(root)
    changes = [change for event in journal.events() for change in event.changes]
    hashes = [change.after for change in changes if change.path == "memory/short_term.md" and change.after]
    return [journal.blobs.get(digest).decode() for digest in hashes]


def tokens(text: str) -> float:
    return len(text) / 4


def size_of_newest(text: str) -> float:
    """Return how many tokens the newest exchange takes, with its heading and what was noted of it."""
    _, *events = text.partition("## Event Log\n")[2].split("### ")
    return tokens(events[0]) + 50 if events else 0
