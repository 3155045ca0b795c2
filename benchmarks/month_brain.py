"""Makes a brain with a month in it: every kind of file and of event once, small, on two machines.

    python benchmarks/month_brain.py

It made tests/data/month_brain/month.tar.gz by the code of that day, and is kept to tell how. A later brain belongs
under another name, or what the tests hold the code to would change with the code.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
import tarfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

sys.path[:0] = [str(Path(__file__).parent.parent)]
from brainiac import events, verbs
from brainiac.pipeline.daemon import Daemon
from brainiac.testing import START, World
from tests.support.exports import chatgpt, write_json
from tests.support.models import set_sections
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, say, say_json

ARCHIVE = Path(__file__).parent.parent / "tests/data/month_brain/month.tar.gz"
PLACE = Path("/tmp/month")  # the brain's own path stands in its state
DAY, HOUR = 86400.0, 3600.0
CONCRETE = "memory/long_term/concrete"
MODEL = "openai/gpt-4.1-mini"


class Month:
    """The month as it goes on.

    Attributes:
        world: The first machine.
        server: The model.
    """

    def __init__(self, server: ChatServer) -> None:
        self.server = server
        server.default = by_request(self.model)
        self.operations: list[dict[str, object]] = []  # of the next consolidation, by words of what was said
        self.meanwhile = lambda: None  # what happens while an answer is written

    def model(self, request: Captured) -> Behaviour:
        """Answer as a model does; what a consolidation comes to was said before."""
        text = request.text
        if "You keep a person's long-term memory" in text:
            if "Some operations of your former answer were stopped" in text:
                return say_json({"operations": []})
            self.meanwhile()
            said = {
                words.strip(): name for name, words in re.findall(r"\(id (e\d+)\).*?\nUser:\n> (.*?)\n", text, re.S)
            }
            known = {words: name for name, words in re.findall(r"\[(s\d+)\] (.*)", text)}
            return say_json(
                {
                    "operations": [
                        self._operation(one, said, known)
                        for one in self.operations
                        if any(str(one.get("said", one["quote"])) in words for words in said)
                    ]
                }
            )
        if "You note what one new exchange adds" in text:
            return say_json({"facts": [], "thoughts": "Noted."})
        if "You write the searches" in text:
            return say_json({"queries": ["User"]})
        if "You name one page" in text:
            return say_json({"kind": "concrete", "title": "Notes", "folder": "notes"})
        if "how long-term memory could be ordered" in text:
            return say_json({"proposals": []})
        if "Summar" in text[:3000] and not request.body.get("tools"):
            return say_json({"text": "User spoke of the garden."})
        self.meanwhile()
        return say("That is noted.")

    @staticmethod
    def _operation(one: dict[str, object], said: dict[str, str], known: dict[str, str]) -> dict[str, object]:
        """Return an operation with the ids that its words have in this request."""
        quote = str(one["quote"])
        exchange = next(name for words, name in said.items() if str(one.get("said", quote)) in words)
        about = one.get("about")
        ids = [name for words, name in known.items() if about and str(about) in words]
        given = {key: value for key, value in one.items() if key not in ("quote", "about", "said")}
        return given | {"ids": ids, "evidence": [{"exchange": exchange, "quote": quote}], "subject": "User"}


def cli(world: World, *words: str) -> str:
    """Run a command that must succeed."""
    done = world.cli(*words)
    assert done.code == 0, (words, done)
    return done.out


@contextmanager
def watching(world: World) -> Iterator[Daemon]:
    """Let a daemon watch the brain while something is done by hand, and have it come to rest."""
    with world.opened() as brain:
        daemon = Daemon(brain)
        daemon.start()
        try:
            yield daemon
            time.sleep(0.5)  # the system tells of changes
            daemon.bus.wait_idle()
        finally:
            daemon.stop()


def kinds(world: World) -> set[str]:
    """Name the kinds of events in all journals."""
    with world.opened() as brain:
        return {event.kind for _, event in brain.journal.all_events(set(events.KINDS))}


def former_brain(world: World, month: Month) -> None:
    """A few days in a brain that is then made again by a model, which is the brain of the month."""
    for text in ("My sister Ruth lives in Bristol.", "Ruth plays the cello."):
        world.drop(f"former/{text.split()[-1][:-1].lower()}.md", text)
        world.run()
        world.tick(DAY)
    page = {"title": "Ruth", "kind": "concrete", "folder": "people", "summary": "User's sister"}
    month.operations = [
        {
            "action": "new",
            "text": "Ruth, User's sister, lives in Bristol",
            "quote": "Ruth lives in Bristol",
            "page": page,
        },
        {"action": "new", "text": "Ruth plays the cello", "quote": "plays the cello", "page": page},
    ]
    cli(world, "rebuild", "--into", str(PLACE / "month"), "--model", MODEL, "--yes")
    world.root = PLACE / "month"


def first_week(world: World, month: Month) -> None:
    """Prompts, notes, pages by hand; without a model."""
    world.drop("locker.md", "My locker at the pool is number 23.\n")
    world.drop("notes/boiler.md", "Hakan serviced the boiler on 3 September.\n")
    world.drop("rad.md", "Meine Fahrradnummer ist KX-4711.\n")
    world.drop("kanazawa.md", "祖母は金沢に住んでいます。\n")
    world.drop("blood.md", "---\nprivate: true\n---\nMy blood group is 0 negative.\n")
    world.drop("party.md", "/off\nThe surprise party for Jo is in the boathouse.\n")
    world.save(
        f"{CONCRETE}/garden.md", "# Garden\n\n- The plum tree bears every second year.\n- [ ] Prune it in July\n"
    )
    world.save(
        f"{CONCRETE}/boat.md",
        b"---\r\nhull: {length_m: 6.4}  # measured twice\r\n---\r\n# Boat\r\n\r\n- The boat lies at pier 7.\r\n",
    )
    world.save("memory/long_term/skills/bread.md", "# Bread\n\n1. Knead\n2. Rest a night\n3. Bake at 250 degrees\n")
    world.run()
    world.tick(DAY)
    world.drop("trip/plan.md", "We go to Gotland in June by ferry.\n")
    world.drop("trip/asked.md", "Where is my locker?\n")
    world.run()
    cli(world, "ask", "I lent the drill to Tom.")
    broken = world.drop("broken.md", "---\nprivate: [\n---\nThe fence is two metres high.\n")
    gone = world.drop("gone.md", b"\xff\xfe\xff")
    world.run()
    assert broken.error
    assert gone.error
    gone.prompt.unlink()
    world.drop("broken.md", "The fence is two metres high.\n")
    world.save("inbox/by_hand.md", "What is the capital of Åland?\n")
    world.save("inbox/by_hand.response.md", "Mariehamn.\n")
    world.run()
    with watching(world):
        (world.root / "inbox/rad.md").rename(world.root / "inbox/fahrrad.md")
    world.save("inbox/locker.md", "My locker at the pool is number 32, not 23.\n")
    world.run()
    with watching(world):
        world.save(f"{CONCRETE}/loft.md", "# Attic\n\nThe sleeping bags are in the attic.\n")
        world.save(f"{CONCRETE}/cellar.md", "# Cellar\n\nThe cellar is damp.\n")
    with watching(world):  # of files that change at once the first by name is looked at first: here the new one
        (world.root / CONCRETE / "loft.md").rename(world.root / CONCRETE / "attic.md")
        (world.root / CONCRETE / "cellar.md").unlink()
    former = world.tree()["memory/short_term.md"]
    world.drop("shelf.md", "The shelf holds thirty kilos.\n")
    world.run()
    world.save("memory/short_term.md", former.replace("### Tasks\n", "### Tasks\n- [ ] Water the plants\n"))
    world.run()


def second_week(world: World, month: Month) -> None:
    """A model promotes, a day fills short-term memory, an import, a plugin, what fails."""
    world.tick(2 * DAY)  # keyless: the days get their pages
    setting(world, "llm: {model: MODEL}\npromotion: {min_events: 1}\n")
    world.drop("york.md", "Ruth moved to York last week.\n")
    world.drop("bees.md", "Our bees are by the plum tree. I would like a second hive.\n")
    world.run()
    world.drop("talk.md", "The shed needs a new roof.\n")
    talk = world.root / "inbox/talk.md"
    month.meanwhile = lambda: talk.write_text("The shed needs a new roof before winter.\n")
    world.run()
    month.meanwhile = lambda: None
    world.run()
    month.operations = [
        {
            "action": "replace",
            "text": "Ruth, User's sister, lives in York",
            "quote": "Ruth moved to York",
            "about": "lives in Bristol",
            "page": {"path": "concrete/people/ruth.md"},
        },
        {
            "action": "new",
            "text": "The bees are by the plum tree",
            "quote": "bees are by the plum tree",
            "page": {"title": "Bees", "folder": "garden", "summary": "The hives"},
        },
    ]
    cli(world, "promote")
    world.tick(DAY)
    world.drop("refused.md", "The well is nine metres deep.\n")
    world.run()
    month.operations = [
        {
            "action": "new",
            "text": "The well is 12 metres deep",
            "quote": "twelve metres",
            "said": "nine metres",
            "page": {"title": "Well"},
        }
    ]
    cli(world, "promote")
    setting(world, "llm: {model: offline}\npromotion: {max_tokens: 200}\n")
    for number in range(4):
        world.drop(f"long/{number}.md", f"Entry {number} of the log book: {'wind and rain, ' * 12}harbour {number}.\n")
        world.run()
    setting(world, "promotion: {}\n")
    export = write_json(
        PLACE / "export/conversations.json", [chatgpt("c1", [("Which tram climbs to Graça?", "The 28.")])]
    )
    cli(world, "import", str(export))
    notes = PLACE / "notes"
    for number in range(26):
        (notes / "box").mkdir(parents=True, exist_ok=True)
        (notes / f"box/card{number}.md").write_text(f"# Card {number}\n\nCard {number} lies in drawer {number % 5}.\n")
    cli(world, "import", str(notes))
    month.operations = [
        {
            "action": "new",
            "text": "Tom has 2 drills",
            "quote": "two drills",
            "said": "lent the drill",
            "page": {"title": "Tom"},
        }
    ]
    cli(world, "promote", "--past", "--model", MODEL, "--yes")
    month.operations = []
    cli(world, "promote")
    world.drop("wall.md", "The bees moved to the wall.\n")
    world.run()
    bees = world.root / CONCRETE / "garden/bees.md"
    month.operations = [
        {
            "action": "replace",
            "text": "The bees are by the wall, not by the plum tree",
            "quote": "bees moved to the wall",
            "about": "by the plum tree",
            "page": {"path": "concrete/garden/bees.md"},
        }
    ]
    month.meanwhile = lambda: bees.write_text(bees.read_text().replace("# Bees\n", "# Bees\n\nBy hand: two hives.\n"))
    setting(world, "llm: {model: MODEL}\npromotion: {min_events: 1}\n")
    cli(world, "promote")
    month.meanwhile = lambda: None
    setting(world, "llm: {model: offline}\npromotion: {}\n")
    world.save("plugins/diary.py", DIARY)
    cli(
        world,
        "plugins",
        "trust",
        "diary",
        *(["--yes"] if "--yes" in world.cli("plugins", "trust", "--help").out else []),
    )
    world.save("plugins/stranger.py", "raise RuntimeError('a stranger')\n")
    cli(world, "plugins", "trust", "stranger", "--yes")
    world.run()
    cli(world, "plugins", "distrust", "stranger")
    setting(world, "plugins: {disabled: [reflection]}\n")
    world.drop("unheard.md", "Nobody noted the colour of the gate.\n")
    world.run()
    setting(world, "plugins: {}\n")


DIARY = """\
from brainiac import hookimpl

