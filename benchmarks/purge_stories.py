"""A brain lives a while with a secret, and purges it: are its words anywhere afterwards?

    python benchmarks/purge_stories.py [--stories 200] [--kills 200] [--pairs 50] [--seconds 3600] [--seed 1] [--show]

Each story says two words that nobody else says in a random order of ways: told, noted, noted by an assistant,
imported, made a statement by a model, reworded, retitled, moved and deleted by hand with and without a run in between,
revised, ticked, corrected, undone, forgotten before. Then they are purged: by the words, by one of them, or by the
exchange or the page that alone had them. Looked through are the bytes of brain, state and cache folder with the names
of their files, every text of the journal, and what the commands print; then all of it once more after the index was
built anew. Things that others said must still stand.

`--kills` are stories whose purge is killed (SIGKILL) at a random one of its operations on the disk between its first
write and its last, and carried on by the next start. `--pairs` are stories of two devices: while one purges, the other
edits, moves, asks, notes and deletes offline; then they sync in any order and run. A story is told of on stderr when it
ends; after `--seconds` no other begins. The last line printed is one line of JSON.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import re
import shlex
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks.crash_person import word
from brainiac.errors import BlobError
from brainiac.events import RecordedChange
from brainiac.testing import Said, World
from tests.support.exports import chatgpt, write_json
from tests.support.models import set_sections

SAYINGS = (
    "My neighbour {a} hides something under the {b} of the garden.",
    "The {b} of {a} opens at nine on weekdays.\n\nAsk there for the key.",
    "I gave the {a} to Lena, who keeps it beside her {b}.",
    "Das {a} steht neben dem {b} im Keller.",
    "Meet {a} at the {b}: bring the letter! And do not tell anybody.",
)
BYSTANDERS = (
    "I prefer tea over coffee in the morning.",
    "My bicycle has a flat tyre since Tuesday.",
    "The ferry to the island leaves at half past seven.",
)
PAGE = "---\ntags: [{tag}]\nplace: '{place}'\n---\n\n# {title}\n\n{text}\n"
LONG_TERM = "memory/long_term/concrete"
MAX_SHOWN = 3  # moments at which each page is shown


@dataclass
class Result:
    """What became of one story.

    Attributes:
        steps: How often each step was done.
        texts: How many texts were destroyed.
        named: What was purged: `words`, `word`, `exchange` or `page`; `killed` or `pair` for words in such a story.
        kills: How often the purge was killed after its first write.
        found: Where words were found afterwards.
        complaints: What `doctor` said, and what went wrong in a command.
        lost: What others said and is gone.
    """

    steps: Counter[str] = field(default_factory=Counter)
    texts: int = 0
    named: str = ""
    kills: int = 0
    found: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


class Story:
    """A brain with a secret.

    Args:
        folder: For the brain and its machine.
        seed: Decides everything that happens.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance, self.result = random.Random(seed), Result()
        accent = self.chance.choice(["", "", "ä", "é"])
        self.a, self.b = f"{word(2 * seed)}{accent}", word(2 * seed + 1)
        self.world = World(folder.resolve())
        self.root = self.world.root
        set_sections(self.root, "recall: {embedder: none}\n")
        self.number, self.exports = 0, folder / "exports"
        self.former_problems: set[str] = set()  # before the purge: of pages by hand that no daemon completed
        self.command("run", "--once")

    # --- what a person has at hand ------------------------------------------------------------------------------

    def command(self, *arguments: str) -> Said:
        """Run a command some minutes later; one that fails with a bug is a complaint."""
        self.world.clock.advance(60 * self.chance.randint(1, 200))
        done = self.world.cli(*arguments)
        if done.code not in (0, 1, 2) or re.search(r"\bbug\b", done.err) or "Traceback" in done.err + done.out:
            self.result.complaints.append(f"{shlex.join(arguments)}: {done.code} {done.err[-300:]}")
        return done

    def problems(self) -> set[str]:
        """Return what `doctor` finds wrong."""
        found = json.loads(self.command("doctor", "--json").out)["problems"]
        # what a page by hand lacks only a daemon adds; a link of theirs to a page that is gone a person mends
        theirs = re.compile("lacks|links to")
        return {f"{problem['path']}: {problem['what']}" for problem in found if not theirs.search(problem["what"])}

    def saying(self) -> str:
        return self.chance.choice(SAYINGS).format(a=self.a, b=self.b)

    def line(self) -> str:
        return self.saying().partition("\n")[0]

    def name(self) -> str:
        """Return a name for a file; some have the words."""
        self.number += 1
        return f"{self.number}-{self.a}-{self.b}" if self.chance.random() < 0.3 else f"{self.number}-note"

    def live(self) -> None:
        """Let the brain notice, or not: then the next step comes upon an edit that nobody saw."""
        if self.chance.random() < 0.7:
            self.command("run", "--once")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def files(self, top: str, *, with_secret: bool = True) -> list[Path]:
        """Return the pages below a folder; those with the secret unless all are wanted."""
        found = sorted((self.root / top).rglob("*.md"))
        found = [file for file in found if file.name not in ("_index.md", "review.md", "short_term.md", "decoy.md")]
        return [file for file in found if not with_secret or self.holds(file.read_bytes())]

    def holds(self, content: bytes) -> bool:
        return self.a.encode() in content and self.b.encode() in content

    # --- steps --------------------------------------------------------------------------------------------------

    def tell(self) -> None:
        self.write(f"inbox/{self.name()}.md", self.saying() + "\n")
        self.live()

    def remember(self) -> None:
        self.write(f"inbox/{self.name()}.md", f"/remember {self.line()}\n")
        self.live()

    def todo(self) -> None:
        self.write(f"inbox/{self.name()}.md", f"/todo paint the {self.b} with {self.a}\n")
        self.live()

    def keep_private(self) -> None:
        self.write(f"inbox/{self.name()}.md", f"---\nprivate: true\n---\n{self.saying()}\n")
        self.live()

    def tag_prompt(self) -> None:
        self.write(f"inbox/{self.name()}.md", f"---\nabout: {self.a} {self.b}\n---\nThe sun shines today in Rome.\n")
        self.live()

    def note(self) -> None:
        self.write(f"inbox/notes/{self.name()}.md", f"# Walk\n\n{self.saying()}\n\nIt rained all day long.\n")
        self.live()

    def hear(self) -> None:
        """Let an assistant note it."""
        meta = "---\norigin: assistant\nby: claude\n---\n"
        self.write(f"inbox/notes/{self.name()}.md", f"{meta}{self.saying()}\n")
        self.live()

    def utf16(self) -> None:
        (self.root / f"inbox/{self.name()}.md").write_bytes(self.saying().encode("utf-16"))
        self.live()

    def ask(self) -> None:
        self.write(f"inbox/{self.name()}.md", f"Where is the {self.b} of {self.a}?\n")
        self.live()

    def ask_vaguely(self) -> None:
        self.write(f"inbox/{self.name()}.md", "What does my neighbour hide in the garden, and who keeps the key?\n")
        self.live()

    def revise(self) -> None:
        for file in self.files("inbox")[:1]:
            if "response" not in file.name:
                clean = self.chance.random() < 0.5
                file.write_text("Never mind what I said.\n" if clean else f"{self.saying()}\nIt is blue, by the way.\n")
        self.live()

    def tick(self) -> None:
        self._edit_short_term(lambda line: line.replace("- [ ]", "- [x]"))

    def reword_task(self) -> None:
        self._edit_short_term(lambda line: "- [ ] paint something else instead")

    def _edit_short_term(self, edited: Callable[[str], str]) -> None:
        file = self.root / "memory/short_term.md"
        lines = file.read_text("utf-8").split("\n")
        lines = [edited(x) if x.startswith("- [ ]") and self.a in x else x for x in lines]
        file.write_text("\n".join(lines), "utf-8")
        self.live()

    def summarize(self) -> None:
        file = self.root / "memory/short_term.md"
        file.write_text(file.read_text("utf-8").replace("## Summary\n", f"## Summary\n{self.line()}\n\n", 1), "utf-8")
        self.live()

    def make_page(self) -> None:
        has_title = self.chance.random() < 0.3
        title = f"The {self.a} and the {self.b}" if has_title else "Things of mine"
        text = f"- {self.line()}\n- {self.line()}\n\n{self.saying()}\n\n## Other\n\n- The cat sleeps.\n"
        place = f"{self.a} {self.b}" if self.chance.random() < 0.3 else "home"
        self.write(f"{LONG_TERM}/{self.name()}.md", PAGE.format(tag="garden", place=place, title=title, text=text))
        self.live()

    def reword(self) -> None:
        """Take the secret out of a page, or say it in other words."""
        for file in self.files("memory/long_term")[:2]:
            text = file.read_text("utf-8")
            other = "It is nothing." if self.chance.random() < 0.7 else f"{self.b}, said {self.a} to everybody."
            lines = [other if self.holds(x.encode()) and x[:1] not in "*>" else x for x in text.split("\n")]
            file.write_text("\n".join(lines), "utf-8")
        self.live()

    def retitle(self) -> None:
        for file in self.files("memory/long_term", with_secret=False)[-1:]:
            title = f"# {self.a} at the {self.b}" if self.chance.random() < 0.5 else "# Stones and such"
            text = re.sub(r"^# .*$", title, file.read_text("utf-8"), count=1, flags=re.MULTILINE)
            file.write_text(text, "utf-8")
        self.live()

    def move(self) -> None:
        for file in self.files("memory/long_term")[:1]:
            if "events" not in file.parts:
                (self.root / LONG_TERM / "moved").mkdir(exist_ok=True)
                file.rename(self.root / LONG_TERM / "moved" / f"{self.name()}.md")
        self.live()

    def add_value(self) -> None:
        for file in self.files("memory/long_term", with_secret=False)[:1]:
            text = file.read_text("utf-8")
            if text.startswith("---\n"):
                value = f"nickname: {self.a} of {self.b}\n" if "nickname" not in text else ""
                file.write_text(re.sub(r"^nickname: .*\n", "", "---\n" + value + text[4:], flags=re.M), "utf-8")
        self.live()

    def link(self) -> None:
        """Link to a page from another one, as a person does."""
        targets = [file for file in self.files("memory/long_term") if file.parent.name == "concrete"]
        for file in targets[:1]:
            self.write(f"{LONG_TERM}/party.md", f"# Party\n\nFor the party see [that]({quote(file.name)}) and cook.\n")
        self.live()

    def delete(self) -> None:
        for file in self.files("memory/long_term")[:1]:
            file.unlink()
        self.live()

    def discard(self) -> None:
        """Delete prompts by hand."""
        for file in self.files("inbox")[:2]:
            file.unlink()
        self.live()

    def correct(self) -> None:
        self.command("correct", f"{self.a} {self.b}", "--to", self.chance.choice([self.line(), "It was all invented."]))

    def promote(self) -> None:
        self.command("promote")

    def promote_by_model(self) -> None:
        """Let a model put what was said into its own words."""
        from brainiac_plugins.promotion.run import promote

        from tests.support.promotions import ScriptedEngine, set_model, with_model

        engine = ScriptedEngine()
        engine.on(self.a, "new", "", text=f"According to the user, {self.a} has to do with a {self.b}.")
        engine.on(self.a, "replace", self.b, text=f"Something about {self.a} and the {self.b} has changed.")
        config = self.root / "system/config.yaml"
        before = config.read_text()
        set_model(self.root)
        with self.world.opened() as brain:
            promote(with_model(brain, engine))
        config.write_text(before)

    def organize(self) -> None:
        self.command("organize")

    def bring_in(self) -> None:
        title = f"{self.a} {self.b}" if self.chance.random() < 0.4 else "Lisbon"
        turns = [("What is a ferry?", "A boat."), (self.saying(), f"So the {self.b} belongs to {self.a}.")]
        self.number += 1
        path = write_json(self.exports / f"{self.number}.json", [chatgpt(f"c{self.number}", turns, title=title)])
        self.command("import", str(path))

    def undo(self) -> None:
        self.command("undo", "--last")

    def forget(self) -> None:
        self.command("forget", f"{self.a} {self.b}", "--yes")

    def ask_to_forget(self) -> None:
        self.write(f"inbox/{self.name()}.md", f"/forget {self.a} {self.b}\n")
        self.live()

    def crash(self) -> None:
        """Leave a temporary file, as a process that was killed does."""
        self.write(f"{self.chance.choice(['inbox', 'memory'])}/.brainiac-0{self.number}-note.md", self.saying())

    def search(self) -> None:
        self.command("search", f"{self.a} {self.b}")
        self.command("context", self.line())

    # --- the purge ----------------------------------------------------------------------------------------------

    def live_a_while(self) -> None:
        """Say things, first and last what others said."""
        for text in BYSTANDERS:
            self.write(f"inbox/by-{len(text)}.md", text + "\n")
        self.write(f"{LONG_TERM}/decoy.md", f"# Decoy\n\n- {self.a} is a fine word.\n- So is tea. {BYSTANDERS[0]}\n")
        self.command("run", "--once")
        steps = [*FIRST, *(self.chance.choice(STEPS) for _ in range(self.chance.randint(4, 14)))]
        for step in steps:
            self.result.steps[step.__name__] += 1
            step(self)

    def purge(self) -> None:
        """Purge the secret, by what was named."""
        self.result.named = self.chance.choice(["words", "words", "words", "word"])
        named = f"{self.a} {self.b}" if self.result.named == "words" else self.b
        self._purge(named)

    def _purge(self, named: str) -> None:
        self.former_problems = self.problems()
        self._prove(is_forgotten=False)
        done = self.command("forget", named, "--purge", "--yes", "--json")
        if not done.code:
            self.result.texts = done.json["texts"]
        elif "names no exchange" not in done.err:  # else an edit took all of it away unseen
            self.result.complaints.append(f"purge: {done.err or done.out}")

    def purge_killed(self) -> None:
        """Purge by the words; the process is killed on its way, and the next start carries on what it began."""
        self.result.named = "killed"
        self.former_problems = self.problems()
        command = ("forget", f"{self.a} {self.b}", "--purge", "--yes")
        # a purge has from 30 to some hundred operations; one that is over before is no kill
        at, how = self.chance.randint(1, 150), self.chance.choice(["before", "torn", "after"])
        is_killed = self.world.kill(at, how, *command)
        with self.world.opened() as brain:
            has_begun = bool(brain.database.kept("purges"))
        self.result.kills = int(is_killed and has_begun)
        self.command("run", "--once")
        if not has_begun:  # before its first write, or after its last
            self.command(*command)

    def purge_apart(self) -> None:
        """Purge by the words while another device, which does not know of it, goes on with them; then let them meet."""
        self.result.named = "pair"
        self.former_problems = self.problems()
        here, there = self.world, self.world.device("desk")
        there.run()
        self.world, self.root = there, there.root
        for _ in range(self.chance.randint(1, 5)):
            step = self.chance.choice(OFFLINE)
            self.result.steps[step.__name__] += 1
            step(self)
        if self.chance.random() < 0.5:
            self.command("run", "--once")
        self.world, self.root = here, here.root
        if self.chance.random() < 0.3:  # what the other device wrote comes before
            here.sync(there)
            self.command("run", "--once")
        self.command("forget", f"{self.a} {self.b}", "--purge", "--yes")
        for _ in range(2):
            here.sync(there)
            for device in self.chance.sample([here, there], 2):
                self.world, self.root = device, device.root
                self.command("run", "--once")
                here.sync(there)
        for device in (there, here):
            self.world, self.root = device, device.root
            self._look_at_files(f"on the {device.folder.name}")

    def purge_one(self) -> None:
        """Tell the secret in one place alone, change it there, and purge that place."""
        self.result.named = self.chance.choice(["exchange", "page"])
        is_page = self.result.named == "page"
        path = f"{LONG_TERM}/things.md" if is_page else "inbox/things.md"
        for _ in range(self.chance.randint(1, 4)):
            before = (self.root / path).read_text("utf-8") if (self.root / path).exists() else ""
            meta = before[: before.find("\n---\n", 3) + 5] if before.startswith("---\n") else ""
            self.write(path, f"{meta}\n# Things\n\n- {self.line()}\n" if is_page else self.saying())
            self.live()
            if self.chance.random() < 0.4:
                self.chance.choice([Story.promote, Story.promote_by_model, Story.organize])(self)
        self.command("run", "--once")
        if self.chance.random() < 0.5:
            clean = "Nothing to see here."
            self.write(path, (self.root / path).read_text("utf-8").replace(self.line(), clean))
            self.command("run", "--once")
        if is_page and not (self.root / path).exists():
            path = str(next(f for f in self.files("memory", with_secret=True))).removeprefix(f"{self.root}/")
        self._purge(path)

    # --- afterwards ---------------------------------------------------------------------------------------------

    def look_everywhere(self) -> None:
        """Search files and commands, also after the index was built anew."""
        self._look_at_files("at once")
        self._look_at_commands()
        self.command("reindex")
        self.command("run", "--once")
        self._look_at_files("later")
        self._prove(is_forgotten=True)
        self.result.complaints += [f"doctor: {line}" for line in self.problems() - self.former_problems]
        everything = "\n".join(file.read_text("utf-8", "replace") for file in self.root.rglob("*.md"))
        self.result.lost += [text for text in BYSTANDERS if text not in everything]
        if self.result.named in ("words",) and f"{self.a} is a fine word." not in everything:
            self.result.lost.append("decoy")

    def _look_at_files(self, when: str) -> None:
        for path in (*self.root.rglob("*"), *self.world.home.rglob("*")):
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            self._look_at(f"{when}: {path}", content + b"\n" + os.fsencode(path.name))
            if path.name.startswith("state.db"):
                for packed in re.findall(rb'"([A-Za-z0-9+/=]{16,})"', content):
                    with suppress(ValueError):
                        self._look_at(f"{when}: {path} (packed)", base64.b64decode(packed))
        with self.world.opened() as brain:
            for digest in brain.journal.blobs.digests():
                with suppress(BlobError):  # a splice whose base another device destroyed: nobody can read it
                    self._look_at(f"{when}: blob {digest}", brain.journal.blobs.get(digest))

    def _prove(self, *, is_forgotten: bool) -> None:
        """Have the program look for the words itself, and tell where it errs."""
        proof = self.command("prove", "forgotten", self.b, "--json")
        if proof.code != (0 if is_forgotten else 1):
            found = proof.json["found"][:3] if proof.out.startswith("{") else proof.err
            self.result.complaints.append(f"prove forgotten, {is_forgotten=}: {proof.code}, {found}")

    def _look_at(self, where: str, content: bytes) -> None:
        folded = content.lower()
        for form in forms(self.b):
            if form in folded:
                at = folded.index(form)
                self.result.found.append(f"{where}: {content[max(at - 80, 0) : at + 80]!r}")
                return

    def _look_at_commands(self) -> None:
        with self.world.opened() as brain:
            events = list(brain.journal.events())
        changes: list[RecordedChange] = [change for event in events for change in event.changes]
        pages = sorted({change.path for change in changes if change.path.startswith("memory/")})
        moments = sorted({event.at for event in events})
        self._ask("log", "--all", "-n", "10000")
        self._ask("log", "--json", "-n", "10000")
        for page in pages:
            for at in self.chance.sample(moments, min(MAX_SHOWN, len(moments))):
                self._ask("show", page, "--at", at)
        for at in self.chance.sample(moments, min(MAX_SHOWN, len(moments))):
            self._ask("diff", "--since", at)
        self._ask("search", f"{self.a} {self.b}", "--json")
        self._ask("why", f"{self.a} {self.b}")
        for file in self.files(LONG_TERM, with_secret=False)[:3]:
            self._ask("why", str(file.relative_to(self.root)))
        for command in ("digest", "status", "costs"):
            self._ask(command)
        for event in [event for event in events if event.kind in ("texts-purged", "exchange-forgotten")][-2:]:
            done = self._ask("undo", event.id)
            if done.code == 0 and event.kind == "texts-purged":
                self.result.complaints.append("the purge was undone")
        self._ask("undo", "--last")

    def _ask(self, *arguments: str) -> Said:
        """Run a command and look for the words in what it says, its own arguments left out."""
        done = self.command(*arguments)
        printed = done.out + done.err
        for argument in arguments:
            printed = printed.replace(argument, "").replace(json.dumps(argument), "").replace(repr(argument), "")
        self._look_at(shlex.join(arguments), printed.encode("utf-8", "replace"))
        return done


