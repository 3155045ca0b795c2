"""Two devices share a brain by copying files both ways: one runs the processes, the other captures, searches, waits."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from brainiac import Brain
from brainiac.events import TreeAdopted
from brainiac.formats.discretion import Audience
from brainiac.formats.page import audience_of
from brainiac.storage.statements import StatementLog, text_hash
from brainiac.testing import command, make_brain, run_once
from tests.support.commands import Shell, do, problems_of
from tests.support.devices import Device
from tests.support.pipeline import eventually, running
from tests.support.said import holding

SECRET = "My neighbour Rosalind hides emeralds under the old willow."
WORDS = ("emeralds", "willow")


def synced(source: Device, target: Device) -> None:
    """Copy as a sync does: what is new or newer, and what was deleted is deleted, journals of the other excepted."""
    theirs = {path.name for path in (target.root / "logs/journal").glob("*/")}
    mine = {path.name for path in (source.root / "logs/journal").glob("*/")}
    for folder, _, names in os.walk(source.root):
        for name in names:
            path = Path(folder, name)
            other = target.root / path.relative_to(source.root)
            if name.startswith(".brainiac-") or name == "access.log":
                continue
            if not other.exists() or other.stat().st_mtime_ns < path.stat().st_mtime_ns:
                other.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, other)
    for folder, _, names in os.walk(target.root):
        for name in names:
            path = Path(folder, name)
            relative = path.relative_to(target.root)
            is_theirs = relative.parts[:2] == ("logs", "journal") and relative.parts[2] in theirs - mine
            if not is_theirs and name != "access.log" and not (source.root / relative).exists():
                path.unlink()


@pytest.fixture
def devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Device, Device]:
    """A desk that runs the processes and a laptop with a copy."""
    desk = Device(tmp_path / "desk-home", tmp_path / "desk", monkeypatch)
    laptop = Device(tmp_path / "laptop-home", tmp_path / "laptop", monkeypatch)
    desk.enter()
    make_brain(desk.root).close()
    with desk.opened() as brain:
        do(brain, "takeover")
    laptop.root.mkdir()
    synced(desk, laptop)
    return desk, laptop


def test_taking_over_is_a_commit(devices: tuple[Device, Device]) -> None:
    """The settings gain one line, or its value alone changes; every other byte stays, and again does nothing."""
    desk, _ = devices
    with desk.opened() as brain:
        (event,) = brain.journal.events(kinds={"device-took-over"})
        assert brain.journal.device == brain.settings.active_device == event.data["device"]
        before = brain.journal.blobs.get(str(event.changes[0].before)).decode()
        assert before + f"active_device: {brain.journal.device}\n" == brain.read_text(brain.tree.config)
        assert do(brain, "takeover", "--json").json["event"] is None
        text = "# mine\nbrain_id: abc # here\nactive_device: old # was\ninbox:\n  # settle_ms: 100\n"
        brain.tree.config.write_text(text)
        do(brain, "takeover")
        assert text.replace("old", brain.journal.device) == brain.tree.config.read_text()


@pytest.mark.slow
def test_the_other_device_captures_and_waits(devices: tuple[Device, Device]) -> None:
    """A prompt dropped on the laptop is answered at the desk, once, and the answer comes back with the sync.

    Seeds: S1.
    """
    desk, laptop = devices
    laptop.drop("inbox/one.md", "I live in Portland.\n")
    laptop.run()
    assert not laptop.holds("inbox/one.response.md")
    synced(laptop, desk)
    desk.run()
    assert desk.holds("inbox/one.response.md")
    synced(desk, laptop)
    laptop.run()
    with laptop.opened() as brain:
        assert [] == list(brain.journal.events(kinds={"prompt-answered", "exchange-reflected", "response-arrived"}))
        assert any("Portland" in hit.text for hit in brain.recall.search("Portland"))
        assert ["e"] == ["e" for event in brain.short_term().memory.events]


@pytest.mark.slow
def test_a_handover(devices: tuple[Device, Device]) -> None:
    """After a takeover the laptop answers and the desk waits; what was answered is not answered again."""
    desk, laptop = devices
    desk.drop("inbox/one.md", "I live in Portland.\n")
    desk.run()
    synced(desk, laptop)
    with laptop.opened() as brain:
        do(brain, "takeover")
    laptop.drop("inbox/two.md", "I prefer tea.\n")
    laptop.run()
    synced(laptop, desk)
    desk.drop("inbox/three.md", "My sister is Anna.\n")
    desk.run()
    assert [True, False] == [desk.holds(f"inbox/{name}.response.md") for name in ("two", "three")]
    with laptop.opened() as brain:
        assert ["inbox/two.md"] == [event.data["prompt"] for event in brain.journal.events(kinds={"prompt-answered"})]


def test_a_waiting_daemon_begins_when_it_takes_over(
    devices: tuple[Device, Device], capsys: pytest.CaptureFixture[str]
) -> None:
    """While another device is named no hook is called but that for plugins that sync, and `status` says who; the
    changed setting counts at once."""
    _, laptop = devices
    laptop.enter()
    config = laptop.root / "system/config.yaml"
    disabled = "[core_loop, reflection, promotion, organization]"
    config.write_text(config.read_text().replace("# disabled: [organization]", f"disabled: {disabled}"))
    with running(laptop.root) as pair:
        pair.drop("inbox/one.md", "Hello?\n/send\n")
        eventually(lambda: bool(pair.daemon.bus.inbox.pending), "held")
        pair.drop("memory/long_term/concrete/a.md", "# A\n")
        pair.wait_idle()
        assert ([], []) == (pair.plugin.prompts, pair.plugin.of("memory_created"))
        for hook in ("quiet", "quiet_on_any_device"):
            pair.daemon.bus.dispatcher.call(hook, idle_seconds=1.0)
        assert ([], [1.0]) == (pair.plugin.of("quiet"), pair.plugin.of("quiet_on_any_device"))
        (pending,) = pair.daemon.bus.inbox.pending
        assert "brainiac takeover" in pending.reason
        shell = Shell(capsys, str(laptop.root))
        assert "runs the processes; `brainiac takeover`" in shell("status").out
        assert "runs the processes now instead of" in shell("takeover").out
        pair.wait_for("inbox/one.response.md")
        assert "already" in shell("takeover").out


def test_asking_on_a_waiting_device(devices: tuple[Device, Device], capsys: pytest.CaptureFixture[str]) -> None:
    """`ask` is answered at once where it is asked, and nowhere else, whatever arrives first; the device that runs the
    processes notes it, once; `promote` is refused."""
    desk, laptop = devices
    laptop.enter()
    shell = Shell(capsys, str(laptop.root))
    done = shell("ask", "I live in Portland.")
    assert (0, "Noted") == (done.code, done.out.strip()[:5])
    with desk.opened() as brain:
        assert f"{brain.journal.device} runs the processes" in done.err
    laptop.enter()
    (prompt,) = (laptop.root / "inbox").glob("*i-live-in-portland.md")
    assert 1 == shell("promote").code
    response = prompt.with_name(prompt.name.replace(".md", ".response.md"))
    desk.drop(f"inbox/{prompt.name}", prompt.read_text())  # before the answer and the journal
    desk.run()
    assert not desk.holds(f"inbox/{response.name}")
    synced(laptop, desk)
    desk.run()
    desk.run()
    with desk.opened() as brain:
        assert [] == list(brain.journal.events(kinds={"prompt-answered"}))
        assert 1 == len(list(brain.journal.events(kinds={"exchange-reflected"})))
        assert ["I live in Portland."] == [event.user for event in brain.short_term().memory.events]


@pytest.mark.slow
def test_both_answer_by_mistake(devices: tuple[Device, Device]) -> None:
    """Where no device is named, the one that answered first goes on once the journals have met, and the other waits;
    both see it alike, nothing is answered twice, and no event stands twice."""
    for device in devices:
        config = device.root / "system/config.yaml"
        config.write_text("".join(line for line in config.read_text().splitlines(True) if "active_device" not in line))
    desk, laptop = devices
    for number in (1, 2):
        for device in devices:
            device.drop(f"inbox/{device.root.name}-{number}.md", f"I said {number} at the {device.root.name}.\n")
            device.run()
    assert all(device.holds(f"inbox/{device.root.name}-2.response.md") for device in devices)
    merge_files(desk, laptop)
    for device in reversed(devices):
        device.drop("inbox/both.md", "Where do I live?\n")
        device.run()
    assert [True, False] == [device.holds("inbox/both.response.md") for device in devices]
    with desk.opened() as brain:
        assert brain.is_active
        name = brain.journal.device
    with laptop.opened() as brain:
        assert name in brain.waits_for


def merge_files(one: Device, other: Device) -> None:
    """Copy both ways what the other lacks, as a sync does before it meets a conflict."""
    for source, target in ((one, other), (other, one)):
        for path in [path for path in source.root.rglob("*") if path.is_file() and path.name[0] != "."]:
            place = target.root / path.relative_to(source.root)
            is_longer = path.suffix == ".jsonl" and place.exists() and place.stat().st_size < path.stat().st_size
            if is_longer or not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, place)


def test_what_another_device_noted_was_written_by_no_person(devices: tuple[Device, Device]) -> None:
    """Facts that it reflected are not taken for a person's own lines here, and private ones stay private."""
    desk, laptop = devices
    desk.drop("inbox/p.md", "---\nprivate: true\n---\n/remember We decided to hide emeralds.\n")
    desk.drop("inbox/q.md", "/remember We decided to move to Lisbon.\n")
    desk.run()
    synced(desk, laptop)
    with laptop.opened() as brain:
        assert ["We decided to move to Lisbon."] == [fact.text for fact in brain.short_term().memory.facts]
        do(brain, "takeover")
        do(brain, "promote")
        (promoted,) = brain.journal.events(kinds={"memory-promoted"})
        assert [] == [one for one in promoted.data["exchanges"] if one.startswith("line-")]
        pages = [brain.tree.relative(each.path) for each in brain.tree.walk(brain.tree.long_term)]
        texts = [brain.read_text(page) or "" for page in pages if not page.endswith("_index.md")]
        assert [Audience.HERE] * 2 == [audience_of(text) for text in texts if "emeralds" in text]


