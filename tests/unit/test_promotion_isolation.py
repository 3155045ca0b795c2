"""One bad link, name, encoding or page costs its own candidate only: all else of the run is filed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from brainiac.brain import Brain
from brainiac.errors import ConfinementError
from brainiac.formats.page import parse_exchanges
from brainiac.llm.schemas import Page, Purpose, SynthesizeRequest
from brainiac.testing import command as run
from tests.support.hostile import Case
from tests.support.hostile import cases as hostile_cases
from tests.support.promotions import (
    LTM,
    Promoted,
    ScriptedEngine,
    later,
    make_brain,
    open_brain,
    page_with,
    pages,
    problems,
    promote,
    statements,
    tell,
)

LONG = "a" * 300
LINKS = [
    f"[P](notes/{LONG}.md)", f"[P](search.php?x={LONG})", f"[P](//cdn.example/{LONG})", "[P](//host/share)",
    "[P](a\x00b.md)", "[P](%00.md)", "[P](%ff%fe%80.md)", "[P](%zz%.md)", "[P](..%2f..%2f..%2fetc%2fpasswd)",
    "[P](../../../../etc/passwd)", "[P](/etc/passwd)", "[P](<>)", "[P](<a b\x07.md>)", "[P](\x1b]0;x\x07)",
    "[P](C:\\x\\y.md)", "[P](.)", "[P](..)", "[P](#a)", "[P](?a=b)", f"[P]({'a/' * 3000}b.md)", "[P](aux.md)",
    '[P](y.md "uuid:\x00")', f'[P](y.md "uuid:{LONG * 20}")', "[[../../x]]", "[P](file:///etc/passwd)",
    "[P](\u2028.md)", "[P](out/x.md)", "[P](~root/x)",
    f"![P](data:image/png;base64,{'A' * 40000})", "[P](x.md\u200b)", "[P](caf\u00e9/%C3%A9.md)", "[P](%2e%2e/%2e%2e/x)",
    "[P](" + "(" * 50 + ")", f"[{'[' * 200}]({LONG})", "[P](inbox)", "[P](x.md/y.md)",
]  # fmt: skip


def said(brain: Brain) -> list[str]:
    """Return what was said, as the pages of the days hold it."""
    return [event.user for page in readable(brain) for event in parse_exchanges(page)]


def readable(brain: Brain) -> list[str]:
    """Return the texts of all pages that can be read."""
    found = []
    for entry in brain.tree.walk(brain.tree.long_term):
        try:
            found.append(Path(entry.path).read_text("utf-8"))
        except (UnicodeDecodeError, PermissionError):
            continue
    return found


def assert_all_filed(brain: Brain, outcome: Promoted) -> None:
    """Everything of the run was filed."""
    assert outcome.event is not None
    assert {} == outcome.left
    assert () == brain.short_term().memory.events
    assert [] == [fate for fate in outcome.candidates.values() if fate.end != "written"]


def look_over(brain: Brain) -> dict[str, str]:
    """Return what doctor names, by path; whatever else reads links goes over them too."""
    graph = brain.recall.links
    assert graph.hubs() is not None
    return problems(brain)


@pytest.mark.slow
@pytest.mark.parametrize("is_remote", [False, True])
def test_any_link_is_filed_with_all_else(tmp_path: Path, is_remote: bool) -> None:
    """F-LNK-5: names that no file system can hold, addresses, control characters, escapes that mean nothing, ways out:
    in prompts and answers, each stands word for word on the page of its day, and each statement on its page."""
    brain = make_brain(tmp_path / "b", engine=ScriptedEngine({}, is_remote=is_remote))
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x.md").write_text("secret")
    (brain.tree.inbox / "out").symlink_to(tmp_path / "outside")
    told = [f"My friend Ann{number} lives in {link}." for number, link in enumerate(LINKS)]
    for text in told:
        tell(brain, text, answer=text)
    outcome = promote(brain)
    assert_all_filed(brain, outcome)
    # a link to a folder of the brain is led on; all else stands as it was typed
    assert len(LINKS) - 3 <= len(set(told) & set(said(brain)))
    for number in range(len(LINKS)):
        assert any(f"Ann{number} " in text for text in statements(brain)), LINKS[number]
    problems = look_over(brain)
    assert problems
    assert all("links to" in what for what in problems.values())
    assert "secret" not in "".join(readable(brain))
    later(brain)
    tell(brain, "I like tea.")
    assert_all_filed(brain, promote(brain))


BAD = {
    "latin.md": "# Ann0\n\n- Ann0 likes Café. ^aaaa\n".encode("latin-1"),
    "utf16.md": "# Ann1\n\n- Ann1 likes tea. ^aaaa\n".encode("utf-16"),
    "broken.md": b"---\ntitle: [never closed\n---\n# Ann2\n",
    "twice.md": b"---\ntitle: Ann3\ntitle: Ann3\n---\n# Ann3\n",
    "nul.md": b"# Ann4\n\n- Ann4 \x00 likes \x1b[31m tea. ^aaaa\n",
    "con.md": b"# Ann5\n\n- Ann5 likes tea. ^aaaa\n",
    "bad\nname.md": b"# Ann6\n\n- Ann6 likes tea. ^aaaa\n",
    "esc\x1b[31m.md": b"# Ann7\n\n- Ann7 likes tea. ^aaaa\n",
    "byte\udc80.md": b"# Ann8\n\n- Ann8 likes tea. ^aaaa\n",
    "bad\x01folder/x.md": b"# Ann9\n\n- Ann9 likes tea. ^aaaa\n",
    "truncated.md": b"# Ann10\n\n- Ann10 likes \xc3",
}


@pytest.mark.slow
def test_any_page_costs_nothing_but_itself(tmp_path: Path) -> None:
    """F-MEM-8: pages that are no UTF-8, broken, misnamed, folders, links, pipes: a statement that would have gone there
    goes elsewhere, not a byte of them changes, and doctor names each."""
    brain = make_brain(tmp_path / "b")
    people = brain.tree.long_term / "concrete/people"
    people.mkdir(parents=True)
    for name, content in BAD.items():
        file = os.path.join(os.fsencode(people), os.fsencode(name))
        os.makedirs(os.path.dirname(file), exist_ok=True)
        Path(os.fsdecode(file)).write_bytes(content)
    (people / "ann11.md").mkdir()
    (people / "ann12.md").symlink_to("/etc/passwd")
    (people / "ann13.md").symlink_to("ann14.md")
    os.mkfifo(people / "ann15.md")
    (people / "_index.md").symlink_to("/etc/passwd")
    (brain.tree.long_term / "events/2026/03/02/2026-03-02.md").mkdir(parents=True)
    (brain.tree.long_term / "events/2026/03/_index.md").mkdir()
    (brain.tree.long_term / "events/2026/_index.md").write_bytes(b"caf\xe9")
    before = {path: path.read_bytes() for path in brain.tree.long_term.rglob("*") if path.is_file()}
    changing = {path for path in before if path.name in ("_index.md", "nul.md", "con.md")}  # the last are whole pages
    changing.remove(brain.tree.long_term / "events/2026/_index.md")
    brain.observed.adopt()  # else the files would be edited just when it promotes
    later(brain)
    for number in range(16):
        tell(brain, f"My friend Ann{number} lives in Oslo.")
    assert_all_filed(brain, promote(brain))
    for number in range(16):
        assert any(f"Ann{number} lives in Oslo" in text for text in readable(brain))
    assert 16 == len(said(brain))
    assert [] == [path for path in before if path not in changing and before[path] != path.read_bytes()]
    problems = look_over(brain)
    at = f"{LTM}concrete/people/"
    named = ["latin.md", "utf16.md", "broken.md", "twice.md", "bad\\nname.md", "esc\\x1b[31m.md", "byte\\udc80.md",
             "bad\\x01folder", "truncated.md", "ann11.md"]  # fmt: skip
    assert [] == [name for name in named if at + name not in problems]
    assert f"{LTM}events/2026/03/02/2026-03-02.md" in problems
    assert "is not UTF-8 (from byte 24 on); save it as UTF-8" == problems[at + "latin.md"]
    for number in range(16):
        tell(brain, f"My friend Ann{number} plays the cello.")
    later(brain)
    assert_all_filed(brain, promote(brain))


def front_matters() -> list[Case]:
    """Return front matter of every odd kind."""
    return [case for case in hostile_cases() if "front matter" in case.kind or case.kind == "misfit"]


@pytest.mark.slow
def test_any_front_matter_costs_nothing_but_its_page(tmp_path: Path) -> None:
    """Every odd block of front matter that the inbox is tested with, on a page and on the index page of a folder."""
    brain = make_brain(tmp_path / "b")
    cases = front_matters()
    assert len(cases) > 50
    odd = ["sources: 5", "sources: words", "sources: {a: b}", "tags: {a: b}", "reinforcement_count: many", "title: [a]",
           "importance: [x]", "subject: [a, b]", "uuid: [x]", "emotion: {a: 1}", "a: &a [1]\nb: *a",
           "? [a]\n: b"]  # fmt: skip
    for number, case in enumerate([*cases, *odd]):
        folder = brain.tree.long_term / f"concrete/f{number}"
        folder.mkdir(parents=True)
        if isinstance(case, Case):
            case.make(os.fsencode(folder / "page.md"))
            head = (folder / "page.md").read_bytes().replace(b"Where do I live?\n", b"")
        else:
            head = f"---\n{case}\n---\n".encode()
        (folder / "page.md").write_bytes(head + f"# Ann{number}\n\n- Ann{number} likes tea. ^aaaa\n".encode())
        (folder / "_index.md").write_bytes(head + b"# A folder\n\nMine.\n")
    brain.observed.adopt()
    later(brain)
    for number in range(len(cases) + len(odd)):
        tell(brain, f"My friend Ann{number} lives in Oslo.")
    assert_all_filed(brain, promote(brain))
    assert len(cases) + len(odd) == len(said(brain))
    assert all("Mine." in file.read_text() for file in brain.tree.long_term.glob("concrete/f*/_index.md"))
    look_over(brain)


def test_what_blocks_a_folder_costs_its_own_exchanges_only(tmp_path: Path) -> None:
    """A file where the folder of a day should be: that day's exchanges stay in the log, named; the others are filed.
    A file where a folder of subjects should be: the statement goes to another."""
    brain = make_brain(tmp_path / "b")
    (brain.tree.long_term / "events/2026/03").mkdir(parents=True)
    (brain.tree.long_term / "events/2026/03/02").write_text("mine")
    (brain.tree.long_term / "concrete/people").write_text("mine too")
    tell(brain, "I play the cello.")
    tell(brain, "My friend Bea lives in Rome.", minutes=60 * 24)
    outcome = promote(brain)
    assert outcome.event is not None
    assert ["I play the cello."] == [event.user for event in brain.short_term().memory.events]
    assert ["memory/long_term/events/2026/03/02: is no folder, so that nothing can be filed there; "
            "move away what stands there"] == list(outcome.left.values())  # fmt: skip
    assert ["My friend Bea lives in Rome."] == said(brain)
    assert {"I play the cello.", "My friend Bea lives in Rome."} == set(statements(brain))
    (brain.tree.long_term / "events/2026/03/02").unlink()
    outcome = promote(brain)
    assert outcome.event is not None
    assert 2 == len(said(brain))
    assert 2 == len(statements(brain))


@pytest.mark.slow
def test_a_line_of_short_term_memory_that_is_no_utf8_costs_nothing(tmp_path: Path) -> None:
    """Saved in another encoding, its bytes are filed as what they are, and all else as it was said."""
    brain = make_brain(tmp_path / "b", engine=ScriptedEngine({}))
    tell(brain, "I work at the cafe Luna.")
    tell(brain, "My sister Ruth is a GP in Bristol.")
    file = brain.tree.short_term
    file.write_bytes(file.read_bytes().replace(b"cafe Luna", b"caf\xe9 Luna") + b"\n- caf\xe9 at the end\n")
    brain.observed.note_change("memory/short_term.md")
    outcome = promote(brain)
    assert_all_filed(brain, outcome)
    assert {"I work at the caf\udce9 Luna.", "My sister Ruth is a GP in Bristol."} <= set(said(brain))
    assert b"- caf\xe9 at the end\n" in file.read_bytes()
    assert "is not UTF-8" in look_over(brain)["memory/short_term.md"]


@pytest.mark.parametrize("error", [ValueError("bad"), ConfinementError("leads outside"), PermissionError(13, "no")])
def test_what_goes_wrong_with_a_name_costs_nothing(tmp_path: Path, error: Exception) -> None:
    """An engine that breaks over the name of a much changed page: the page keeps its own, and all is written."""

    def answer(request: SynthesizeRequest) -> Page:
        raise error

    engine = ScriptedEngine({Purpose.SYNTHESIZE: answer})
    brain = make_brain(tmp_path / "b", engine=engine)
    for instrument in ("cello", "lute", "oboe", "harp", "horn", "viol"):
        tell(brain, f"I play the {instrument}.")
    assert_all_filed(brain, promote(brain))
    assert 1 == len(engine.of(Purpose.SYNTHESIZE))
    assert "Notes" == page_with(brain, "cello").title


@pytest.mark.slow
def test_a_page_that_may_not_be_read_costs_nothing_but_itself(tmp_path: Path) -> None:
    """Run by somebody who may not read one page and one index page: the rest is filed, and doctor names them."""
    code = f"""