FIRST = (Story.tell,)
STEPS = (
    Story.tell, Story.tell, Story.remember, Story.todo, Story.keep_private, Story.tag_prompt, Story.note, Story.hear,
    Story.utf16, Story.ask, Story.ask_vaguely, Story.revise, Story.revise, Story.tick, Story.reword_task,
    Story.summarize, Story.make_page, Story.make_page, Story.reword, Story.reword, Story.retitle, Story.move,
    Story.add_value, Story.link, Story.delete, Story.discard, Story.correct, Story.promote, Story.promote,
    Story.promote_by_model, Story.organize, Story.bring_in, Story.undo, Story.forget, Story.ask_to_forget,
    Story.crash, Story.search,
)  # fmt: skip


def forms(text: str) -> Iterator[bytes]:
    """Yield the bytes that a word may be written in, in lower case."""
    for form in ("NFC", "NFD"):
        written = unicodedata.normalize(form, text)
        yield from (written.encode(), json.dumps(written)[1:-1].encode(), quote(written).lower().encode())
        yield written.encode("utf-16-le")


OFFLINE = (
    Story.tell, Story.note, Story.remember, Story.ask, Story.ask_vaguely, Story.revise, Story.reword_task,
    Story.make_page, Story.reword, Story.reword, Story.retitle, Story.move, Story.move, Story.delete, Story.discard,
    Story.correct,
)  # fmt: skip