@hookimpl
def response_arrived(brain, exchange):
    with open(brain.root / "diary.md", "a") as diary:
        diary.write(f"- {exchange.prompt.path}\\n")
    brain.record("diary-written", by="diary", data={"prompt": exchange.prompt.path})
"""


def third_week(world: World, month: Month) -> None:
    """What a person takes back, puts right, ticks, declines, forgets and purges."""
    cli(world, "correct", "lies at pier 7", "--to", "The boat lies at pier 9.")
    cli(world, "adopt", f"{CONCRETE}/garden.md", "--yes")
    text = (world.root / "inbox/shelf.md").read_text()
    world.save("inbox/shelf.md", f"---\nprivate: true\n---\n{text}")
    world.run()
    world.drop("debt.md", "Gustav owes me forty euros.\n")
    world.drop("pin.md", "The zebrawood box opens with zugzwang.\n")
    world.drop("kiln.md", "The kiln is in Anna's garage.\n")
    world.run()
    cli(world, "forget", "inbox/debt.md", "--yes")
    cli(world, "forget", "zugzwang", "--purge", "--yes")
    cli(world, "undo", event_of(world, events.PromptAnswered.kind, "inbox/kiln.md"))
    world.save(f"{CONCRETE}/recipe.md", "# Recipe\n\nThe soup wants lovage.\n")
    world.run()
    world.tick(DAY)
    cli(world, "forget", f"{CONCRETE}/recipe.md", "--yes")
    with world.opened() as brain:
        verbs.remember(brain, "The user prefers window seats.", caller=verbs.Caller(by="mcp:claude-desktop"))
    world.run()
    world.drop("ask_forget.md", "/forget harbour 2\n")
    world.run()
    for words, change, new in (
        ("The plum tree bears every second year", "replace", "The plum tree bears each year."),
        ("Ruth plays the cello", "end", ""),
        ("The bees are by the plum tree", "replace", "The bees are by the wall."),
    ):
        suggest(world, words, change, new)


def suggest(world: World, words: str, change: verbs.Change, text: str) -> None:
    """Have a client at a door suggest a change of the statement with these words."""
    pages = {path: page for path, page in world.tree().items() if path.startswith("memory/long_term/")}
    [name] = [
        f"{path}#^{found[1]}"
        for path, page in pages.items()
        if (found := re.search(re.escape(words) + r"[^\n]*\^(\w+)", page))
    ]
    with world.opened() as brain:
        verbs.suggest(brain, name, change, text, caller=verbs.Caller(by="mcp:claude-desktop"))


def fourth_week(world: World, month: Month) -> None:
    """Decisions, a second machine, git's markers, a drive that seems gone, a crash."""
    decide(world, "x", "each year")
    decide(world, "-", "plays the cello")
    bees = world.tree()[f"{CONCRETE}/garden/bees.md"]
    world.save(f"{CONCRETE}/garden/bees.md", bees.replace("are by the plum tree", "are under the plum tree"))
    decide(world, "x", "by the wall")
    world.run()
    world.tick(DAY)
    cli(world, "organize")
    # a page that is linked to moves
    ruth = world.tree()[f"{CONCRETE}/people/ruth.md"]
    uuid_of_ruth = re.search(r"^uuid: (\S+)", ruth, re.M)[1]
    world.save(f"{CONCRETE}/family.md", f'# Family\n\n- My sister is [Ruth](people/ruth.md "uuid:{uuid_of_ruth}").\n')
    world.run()
    world.tick(DAY)
    (world.root / CONCRETE / "people/ruth.md").rename(world.root / CONCRETE / "ruth.md")
    world.run()
    world.tick(HOUR)
    # a second machine
    cli(world, "takeover")
    tablet = world.device("tablet")
    tablet.run()
    garden, boat = (f"{CONCRETE}/{name}.md" for name in ("garden", "boat"))
    add_line(world, garden, "- The pear is new.")
    world.save(f"{CONCRETE}/lamp.md", "# Lamp\n\nThe lamp needs a bulb.\n")
    (world.root / boat).unlink()
    world.run()
    world.tick(60)
    add_line(tablet, garden, "- The quince was felled.")
    tablet.save(f"{CONCRETE}/tablet.md", "# Tablet\n\nThe tablet was bought in May.\n")
    tablet.run()
    world.sync(tablet)
    copy = ".sync-conflict-20251001-120000-ABCDEFG.md"
    world.save(boat.replace(".md", copy), tablet.tree().get(boat, "# Boat\n\n- The boat is sold.\n"))
    world.save(f"{CONCRETE}/lamp{copy}", "# Lamp\n\nThe lamp needs a bulb.\n")
    world.run()
    world.sync(tablet)
    tablet.run()
    world.sync(tablet)
    # git left its markers
    head, _, tail = world.tree()[garden].partition("- The pear is new.")
    world.save(garden, f"{head}<<<<<<< HEAD\n- The pear is new.\n=======\n- The pear is old.\n>>>>>>> side{tail}")
    world.run()
    # a drive that seems gone, and was meant to be
    shutil.rmtree(world.root / "memory/long_term/events/imported/notes")
    world.run()
    world.cli("doctor", "--confirm-deletions")
    (world.root / CONCRETE / "garden/_index.md").unlink()
    world.cli("doctor", "--fix")
    # the inbox is tidied
    setting(world, "inbox: {keep_days: 7}\n")
    world.tick(3 * DAY)
    setting(world, "inbox: {}\n")
    # what was not used for long is archived
    setting(world, "organization: {unused_days: 5}\n")
    cli(world, "organize")
    setting(world, "organization: {}\n")
    # a crash of an earlier program left a temporary file
    world.save("memory/.brainiac-0011223344556677", "- The barometer falls.\n")
    world.run()


