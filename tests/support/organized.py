"""A brain with a history of use, for tests and benchmarks of organization."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from brainiac import Brain
from brainiac.clock import Clock, ManualClock, iso
from brainiac.events import new_id
from brainiac.formats.frontmatter import render_meta
from brainiac.formats.markdown import format_link
from brainiac.testing import command, make_brain
from tests.support.models import set_sections

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
TOP = "memory/long_term"
ARCHIVE = "memory/archive"
SMALL = "\norganization: {max_entries: 20}\n"


@dataclass
class Scene:
    """A brain in the making.

    Attributes:
        uuids: Of the pages that were made, by path.
    """

    brain: Brain
    clock: Clock
    uuids: dict[str, str] = field(default_factory=dict)

    def page(self, name: str, *, days_ago: int = 10, links: tuple[str, ...] = (), body: str = "", **meta: Any) -> str:
        """Put a page into long-term memory, last changed so many days ago, and return its path.

        Args:
            name: Below `long_term/`, without `.md`.
            days_ago: When it was made.
            links: Paths of pages that it links to.
            body: Markdown.
            meta: Further front matter.
        """
        path, uuid = f"{TOP}/{name}.md", new_id()
        title = posixpath.basename(name).replace("-", " ").capitalize()
        lines = [f"See {self.link(path, target)}." for target in links]
        made = iso(self.clock.now() - timedelta(days=days_ago))
        keys = {
            "uuid": uuid,
            "created_at": made,
            "updated_at": made,
            "tags": [],
            "emotion": "neutral",
            "reinforcement_count": 0,
        }
        text = "\n".join([f"\n# {title}\n", body, *lines, "", f"- {title} is known. ^{uuid[-4:]}\n"])
        text = render_meta(keys | {"reinforcement_count": 0} | meta) + text
        file = self.brain.tree.absolute(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.uuids[path] = uuid
        return path

    def advance(self, seconds: float) -> None:
        """Move the clock, which is one moved by hand."""
        assert isinstance(self.clock, ManualClock)
        self.clock.advance(seconds)

    def link(self, source: str, target: str) -> str:
        """Return a link from one page to another."""
        return format_link("page", posixpath.relpath(target, posixpath.dirname(source)), self.uuids[target])

    def log(self, action: str, *paths: str, at: datetime) -> None:
        """Write lines of one moment, as a script on another machine does."""
        with self.brain.tree.access_log.open("a") as log:
            log.writelines(f"{iso(at)} | {action} | /elsewhere/brain/{path}\n" for path in paths)

    def tree(self) -> dict[str, bytes]:
        """Return every file of memory and logs, the journal apart."""
        tree = self.brain.tree
        paths = [tree.relative(entry.path) for entry in tree.walk(tree.memory)] + [tree.relative(tree.access_log)]
        return {path: tree.absolute(path).read_bytes() for path in paths if tree.absolute(path).exists()}

    def pages(self) -> dict[str, str]:
        """Return the present path of every page that was made, by its first one."""
        found = {}
        for path, content in self.tree().items():
            for first, uuid in self.uuids.items():
                if f"uuid: {uuid}".encode() in content[:400]:
                    found[first] = path
        return found

    def text(self, path: str) -> str:
        """Return what stands at a path, "" where nothing does."""
        return self.brain.read_text(path) or ""

    def problems(self) -> list[tuple[str, str]]:
        """Return what `doctor` finds: path and what is wrong."""
        found = command(self.brain, "doctor", "--json").json["problems"]
        return [(problem["path"], problem["what"]) for problem in found]


def make_scene(folder: Path, clock: Clock | None = None, config: str = "") -> Scene:
    """Make an empty brain, on a clock that is moved by hand unless another is given."""
    clock = clock or ManualClock(NOW)
    brain = make_brain(folder, clock=clock)
    brain.tree.access_log.parent.mkdir(exist_ok=True)
    if config:
        set_sections(folder, config)
    return Scene(brain, clock)


@dataclass
class Constructed:
    """The constructed history of the requirement, by path: what should move, be linked, rest, be split, and stay."""

    frequent: list[str]
    pair: list[str]
    unused: list[str]
    crowd: list[str]
    others: list[str]


def construct(scene: Scene, *, crowd: int = 260, unused: int = 20) -> Constructed:
    """Make three memories cited 30 times, a pair co-cited 10 times, some unused for 180 days, an overgrown folder."""
    subjects = ("garden", "boat", "music", "school")
    frequent = [scene.page(f"concrete/projects/{name}/plans/{name}-budget") for name in ("house", "trip", "shop")]
    pair = [scene.page("concrete/people/mira"), scene.page("skills/cooking/fish-soup")]
    old = [scene.page(f"concrete/past/thing-{number:02}", days_ago=200) for number in range(unused)]
    many = [
        scene.page(
            f"concrete/notes/note-{number:03}",
            subject=subjects[number % 4],
            links=(pair[0], frequent[0]) if number % 5 == 0 else (),
        )
        for number in range(crowd)
    ]
    others = [
        scene.page(f"concrete/people/person-{number}", links=(frequent[number % 3], many[number], old[number % unused]))
        for number in range(5)
    ]
    others.append(scene.page("concrete/past/thing-recent", links=(old[0], old[-1])))
    now = scene.clock.now()
    for number in range(30):
        for offset, path in enumerate(frequent):
            scene.log("CITE", path, at=now - timedelta(hours=number, minutes=offset + 1))
    for number in range(10):
        at = now - timedelta(hours=number, minutes=30)
        scene.log("READ", *pair, at=at)
        scene.log("CITE", *pair, at=at)
    scene.brain.observed.adopt()
    return Constructed(frequent, pair, old, many, others)


def expected_places(made: Constructed) -> dict[str, str]:
    """Return where every page should be after one organization."""
    places = {path: path for path in (*made.pair, *made.others)}
    places |= {path: path.replace("/plans/", "/") for path in made.frequent}
    places |= {path: path.replace(TOP, ARCHIVE) for path in made.unused}
    names = ("garden", "boat", "music", "school")
    places |= {path: path.replace("/notes/", f"/notes/{names[n % 4]}/") for n, path in enumerate(made.crowd)}
    return places
