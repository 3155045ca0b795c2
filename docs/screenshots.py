"""Takes the pictures of the window in docs/images, of a demo brain that the program itself fills.

    python docs/screenshots.py

Twelve days are played in it: prompts are answered, consolidated, put right and asked about. A server on loopback stands
for the model, so that no key is needed. Then the daemon serves it, and Chromium looks at six pages: light and dark, as
wide as a screen and as a phone. Look at each picture; a page that looks wrong is mended in brainiac/window.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent)]
from brainiac.clock import SYSTEM, ManualClock
from brainiac.formats.page import parse_memory
from brainiac.testing import World
from tests.support.browser import NARROW, WIDE, Visitor, chromium, visiting, windowed
from tests.support.models import set_sections
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, say, say_json

FOLDER = Path(__file__).parent / "images"
MAX_BYTES = 150_000
MODEL = "openai/gpt-4.1-mini"
DAY = 86_400.0
CONFIG = f"brain_id: default\nllm: {{model: {MODEL}, models: {{verify: offline}}}}\nrecall: {{embedder: none}}\n"


def page(title: str, folder: str, summary: str) -> dict[str, str]:
    """Return a page as a model names a new one."""
    return {"title": title, "kind": "concrete", "folder": folder, "summary": summary}


RUTH, MIRA = page("Ruth", "people", "The sister"), page("Mira", "people", "A friend who sails")
BOAT, GARDEN = page("Boat", "things", "The Heron"), page("Garden", "things", "Trees and bees")
STUDIO = page("Studio", "work", "The drawing office")
# of each day what was said, and what a model makes of it
DAYS: list[tuple[list[str], list[dict[str, Any]]]] = [
    (
        [
            "My sister Ruth lives in Bristol, and she plays the cello in an amateur orchestra.",
            "The Heron lies at pier 7. Her winter cover is in the shed behind the sail loft.",
        ],
        [
            {"text": "Ruth lives in Bristol", "quote": "Ruth lives in Bristol", "page": RUTH},
            {"text": "Ruth plays the cello in an amateur orchestra", "quote": "plays the cello", "page": RUTH},
            {"text": "The Heron lies at pier 7", "quote": "The Heron lies at pier 7", "page": BOAT},
            {
                "text": "The winter cover is in the shed behind the sail loft",
                "quote": "winter cover is in the shed behind the sail loft",
                "page": BOAT,
            },
        ],
    ),
    (
        [
            "Mira is allergic to walnuts. She can come along to Gotland in June.",
            "The plum tree bears every second year, and the bees stand beside it.",
        ],
        [
            {"text": "Mira is allergic to walnuts", "quote": "Mira is allergic to walnuts", "page": MIRA},
            {"text": "Mira can come along to Gotland in June", "quote": "come along to Gotland in June", "page": MIRA},
            {"text": "The plum tree bears every second year", "quote": "bears every second year", "page": GARDEN},
            {"text": "The bees stand beside the plum tree", "quote": "the bees stand beside it", "page": GARDEN},
        ],
    ),
    (
        [
            "The studio moved to the second floor, and Jonas keeps the spare key.",
            "/todo Send the contract to Jonas by {soon}",
        ],
        [
            {"text": "The studio is on the second floor", "quote": "moved to the second floor", "page": STUDIO},
            {"text": "Jonas keeps the spare key", "quote": "Jonas keeps the spare key", "page": STUDIO},
        ],
    ),
    (
        [
            "Ruth moved to York last week; she found an orchestra there too.",
            "/todo Oil the deck of the Heron",
            "The parking permit at the harbour is valid until {later}.",
        ],
        [
            {
                "action": "replace",
                "text": "Ruth lives in York",
                "quote": "Ruth moved to York last week",
                "about": "lives in Bristol",
                "page": {"path": "concrete/people/ruth.md"},
            },
            {
                "text": "The parking permit at the harbour is valid until {later}",
                "quote": "parking permit at the harbour is valid until {later}",
                "page": BOAT,
                "valid_until": "{later}",
            },
        ],
    ),
    (
        [
            "We moved the Heron, she lies at pier 9 now. The new mooring costs 340 a year.",
            "Mira's birthday is on the third of May. I lent Tom forty euros.",
        ],
        [
            {
                "action": "replace",
                "text": "The Heron lies at pier 9",
                "quote": "she lies at pier 9 now",
                "about": "lies at pier 7",
                "page": {"path": "concrete/things/boat.md"},
            },
            {"text": "The mooring costs 34 a month", "quote": "new mooring costs 340 a year", "page": BOAT},
            {
                "text": "Mira's birthday is on the third of May",
                "quote": "birthday is on the third of May",
                "page": MIRA,
            },
        ],
    ),
]


class Model:
    """What stands for a model: it makes of a day's words what `DAYS` says, and answers what it is told to."""

    def __init__(self) -> None:
        self.operations: list[dict[str, Any]] = []
        self.answer = "I will remember that."

    def __call__(self, request: Captured) -> Behaviour:
        """Answer a request by its purpose."""
        text = request.text
        if "You keep a person's long-term memory" in text:
            said = re.findall(r"\(id (e\d+)\).*?\nUser:\n> (.*?)\n", text, re.DOTALL)
            known = re.findall(r"\[(s\d+)\] (.*)", text)
            operations = [each for one in self.operations for each in self._operation(one, said, known)]
            return say_json({"operations": operations})
        answers: dict[str, Any] = {
            "You note what one new exchange adds": {"facts": [], "thoughts": "Noted."},
            "You write the searches": {"queries": ["Ruth", "Heron"]},
            "You name one page": {"kind": "concrete", "title": "Notes", "folder": "notes"},
            "how long-term memory could be ordered": {"proposals": []},
        }
        if found := next((answer for words, answer in answers.items() if words in text), None):
            return say_json(found)
        if "Summar" in text[:3000] and not request.body.get("tools"):
            return say_json({"text": "The user told of the Heron, of Ruth and of the studio."})
        return say(self.answer)

    @staticmethod
    def _operation(
        one: dict[str, Any], said: list[tuple[str, str]], known: list[tuple[str, str]]
    ) -> list[dict[str, Any]]:
        """Return an operation with the ids of this request; none where its words were said in another one."""
        exchanges = [name for name, words in said if one["quote"] in words]
        ids = [name for name, words in known if one.get("about", "\n") in words]
        given = {key: value for key, value in one.items() if key not in ("quote", "about")}
        evidence = [{"exchange": name, "quote": one["quote"]} for name in exchanges[:1]]
        return [{"action": "new", "subject": "User", **given, "ids": ids, "evidence": evidence}] if exchanges else []