def last_day(world: World, month: Month) -> None:
    """What is under way when the program is replaced by a later one."""
    world.tick(DAY)
    world.save("plugins/stranger.py", "raise RuntimeError('a stranger')\n")
    world.drop("crash.md", "The lighthouse has 214 steps.\n")
    before = PLACE.with_name("before")
    shutil.rmtree(before, ignore_errors=True)
    shutil.copytree(PLACE, before)
    at = 1
    while world.kill(at, "after") and not is_in_flight(world):
        shutil.rmtree(PLACE)
        shutil.copytree(before, PLACE)
        at += 1
    assert is_in_flight(world)
    world.drop("open.md", "The ferry leaves at 07:15 from pier 4.\n")
    world.drop("notes/open.md", "Spare keys: with the neighbour in number 12.\n")
    add_line(world, f"{CONCRETE}/garden.md", "- The fig was planted in the pot.")


def add_line(world: World, path: str, line: str) -> None:
    """Add a line to the first list of a page, as a person does."""
    head, title, rest = world.tree()[path].partition("# Garden\n\n")
    world.save(path, f"{head}{title}{line}\n{rest}")


def is_in_flight(world: World) -> bool:
    """Return whether a commit stands in the tree and not in the journal yet."""
    tree = world.tree()
    is_told = any('"prompt":"inbox/crash.md"' in text for path, text in tree.items() if path.startswith("logs/journal"))
    return "inbox/crash.response.md" in tree and not is_told


