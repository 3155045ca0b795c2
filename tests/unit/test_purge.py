"""`forget --purge`: nothing of the text is left; every device honours it; a crash is resumed."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest

from brainiac import Brain
from brainiac.testing import CountingDisk, Crash, command, make_brain, run_once
from tests.support.commands import do
from tests.support.kernel import on_disk
from tests.support.said import holding, tell, texts

pytestmark = pytest.mark.slow

SECRET = "My neighbour Rosalind hides emeralds under the old willow."
WORDS = ("emeralds", "willow")  # the name becomes the name of a file, which the journal keeps


def told(brain: Brain, secret: str = SECRET) -> str:
    """Tell the secret under a file name that says nothing, with other things before and after."""
    said = {"one": "I live in Portland.", "two": secret, "three": "I prefer tea over coffee."}
    for name, text in said.items():
        (brain.root / f"inbox/{name}.md").write_text(text + "\n")
    run_once(brain)
    events = brain.journal.events(kinds={"prompt-answered"})
    return next(event.id for event in events if event.data["prompt"] == "inbox/two.md")


def everywhere(brain: Brain) -> list[str]:
    """Every file in which a word of the secret stands."""
    return sorted({path for _, path in holding(WORDS, brain.root, brain.places.state, brain.places.cache)})


@pytest.mark.parametrize("is_promoted", [False, True])
def test_nothing_is_left(brain: Brain, is_promoted: bool) -> None:
    """A grep over tree, journal, blobs, write-ahead file, index and vectors finds no word of it; the rest stands."""
    exchange = told(brain, f"/remember {SECRET}")
    if is_promoted:
        do(brain, "promote")
        assert [path for path, text in texts(brain).items() if "concrete/" in path and "emeralds" in text]
    assert brain.recall.search("emeralds willow")
    brain.recall.flush()
    assert everywhere(brain)
    brain.database.keep("answers", "key", SECRET)  # what a model was paid for, of a run that was cut short
    purged = do(brain, "forget", exchange, "--purge", "--yes")
    assert [] == everywhere(brain)
    brain.close()
    assert [] == everywhere(brain)
    assert "Said elsewhere too" not in purged.out
    reopened = Brain(brain.root)
    assert [] == [hit for hit in reopened.recall.search("emeralds willow") if "emerald" in hit.text]
    assert reopened.recall.search("tea coffee")
    assert brain.journal.fold() == {
        path: digest for path, digest in brain.journal.fold().items() if digest in brain.journal.blobs
    }
    reopened.close()


def test_a_page_that_was_changed_and_merged_is_purged(brain: Brain) -> None:
    """Versions by hand between are destroyed as well."""
    exchange = told(brain, f"/remember {SECRET}")
    do(brain, "promote")
    page = next(
        path for path, text in texts(brain).items() if "concrete/" in path and "- " in text and "emeralds" in text
    )
    path = brain.tree.absolute(page)
    path.write_text(path.read_text() + "\n\n")
    brain.observed.adopt()
    do(brain, "forget", exchange, "--purge", "--yes")
    brain.close()
    assert [] == [each for each in everywhere(brain) if not each.endswith(f"/{path.name}")]


def test_what_others_said_is_not_destroyed(brain: Brain) -> None:
    """The same words in another exchange stand, and are told; their history is kept."""
    tell(brain, "first", "I prefer tea over coffee.")
    second = tell(brain, "second", "I prefer tea over coffee.")
    purged = do(brain, "forget", second, "--purge", "--yes", "--json")
    assert "I prefer tea over coffee." in purged.json["still"]
    event = next(e for e in brain.journal.events(kinds={"prompt-answered"}) if e.data["prompt"] == "inbox/first.md")
    assert all(c.after in brain.journal.blobs for c in event.changes if c.path == "inbox/first.md" and c.after)


def test_it_cannot_be_undone_and_says_so(brain: Brain) -> None:
    """Undo names the texts that are gone; the log still tells that something was."""
    exchange = told(brain)
    purged = do(brain, "forget", exchange, "--purge", "--yes", "--json").json["event"]
    assert "not kept any more" in command(brain, "undo", purged["id"]).err
    assert brain.journal.find(exchange)


def crashed(root: Path, stop_at: int) -> bool:
    brain = on_disk(Brain(root), CountingDisk(stop_at))
    try:
        do(brain, "forget", "inbox/two.md", "--purge", "--yes")
    except Crash:
        return True
    finally:
        brain.committer.database.close()
        brain.__dict__.pop("committer")
        brain.close()
    return False


def test_a_purge_that_began_is_carried_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its plan comes first: wherever it is cut short after that, the next start does the rest."""
    template = make_brain(tmp_path / "template")
    tell(template, "one", "I live in Portland.")
    tell(template, "two", SECRET)
    before = texts(template)
    template.close()
    for stop_at in itertools.count(1, 3):
        root, home = tmp_path / f"brain{stop_at}", tmp_path / f"home{stop_at}"
        shutil.copytree(template.root, root)
        for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
            monkeypatch.setenv(variable, str(home / variable))
        Brain(root).observed.adopt()
        is_crashed = crashed(root, stop_at)
        reopened = Brain(root)
        run_once(reopened)
        is_begun = texts(reopened) != before
        assert is_begun or stop_at < 30  # the command first sees what was edited
        reopened.close()
        foreign = [path for path in everywhere(reopened) if f"/{template.journal.device}/" in path]
        assert not is_begun or [] == [path for path in everywhere(reopened) if path not in foreign]
        if not is_crashed:
            break
    assert stop_at > 10


def test_the_command_says_what_is_beyond_it(brain: Brain) -> None:
    """Git history, sync versions, backups and file names are named; doctor finds nothing wrong afterwards."""
    exchange = told(brain)
    done = do(brain, "forget", exchange, "--purge", "--yes")
    for word in ("git history", "sync service", "backups", "names of files"):
        assert word in done.out
    found = do(brain, "doctor", "--json").json
    assert [] == [each for each in found["problems"] if "purged" in each["what"]]


def test_doctor_finds_what_came_back(brain: Brain) -> None:
    """A purged text that a sync brought back among the blobs is a problem that --fix mends."""
    exchange = told(brain)
    event = brain.journal.find(exchange)
    assert event
    digest = next(change.after for change in event.changes if change.path == "inbox/two.md")
    assert digest
    copy = brain.journal.blobs.get(digest)
    do(brain, "forget", exchange, "--purge", "--yes")
    brain.journal.blobs.put(copy)
    assert any("was purged" in each["what"] for each in command(brain, "doctor", "--json").json["problems"])
    command(brain, "doctor", "--fix")
    assert digest not in brain.journal.blobs


def test_a_copy_that_is_synced_back_is_not_taken_in_again(brain: Brain) -> None:
    """An old short-term memory and the prompt come back with a sync: at the next look they are taken out again."""
    exchange = told(brain)
    old = {path: text for path, text in texts(brain).items() if path in ("memory/short_term.md", "inbox/two.md")}
    do(brain, "forget", exchange, "--purge", "--yes")
    for path, text in old.items():
        brain.tree.absolute(path).write_text(text)
    run_once(brain)
    brain.close()
    assert [] == everywhere(brain)
