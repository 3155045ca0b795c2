"""`rebuild`: memory is made again from all that was said, into another folder, and the first one is not touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from brainiac_plugins.promotion.past import CatchUp
from brainiac_plugins.promotion.run import promote

from brainiac.brain import Brain
from brainiac.clock import ManualClock
from brainiac.errors import UserError
from brainiac.health.doctor import examine
from brainiac.history.exchanges import Exchanges
from brainiac.history.forget import find_words, forget
from brainiac.history.past import Comparison, compare, present_pages
from brainiac.history.purge import purge
from brainiac.history.rebuild import make_raw, settle
from brainiac.history.undo import correct, possible_targets
from brainiac.skeleton import create_brain
from brainiac.storage.said import FiledExchanges
from tests.support.promotions import ScriptedEngine, make_brain, open_brain, page_with, pages, statements, tell
from tests.unit.test_month import Recording, live
from tests.unit.test_past import NIGHTLY, later


def rebuilt(brain: Brain, folder: Path, engine: ScriptedEngine | None = None) -> Brain:
    """Make a brain's memory again in a folder, with a model of these tests."""
    make_raw(brain, folder)
    clock = ManualClock(brain.clock.now())
    first = Brain(folder, clock=clock)
    settle(first)
    first.close()
    new = open_brain(folder, engine, clock)
    CatchUp(new).run()
    return new


def differences(first: Brain, second: Brain) -> list[str]:
    """What two brains hold differently, a line each."""
    result: Comparison = compare(present_pages(first), present_pages(second))
    return [f"{row.what} {row.kind} {row.path}: {row.before!r} {row.text!r}" for row in result.differences]


def all_bytes(root: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.slow
def test_a_month_is_made_again(tmp_path: Path) -> None:
    """Two rebuilds of a month hold what the month itself came to; nothing of the first brain changes."""
    brain = make_brain(tmp_path / "a", NIGHTLY, engine=(engine := Recording()))
    list(live(brain, engine))
    before = all_bytes(brain.root)
    news = []
    for name in ("b", "c"):
        reader = Recording()
        reader.messages = engine.messages
        news.append(rebuilt(brain, tmp_path / name, reader))
        assert [] == reader.waiting
    assert before == all_bytes(brain.root)
    assert [] == differences(brain, news[0])
    assert [] == differences(news[0], news[1])
    assert [] == [problem for problem in examine(news[0]) if problem.path != "system/config.yaml"]
    assert [] == FiledExchanges(news[0]).without_model


@pytest.mark.slow
def test_what_a_person_did_holds(tmp_path: Path) -> None:
    """Corrections, edits and pages by hand, what was forgotten and what was purged: as they are, in the new one too."""
    brain = make_brain(tmp_path / "a", NIGHTLY, engine=ScriptedEngine())
    said = (
        "My locker has number 14.",
        "I have a cello.",
        "I play chess on Tuesdays.",
        "My friend Plumtree keeps bees.",
    )
    for text in (*said, "My sister Ruth lives in Bristol."):
        tell(brain, text, minutes=1440)
    promote(brain)
    later(brain)
    correct(brain, possible_targets(brain, "locker")[0], "My locker has number 41.")
    ruth, cello = (brain.root / page_with(brain, word).path for word in ("Bristol", "cello"))
    ruth.write_text(ruth.read_text("utf-8") + "\nShe is left-handed.\n", "utf-8")
    kept = [line for line in cello.read_text("utf-8").splitlines(keepends=True) if "cello" not in line]
    cello.write_text("".join(kept), "utf-8")
    own = brain.root / "memory/long_term/concrete/boat.md"
    own.write_text("# Boat\n\n- The boat is called Kittiwake.\n", "utf-8")
    later(brain)
    brain.recall.rescan()
    correct(brain, possible_targets(brain, "Kittiwake")[0], "The boat is called Puffin.")
    forget(brain, find_words(brain, "chess"))
    purge(brain, find_words(brain, "Plumtree"))

    new = rebuilt(brain, tmp_path / "b", ScriptedEngine())
    holding = ["My locker has number 41.", "My sister Ruth lives in Bristol.", "The boat is called Puffin."]
    assert holding == sorted(statements(new)) == sorted(statements(brain))
    assert "She is left-handed." in page_with(new, "Bristol").text
    assert "Kittiwake" in own.read_text("utf-8"), "under History"
    assert own.read_bytes() == (new.root / "memory/long_term/concrete/boat.md").read_bytes()
    texts = [new.journal.blobs.get(digest) for digest in new.journal.blobs.digests()]
    assert not any(b"keeps bees" in content for content in (*texts, *all_bytes(new.root).values()))
    assert {"a person put it right by hand after it was said"} == {
        row.reason
        for event in new.journal.events(kinds={"memory-promoted"})
        for row in event.what.refused  # type: ignore[union-attr]
    }


def test_it_goes_on_and_refuses_what_is_not_its_own(tmp_path: Path) -> None:
    """What was begun is gone on with; a folder with something else, or in the brain, is not written into."""
    brain = make_brain(tmp_path / "a", keyless=True, config=NIGHTLY)
    for text in ("I like tea.", "/remember The blue box is not to be opened!"):
        tell(brain, text, minutes=1440)
    promote(brain)
    (tmp_path / ".b.rebuild/memory").mkdir(parents=True)  # an attempt that was killed
    assert make_raw(brain, tmp_path / "b")
    assert ["a", "b"] == sorted(path.name for path in tmp_path.iterdir())
    assert make_raw(brain, tmp_path / "b") is None, "it is there"
    create_brain(tmp_path / "c")
    for folder in (tmp_path / "c", brain.root / "inbox/x", tmp_path):
        with pytest.raises(UserError):
            make_raw(brain, folder)
    new = Brain(tmp_path / "b", clock=brain.clock)
    settle(new)
    assert statements(brain) == statements(new) == ["The blue box is not to be opened!"]
    assert (2, []) == (len(FiledExchanges(new).without_model), FiledExchanges(new).waiting)
    assert brain.settings.brain_id != new.settings.brain_id
    assert pages(brain).keys() == pages(new).keys()
    said = (Exchanges(new).in_memory(exchange) for exchange in FiledExchanges(new).without_model)
    assert "I like tea." in [event.user for event in said if event]
