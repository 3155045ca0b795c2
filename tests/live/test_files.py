"""PDFs, photos and recordings that are dropped into the inbox: each is found by a page that links to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from brainiac.formats.markdown import find_links
from brainiac.testing import make_brain
from tests.support.commands import Shell
from tests.support.exports import pdf
from tests.support.living import living, living_brain
from tests.support.pipeline import eventually

PAGES = "memory/long_term/events/imported/files"
BRIDGE = pdf(["The bridge bears nine tonnes.", "It was built in 1931."])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    brain = make_brain(tmp_path / "brain")
    brain.close()
    return brain.root


@pytest.fixture
def shell(root: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys, str(root))


def pages(root: Path) -> dict[str, str]:
    """Return the texts of the pages of files, by path below their folder."""
    found = (path for path in (root / PAGES).rglob("*.md") if path.name != "_index.md")
    return {path.relative_to(root / PAGES).as_posix(): path.read_text() for path in found}


def opens(page: Path, file: Path) -> bool:
    return any((page.parent / link.target).resolve() == file for link in find_links(page.read_text()))


def test_a_pdf_is_read_and_a_photo_and_a_recording_are_named(root: Path, shell: Shell) -> None:
    """The text is found, the others by their names; each page opens its file; a second start adds nothing."""
    (root / "inbox/trip").mkdir()
    files = {"bridge report.pdf": BRIDGE, "IMG_0042.HEIC": b"\0\1", "trip/memo.m4a": b"\2" * 6_000_000}
    for name, content in files.items():
        (root / "inbox" / name).write_bytes(content)
    assert 0 == shell("run", "--once").code
    assert {f"{name}.md" for name in files} == set(pages(root))
    for name, content in files.items():
        assert content == (root / "inbox" / name).read_bytes()
        assert opens(root / PAGES / f"{name}.md", root / "inbox" / name)
        assert "\norigin: import\n" in pages(root)[f"{name}.md"]
    assert "nine tonnes" in shell("ask", "How many tonnes does the bridge bear?").out
    assert "trip/memo.m4a.md" in shell("search", "memo").out
    assert "IMG_0042.HEIC.md" in shell("search", "IMG_0042").out
    assert "inbox/trip/memo.m4a → imported" in shell("log").out
    assert [] == shell("status", "--json").json["unread"]
    kept = sum(path.stat().st_size for path in (root / "logs/journal/blobs").rglob("*") if path.is_file())
    assert kept < 1_000_000  # no recording comes into the journal
    before = shell("log", "--json", "-n", "999").json
    assert 0 == shell("run", "--once").code
    assert before == shell("log", "--json", "-n", "999").json


def test_what_is_written_about_a_photo_finds_it(root: Path, shell: Shell) -> None:
    """In the prompt of its name, before it or after; what is private stays so, what is off the record is left out."""
    inbox = root / "inbox"
    for name in ("kitchen.jpg", "clinic.jpg", "secret.png"):
        (inbox / name).write_bytes(b"x")
    (inbox / "clinic.md").write_text("---\nprivate: true\n---\nThe marmoset at the clinic.\n")
    (inbox / "secret.md").write_text("---\nremember: false\n---\nThe tapir in the cellar.\n")
    assert 0 == shell("run", "--once").code
    (inbox / "kitchen.md").write_text("The kitchen before we painted it ochre.\n")
    assert 0 == shell("run", "--once").code
    assert "> The kitchen before we painted it ochre." in pages(root)["kitchen.jpg.md"]
    assert "kitchen.jpg.md" in shell("search", "ochre").out
    assert ("marmoset" in pages(root)["clinic.jpg.md"], "\nprivate: true\n" in pages(root)["clinic.jpg.md"]) == (
        True,
        True,
    )
    assert not [path for path in (root / "memory").rglob("*") if path.is_file() and b"tapir" in path.read_bytes()]


def test_what_cannot_be_taken_in_says_what_helps(root: Path, shell: Shell) -> None:
    """A broken PDF has an error file until it is mended; a page that was taken back does not come again by itself."""
    broken = root / "inbox/bridge.pdf"
    broken.write_bytes(b"%PDF-1.4 nothing")
    assert 0 == shell("run", "--once").code
    error = (root / "inbox/bridge.pdf.error.md").read_text()
    assert "cannot be read" in error
    assert "`brainiac import FILE`" in error.partition("**What to do:**")[2]
    assert ["inbox/bridge.pdf: see inbox/bridge.pdf.error.md"] == shell("status", "--json").json["unread"]
    broken.write_bytes(BRIDGE)
    assert 0 == shell("run", "--once").code
    assert not (root / "inbox/bridge.pdf.error.md").exists()
    started = shell("log", "--kind", "import-started", "--json").json[-1]["id"]
    assert 0 == shell("undo", started).code
    assert {} == pages(root)
    assert 0 == shell("run", "--once").code
    assert {} == pages(root)
    assert BRIDGE == broken.read_bytes()


def test_a_daemon_takes_in_what_has_come_to_rest(root: Path) -> None:
    """A file that is copied slowly gets one page, of what it is in the end, though the daemon is killed meanwhile."""
    with living(living_brain(root.parent / "live", "inbox: {settle_ms: 20}\n")) as daemon:
        file = daemon.root / "inbox/bridge.pdf"
        with file.open("wb") as copied:
            for start in range(0, len(BRIDGE), 200):
                copied.write(BRIDGE[start : start + 200])
                copied.flush()
        daemon.kill()
    with living(daemon.root) as daemon:
        eventually(lambda: "nine tonnes" in pages(daemon.root).get("bridge.pdf.md", ""), "its page", 60)
        eventually(lambda: not (daemon.root / "inbox/bridge.pdf.error.md").exists(), "no error", 60)
        assert ["bridge.pdf.md"] == list(pages(daemon.root))