import os, sys
sys.path[:0] = {[str(Path(__file__).parent.parent.parent)]!r}
from pathlib import Path
import tests.conftest
from tests.unit.test_promotion_isolation import *
root = Path({str(tmp_path / "b")!r})
brain = make_brain(root)
tell(brain, "My friend Ann lives in Oslo.")
tell(brain, "My friend Bea lives in Rome.")
promote(brain)
closed = [path for path in root.rglob("*.md") if path.name in ("ann.md", "_index.md") and path.parent.name == "people"]
assert 2 == len(closed)
for path in closed:
    path.chmod(0)
assert not os.access(closed[0], os.R_OK)
later(brain)
tell(brain, "My friend Ann plays the cello.")
tell(brain, "My friend Bea plays the flute.")
outcome = promote(brain)
assert outcome.event is not None
assert {{}} == outcome.left, outcome.left
assert any("Ann plays the cello" in text for text in readable(brain))
assert any("Bea plays the flute" in text for text in readable(brain))
named = problems(brain).keys()
assert {{brain.tree.relative(path) for path in closed}} <= named, named
assert any("flute" in hit.text for hit in brain.recall.search("Who plays the flute?"))
later(brain, 400 * 86_400)
run(brain, "organize")
print("fine")
"""
    drop = "import ctypes, os, sys; c = ctypes.CDLL(None); [c.prctl(24, capability) for capability in (1, 2)]; "
    command = [sys.executable, "-c", drop + "os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)  # even root may not read them then
    assert "fine\n" == done.stdout, done.stderr


def test_a_review_that_cannot_be_written_costs_what_must_be_asked_only(tmp_path: Path) -> None:
    """A folder in its place: what would change a person's own statement waits for the next run, all else is filed."""
    engine = ScriptedEngine()
    engine.on("any more", "end", "likes coffee")
    brain = make_brain(tmp_path / "b", engine=engine)
    drinks = brain.tree.long_term / "concrete/drinks.md"
    drinks.write_text("# Drinks\n\n- User likes coffee. ^mine1\n")
    brain.tree.review.mkdir()
    brain.observed.adopt()
    later(brain)
    tell(brain, "I don't like coffee any more.")
    tell(brain, "My sister Ruth is a GP in Bristol.")
    outcome = promote(brain)
    assert outcome.event is not None
    assert ["left", "written"] == sorted(fate.end for fate in outcome.candidates.values())
    assert ["I don't like coffee any more."] == [event.user for event in brain.short_term().memory.events]
    assert "memory/review.md" in look_over(brain)
    brain.tree.review.rmdir()
    outcome = promote(brain)
    assert {"proposed"} == {fate.end for fate in outcome.candidates.values()}
    assert "- User likes coffee. ^mine1\n" in drinks.read_text()
    assert "- [ ] Replace" in brain.tree.review.read_text()


def test_organization_goes_over_the_same_pages(tmp_path: Path) -> None:
    """Nothing of all that keeps the pages from being organized."""
    brain = make_brain(tmp_path / "b")
    people = brain.tree.long_term / "concrete/people"
    people.mkdir(parents=True)
    for number, link in enumerate(LINKS):
        (people / f"p{number}.md").write_text(f"# P{number}\n\n- See {link}\n")
    brain.observed.adopt()
    later(brain, 400 * 86_400)
    run(brain, "organize")
    brain.close()
    open_brain(tmp_path / "b").close()
    assert len(LINKS) <= len(pages(brain)) + len(list((tmp_path / "b/memory/archive").rglob("*.md")))