def pack(world: World) -> None:
    """Pack the tree and what an upgrade finds beside it, without a trace of who packed it."""
    with world.opened() as brain:
        state, device = brain.places.state, brain.places.device / "device_id"
    with tarfile.open(ARCHIVE, "w:gz", compresslevel=9) as archive:
        for source, name in ((world.root, "brain"), (state, "state"), (device, "device/device_id")):
            archive.add(source, name, filter=_neutral)


def _neutral(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return None if entry.name.endswith((".lock", "-shm", "heartbeat.tmp")) else entry  # the last names the host


def decide(world: World, mark: str, words: str) -> None:
    """Put a mark into the box of a line of the review."""
    lines = world.tree()["memory/review.md"].split("\n")
    [number] = [number for number, line in enumerate(lines) if words in line]
    lines[number] = lines[number].replace("[ ]", f"[{mark}]")
    world.save("memory/review.md", "\n".join(lines))


def event_of(world: World, kind: str, path: str) -> str:
    """Return the id of the last event of a kind about a path."""
    with world.opened() as brain:
        found = [event for event in brain.journal.events(kinds={kind}) if path in str(event.data)]
    return found[-1].id


def setting(world: World, sections: str) -> None:
    """Put sections into the settings."""
    set_sections(world.root, sections.replace("MODEL", MODEL))
    world.save("system/config.yaml", (world.root / "system/config.yaml").read_text())


IDS = [0]  # how many were made
WORLDS: list[World] = []


def uuid7() -> uuid.UUID:
    """Return a new id that stands in the month, as the clock does."""
    IDS[0] += 1
    now = WORLDS[0].clock.now() if WORLDS else START
    milliseconds = int(now.timestamp()) * 1000 + IDS[0] % 1000
    return uuid.UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62 | secrets.randbits(62))


def new_world(server: ChatServer) -> World:
    """Make the first machine, whose settings name the model's server."""
    events.uuid_utils = SimpleNamespace(uuid7=uuid7)
    world = World(PLACE)
    WORLDS[:] = [world]
    machine = world.home / "config/brainiac/config.yaml"
    machine.parent.mkdir(parents=True, exist_ok=True)
    machine.write_text(f"api_bases: {{openai: {server.url}}}\n")
    return world


def main() -> None:
    os.environ["OPENAI_API_KEY"] = "k"
    shutil.rmtree(PLACE, ignore_errors=True)
    with ChatServer() as server:
        month = Month(server)
        world = new_world(server)
        former_brain(world, month)
        first_week(world, month)
        second_week(world, month)
        third_week(world, month)
        fourth_week(world, month)
        last_day(world, month)
        missing = set(events.KINDS) - kinds(world)
        assert not missing, missing
        pack(world)


if __name__ == "__main__":
    main()