def filled(value: Any, days: dict[str, str]) -> Any:
    """Return texts with their days in."""
    if isinstance(value, str):
        return value.format(**days)
    if isinstance(value, dict):
        return {key: filled(each, days) for key, each in value.items()}
    return [filled(each, days) for each in value] if isinstance(value, list) else value


def play(world: World, model: Model) -> None:
    """Let twelve days pass in a brain, up to now."""
    now = SYSTEM.now()
    world.clock = ManualClock(now - timedelta(days=12))
    days = {"soon": (now + timedelta(days=2)).date().isoformat(), "later": (now + timedelta(days=5)).date().isoformat()}
    for number, (prompts, operations) in enumerate(DAYS):
        model.operations = filled(operations, days)
        for line, text in enumerate(filled(prompts, days)):
            world.drop(f"{number}-{line}.md", text)
            world.run()
            world.clock.advance(1800)
        world.cli("promote")
        world.tick(2 * DAY)
    world.drop("tom.md", "/forget Tom forty euros")
    model.answer = f"Ruth lives in York now ({_link(world, 'people/ruth', 'York')})."
    world.drop("harbour/1.md", "Does Ruth still live in Bristol?")
    world.run()
    model.answer = (
        f"At pier 9 ({_link(world, 'things/boat', 'pier 9')}). Her winter cover is in the shed behind "
        f"the sail loft ({_link(world, 'things/boat', 'cover')})."
    )
    world.drop("harbour/2.md", "Where does the Heron lie, and what must I think of before we sail?")
    world.run()
    world.clock.advance((now - world.clock.now()).total_seconds() - 5400)
    world.cli("correct", "Mira can come along to Gotland in June", "--to", "Mira can come along to Gotland in July")


def _link(world: World, page: str, words: str) -> str:
    """Return a link to the statement of a page that has some words, as an answer has it."""
    path = f"memory/long_term/concrete/{page}.md"
    statements = parse_memory(path, world.tree()[path]).current_statements
    block = next(each.block_id for each in statements if words in each.text)
    return f"[{page.rpartition('/')[2].capitalize()}]({path}#^{block})"


# name, page, whether dark, size, and what is done there first
Act = Callable[[Visitor], object]
SHOTS: dict[str, tuple[str, str, dict[str, int], Act]] = {
    "today-light": ("/", "light", WIDE, lambda visitor: _ask(visitor)),
    "today-dark": ("/", "dark", WIDE, lambda visitor: None),
    "ask-light": ("/ask?in=harbour", "light", WIDE, lambda visitor: None),
    "review-dark": ("/review", "dark", WIDE, lambda visitor: None),
    "why-light-phone": ("/why?name=The+Heron+lies+at+pier+9", "light", NARROW, lambda visitor: None),
    "timeline-dark-phone": ("/timeline", "dark", NARROW, lambda visitor: None),
}


def _ask(visitor: Visitor) -> None:
    """Ask something, and wait for what it rests on."""
    visitor.send("Where is the winter cover of the Heron?")
    visitor.await_text("It rests on")


def main() -> None:
    """Make the brain and the pictures."""
    with tempfile.TemporaryDirectory() as folder, ChatServer() as server, chromium() as browser:
        model = Model()
        server.default = by_request(model)
        world = World(Path(folder))
        places = {f"XDG_{name.upper()}_HOME": str(world.home / name) for name in ("state", "cache", "config")}
        os.environ |= {**places, "OPENAI_API_KEY": "none"}
        config = world.home / "config/brainiac/config.yaml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(f"api_bases: {{openai: {server.url}}}\n")
        set_sections(world.root, CONFIG)
        play(world, model)
        model.answer = f"In the shed behind the sail loft ({_link(world, 'things/boat', 'cover')})."
        FOLDER.mkdir(exist_ok=True)
        with windowed(world.root):
            for name, (path, scheme, size, act) in SHOTS.items():
                with visiting(browser, world.root, viewport=size, color_scheme=scheme) as visitor:
                    visitor.go(path)
                    act(visitor)
                    visitor.page.mouse.move(0, 0)
                    visitor.page.evaluate("document.activeElement.blur()")
                    file = FOLDER / f"{name}.png"
                    visitor.page.screenshot(path=file)
                    assert file.stat().st_size <= MAX_BYTES, name


if __name__ == "__main__":
    main()