def test_two_that_both_run_are_told(devices: tuple[Device, Device]) -> None:
    """Where no device is named and both journals grow, `status` says what to do."""
    desk, laptop = devices
    config = laptop.root / "system/config.yaml"
    config.write_text("".join(line for line in config.read_text().splitlines(True) if "active_device" not in line))
    desk.run()
    with desk.opened() as brain:
        device = brain.journal.device
        assert [] == do(brain, "status", "--json").json["problems"]
    synced(desk, laptop)
    config.write_text("".join(line for line in config.read_text().splitlines(True) if "active_device" not in line))
    with laptop.opened() as brain:
        problems = do(brain, "status", "--json").json["problems"]
        assert [True] == [device in problem and "takeover" in problem for problem in problems]


@pytest.mark.slow
def test_a_purge_is_honoured_by_the_other_device(devices: tuple[Device, Device]) -> None:
    """A tombstone synced over: the laptop's own versions, its index and what a late copy brings back go too."""
    desk, laptop = devices
    desk.drop("inbox/one.md", "I live in Portland.\n")
    desk.drop("inbox/two.md", f"{SECRET}\n")
    desk.run()
    synced(desk, laptop)
    laptop.run()
    stm = laptop.root / "memory/short_term.md"
    edited = stm.read_text().replace("I live in Portland.", "I live in Portland, Oregon.")
    stm.write_text(edited)  # a version that only the laptop has
    with laptop.opened() as brain:
        run_once(brain)
        assert brain.recall.search("emeralds")
        brain.recall.flush()
    late = {path: (laptop.root / path).read_text() for path in ("inbox/two.md", "inbox/two.response.md")}
    with desk.opened() as brain:
        exchange = next(
            e for e in brain.journal.events(kinds={"prompt-answered"}) if e.data["prompt"] == "inbox/two.md"
        )
        do(brain, "forget", exchange.id, "--purge", "--yes")
    assert [] == holding(WORDS, desk.root, desk.home)
    synced(desk, laptop)
    stm.write_text(edited)  # its own version was newer
    laptop.run()
    assert [] == holding(WORDS, laptop.root, laptop.home)
    for path, text in late.items():
        laptop.drop(path, text)
    laptop.run()
    assert [] == holding(WORDS, laptop.root, laptop.home)
    assert "Portland, Oregon" in stm.read_text()