def tell_story(folder: Path, seed: int, kind: str = "") -> Result:
    """Live one story, purge, and return what was found afterwards.

    Args:
        folder: For the brain and its machine.
        seed: Decides everything that happens.
        kind: `kills` or `pairs`; "" for a purge that nothing disturbs.
    """
    story = Story(folder, seed)
    if seed % 5 == 4 and not kind:
        for text in BYSTANDERS:
            story.write(f"inbox/by-{len(text)}.md", text + "\n")
        story.command("run", "--once")
        story.purge_one()
    else:
        story.live_a_while()
        {"kills": story.purge_killed, "pairs": story.purge_apart}.get(kind, story.purge)()
    story.look_everywhere()
    return story.result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stories", type=int, default=200)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what was found")
    options = parser.parse_args()
    results: list[Result] = []
    begun, seed = time.monotonic(), options.seed
    left = {"": options.stories, "kills": options.kills, "pairs": options.pairs}
    while any(count > 0 for count in left.values()) and time.monotonic() < begun + options.seconds:
        kind = max(left, key=left.__getitem__)
        with tempfile.TemporaryDirectory() as name:
            result = tell_story(Path(name), seed, kind)
        results.append(result)
        left[kind] -= result.kills if kind == "kills" else 1
        found = f"{len(result.found)} found, {len(result.complaints)} complaints, {len(result.lost)} lost"
        print(f"{time.monotonic() - begun:.0f} s, {seed} {result.named}: {found}", file=sys.stderr, flush=True)
        if options.show and (result.found or result.complaints or result.lost):
            print(seed, result.named, dict(result.steps))
            for line in (*result.found[:8], *result.complaints[:6], *result.lost):
                print("   ", line[:600], flush=True)
        seed += 1
    named = Counter(result.named for result in results)
    print(
        json.dumps(
            {
                "stories": len(results),
                "steps": sum(result.steps.total() for result in results),
                "named": dict(named),
                "kills": sum(result.kills for result in results),
                "texts_destroyed": sum(result.texts for result in results),
                "found": sum(len(result.found) for result in results),
                "stories_with_words": sum(bool(result.found) for result in results),
                "complaints": sum(len(result.complaints) for result in results),
                "lost": sum(len(result.lost) for result in results),
            }
        )
    )


if __name__ == "__main__":
    main()