def test_what_another_device_did_is_undone_there(devices: tuple[Device, Device]) -> None:
    """Foreign journals are provenance: their events are found and not taken back here."""
    desk, laptop = devices
    desk.drop("inbox/one.md", "I live in Portland.\n")
    desk.run()
    with desk.opened() as brain:
        event = next(brain.journal.events(kinds={"prompt-answered"}))
    synced(desk, laptop)
    with laptop.opened() as brain:
        assert "undo it there" in command(brain, "undo", event.id).err


def test_a_commit_before_the_first_start_makes_no_edit_of_the_whole_tree(tmp_path: Path) -> None:
    """A folder full of notes, and a command before any daemon ran: the notes are adopted, which `undo` refuses to take
    back, and what the command wrote is known as its own."""
    make_brain(root := tmp_path / "brain").close()
    (root / "memory/long_term/concrete/bob.md").write_text("# Bob\n\n- Likes tea.\n")
    with closing(Brain(root)) as brain:
        do(brain, "takeover")
        brain.observed.adopt()
        kinds = [event.kind for event in brain.journal.events()]
        assert ["tree-adopted"] == [kind for kind in kinds if kind != "note-edited"][1:]
        adoption = next(brain.journal.events(kinds={TreeAdopted}))
        assert 1 == command(brain, "undo", adoption.id).code
        paths = [change.path for change in adoption.changes]
        assert len(paths) == len(set(paths))
        assert {"memory/long_term/concrete/bob.md", "system/config.yaml"} <= set(paths)
        assert [] == [problem for problem in problems_of(brain) if "watched" in problem]
        brain.observed.adopt()
        assert kinds == [event.kind for event in brain.journal.events()]


def test_what_a_sync_brought_was_put_there_by_nobody(devices: tuple[Device, Device]) -> None:
    """A first command on a device that has the other's files and journal: `log`, `why`, `undo --last` and Promotion
    take what a process wrote there for that, and what a person wrote there for theirs; a declined `forget` writes
    nothing.
    """
    desk, laptop = devices
    desk.drop("inbox/one.md", "/remember I live in Portland.\n/remember I prefer tea.\n")
    desk.run()
    with desk.opened() as brain:
        do(brain, "promote")
        (path,) = (page.path for page in brain.pages().memories.values() if "/concrete/" in page.path)
    synced(desk, laptop)
    with laptop.opened() as brain:
        journal = brain.root / "logs/journal" / brain.journal.device
        assert command(brain, "forget", "Portland").code != 0  # nobody is there to be asked
        assert not list(journal.glob("*.jsonl"))
        do(brain, "correct", "I live in Portland.", "--to", "I live in Salem.")
        brain.observed.adopt()
        log, why = do(brain, "log").out, do(brain, "why", "I prefer tea.").out
        assert "came from" in log
        assert "by hand" not in log
        assert "by person" not in why
        _, times = StatementLog(brain).edits_since("")
        page = brain.pages().memories[path]
        assert times.keys() == {(page.uuid, text_hash("I live in Salem."))}
        do(brain, "undo", "--last")
        command(brain, "undo", "--last")
        assert "I live in Portland." in (brain.read_text(path) or "")
    laptop.drop(path, (laptop.root / path).read_text().replace("I prefer tea.", "I prefer coffee."))
    with laptop.opened() as brain:
        brain.observed.note_change(path)
    synced(laptop, desk)
    with desk.opened() as brain:
        brain.observed.note_change(path)
        _, times = StatementLog(brain).edits_since("")
        assert (page.uuid, text_hash("I prefer coffee.")) in times  # a person's, wherever they wrote it
