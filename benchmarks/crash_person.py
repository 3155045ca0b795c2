"""The person of a crash run: talks, takes notes and edits files, and notes all of it in the book.

Acts on files alone, as a person with an editor does; nothing of Brainiac is imported.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.crash_judge import STM, Book, Prompt

LONG_TERM = "memory/long_term"
CONVERSATIONS = ("", "garden/", "work/", "travel/")
SAYINGS = (
    "Remember {}.",
    "I live in {}.",
    "I moved to {} last week.",
    "My sister works at {}.",
    "I decided to plant {} by the wall.\nIt needs shade.\n\n- and water\n- and time",
    "Where did I put {}?",
    "Das Regal {} steht im Keller.",
    "- [ ] buy {}",
    "```\nlet {} = 1\n```",
)
_WORD = re.compile(r"zz[a-z]{8}")
_ITEM = re.compile(r"^- .*$", re.MULTILINE)
_EVENT = re.compile(r"^### \S+\n<!-- event: (\S+) -->\n", re.MULTILINE)

Placing = Callable[[str, str], str]


def word(number: int) -> str:
    """Return a word that nobody else says; none is part of another."""
    letters = ""
    for _ in range(4):
        number, syllable = divmod(number, 100)
        letters += "bcdfghjklmnprstvwxyz"[syllable // 5] + "aeiou"[syllable % 5]
    return f"zz{letters}"


@dataclass
class Buffer:
    """A file in an editor: what the editor holds, whatever became of the file since."""

    path: str
    text: str
    saves_left: int


@dataclass
class Person:
    """Who uses the brain: acts on files alone, and notes in the book what was done.

    Args:
        root: The brain.
        book: What was said and written.
    """

    root: Path
    book: Book
    chance: random.Random = field(default_factory=random.Random)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    number: int = 0

    def act(self, seed: str) -> None:
        """Do one thing, chosen by a seed of its own, so that the plan does not follow the daemon's speed."""
        self.chance = random.Random(seed)
        acts, weights = zip(*ACTS.items(), strict=True)
        self.chance.choices(acts, weights)[0](self)

    def word(self) -> str:
        self.number += 1
        return word(self.number)

    # --- what is said ---------------------------------------------------------------------------------------

    def ask(self) -> None:
        """Drop a prompt."""
        self._say("", "")

    def capture(self) -> None:
        """Drop a note that is remembered, not answered."""
        self._say("notes/", "")

    def ask_privately(self) -> None:
        """Drop a prompt that no remote model may see."""
        self._say(self.chance.choice(CONVERSATIONS), "private: true")

    def ask_off_record(self) -> None:
        """Drop a prompt of which nothing may be kept."""
        self._say(self.chance.choice(CONVERSATIONS), "remember: false")

    def _say(self, folder: str, head: str) -> None:
        name = self.word()
        path = f"inbox/{folder or self.chance.choice(CONVERSATIONS)}{len(self.book.prompts)}.md"
        text = self.chance.choice(SAYINGS).format(name)
        self.book.prompts[path] = Prompt(path, head, [name], [text])
        self._drop(path, f"---\n{head}\n---\n{text}\n" if head else f"{text}\n")

    def revise(self) -> None:
        """Save a prompt again that was answered."""
        known = [p for p in self.book.prompts.values() if not p.is_capture and self._is_answered(p)]
        if not known:
            return self.ask()
        prompt, name = self.chance.choice(known[-12:]), self.word()
        text = self.chance.choice(SAYINGS).format(name)
        prompt.words.append(name)
        prompt.texts.append(text)
        prompt.is_answer_deleted = False
        self._drop(prompt.path, f"---\n{prompt.head}\n---\n{text}\n" if prompt.head else f"{text}\n")
        return None

    def _is_answered(self, prompt: Prompt) -> bool:
        return (self.root / prompt.path.replace(".md", ".response.md")).is_file()

    def delete_answer(self) -> None:
        """Delete an answer, which asks for no other."""
        known = [p for p in self.book.prompts.values() if len(p.texts) == 1 and self._is_answered(p)]
        if known:
            prompt = self.chance.choice(known[:-3] or known)
            (self.root / prompt.path.replace(".md", ".response.md")).unlink(missing_ok=True)
            prompt.is_answer_deleted = True

    def _drop(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if self.chance.random() < 0.15:
            target.write_text(text)
            return
        aside = self.root / ".dropped"
        aside.write_text(text)
        aside.rename(target)

    # --- what is written by hand ----------------------------------------------------------------------------

    def edit_short_term(self) -> None:
        """Add a line somewhere in short-term memory."""
        self._add(STM, self.chance.choice(PLACES), "")

    def mark_short_term(self) -> None:
        """Add a private line to short-term memory."""
        self._add(STM, self.chance.choice((in_summary, in_facts)), " <!-- private -->")

    def edit_page(self) -> None:
        """Add a line to a page, or make one."""
        if (pages := self._pages()) and self.chance.random() < 0.8:
            self._add(self.chance.choice(pages), self.chance.choice((at_end, below_title)), "")
        else:
            name = self.word()
            path = f"{LONG_TERM}/concrete/hand-{self.number}.md"
            self.book.lines[name] = path
            self._save(path, f"# Page {self.number}\n\n- Kept by hand: {name}.\n")

    def open_buffer(self) -> None:
        """Open a file in an editor, to be saved later and again from what the editor holds."""
        path = self.chance.choice([STM, STM, *self._pages()[-4:]])
        text = self._read(path)
        if text is not None and path not in self.buffers:
            self.buffers[path] = Buffer(path, text, self.chance.randint(1, 3))

    def save_buffer(self) -> None:
        """Add a line in an editor that was opened before, and save what it holds."""
        if not self.buffers:
            return self.open_buffer()
        path = self.chance.choice(sorted(self.buffers))
        place = self.chance.choice(PLACES if path == STM else (at_end, below_title))
        return self._add(path, place, "")

    def save_twice(self) -> None:
        """Save two times in a row, each time with a line more."""
        path = self.chance.choice([STM, *self._pages()[-3:]])
        self._add(path, at_end if path != STM else in_corner, "")
        self._add(path, at_end if path != STM else in_corner, "")

    def tick(self) -> None:
        """Tick a task that was written by hand."""
        text = self._now(STM)
        own = [one for one in _ITEM.findall(text or "") if one.startswith("- [ ] Task by hand")]
        if text is not None and own:
            self._save(STM, text.replace(own[-1], own[-1].replace("[ ]", "[x]"), 1))

    def delete_line(self) -> None:
        """Take out a line that was written by hand."""
        path = self.chance.choice([STM, *self._pages()[-6:]])
        text = self._now(path)
        own = [one for one in _ITEM.findall(text or "") if "by hand" in one]
        if text is None or not own:
            return
        gone = self.chance.choice(own)
        after = text.replace(gone + "\n", "", 1)
        for name in set(_WORD.findall(text)) - set(_WORD.findall(after)):
            self.book.removed[name] = path
        self._save(path, after)

    def delete_event(self) -> None:
        """Take an older exchange out of short-term memory."""
        text = self._now(STM)
        events = list(_EVENT.finditer(text or ""))
        if text is None or len(events) < 5:
            return
        event = events[-1]  # the oldest: with the newest gone a save would look like one from before it
        gone = text[event.start() :]
        if "\n## " in gone:  # something of the person's own stands below
            return
        for name in _WORD.findall(gone):
            self.book.removed[name] = STM
        self._save(STM, text[: event.start()])

    def delete_page(self) -> None:
        """Delete a page that was made by hand."""
        own = [path for path in self._pages() if "/hand-" in path and path not in self.buffers]
        if len(own) > 3:
            path = self.chance.choice(own[:-2])
            for name in _WORD.findall(self._read(path) or ""):
                self.book.removed[name] = path
            (self.root / path).unlink(missing_ok=True)

    def _add(self, path: str, place: Placing, mark: str) -> None:
        """Add a line and save: by the editor that has the file open, else on what stands there."""
        text = self._now(path)
        if text is None:
            return
        name = self.word()
        after = place(text, f"{name}{mark}")
        if after == text:
            return
        self.book.lines[name] = path
        if mark:
            self.book.private.add(name)
        self._save(path, after)

    def _now(self, path: str) -> str | None:
        """Return what a save would start from."""
        return self.buffers[path].text if path in self.buffers else self._read(path)

    def _read(self, path: str) -> str | None:
        try:
            text = (self.root / path).read_bytes().decode()
        except (FileNotFoundError, UnicodeDecodeError):
            return None
        return text or None

    def _save(self, path: str, text: str) -> None:
        if buffer := self.buffers.get(path):
            buffer.text, buffer.saves_left = text, buffer.saves_left - 1
            if buffer.saves_left <= 0:
                del self.buffers[path]
        for name in set(_WORD.findall(text)) & self.book.removed.keys():
            del self.book.removed[name]
            self.book.unsure.add(name)
        target = self.root / path
        if not target.parent.is_dir():  # the page was moved meanwhile: an editor that saves makes it anew
            target.parent.mkdir(parents=True, exist_ok=True)
        self.chance.choice(STYLES)(target, text.encode())
        self.book.saves += 1

    def _pages(self) -> list[str]:
        found = sorted((self.root / LONG_TERM).rglob("*.md"))
        names = [path.relative_to(self.root).as_posix() for path in found if path.name != "_index.md"]
        return [name for name in names if "/." not in name]


# --- how a file is saved ------------------------------------------------------------------------------------


def in_place(path: Path, content: bytes) -> None:
    """Truncate and write, as nano does."""
    path.write_bytes(content)


def by_rename(path: Path, content: bytes) -> None:
    """Write aside and rename over, as vim and most others do."""
    aside = path.with_name(f".{path.name}.swp")
    aside.write_bytes(content)
    os.replace(aside, path)


def in_chunks(path: Path, content: bytes) -> None:
    """Truncate and write slowly, as over a network drive."""
    third = len(content) // 3 + 1
    with path.open("wb", buffering=0) as file:
        for start in range(0, len(content), third):
            file.write(content[start : start + third])
            time.sleep(0.015)


STYLES = (in_place, by_rename, by_rename, in_chunks)

# --- where a line is added ----------------------------------------------------------------------------------


def at_end(text: str, name: str) -> str:
    """As `echo >>` does."""
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}- Added by hand: {name}\n"


def below_title(text: str, name: str) -> str:
    """A paragraph below the title."""
    found = re.search(r"^# .*\n", text, re.MULTILINE)
    return f"{text[: found.end()]}\nA remark by hand: {name}\n{text[found.end() :]}" if found else at_end(text, name)


def _below(heading: str, line: str, text: str) -> str:
    return text.replace(f"{heading}\n", f"{heading}\n{line}\n", 1)


def in_summary(text: str, name: str) -> str:
    """A paragraph of the Summary."""
    return text.replace("## Summary\n", f"## Summary\nA summary by hand: {name}\n\n", 1)


def in_facts(text: str, name: str) -> str:
    """A fact."""
    return _below("### Key Facts & Decisions", f"- Fact by hand: {name}", text)


def in_tasks(text: str, name: str) -> str:
    """An open task."""
    return _below("### Tasks", f"- [ ] Task by hand: {name}", text)


def in_corner(text: str, name: str) -> str:
    """A line of a section of the person's own."""
    if "## My corner\n" in text:
        return text.replace("## My corner\n", f"## My corner\n\nKept by hand: {name}\n", 1)
    return text.replace("---\n## Event Log", f"## My corner\n\nKept by hand: {name}\n\n---\n## Event Log", 1)


def between_events(text: str, name: str) -> str:
    """A paragraph above the second exchange."""
    found = list(_EVENT.finditer(text))
    if len(found) < 2:
        return text
    at = found[1].start()
    return f"{text[:at]}A remark by hand between: {name}\n\n{text[at:]}"


def in_event(text: str, name: str) -> str:
    """A label of the person's own in an exchange."""
    found = list(_EVENT.finditer(text))
    at = text.find("**AI:**", found[-1].end()) if found else -1
    return text if at < 0 else f"{text[:at]}**Mood:** by hand {name}\n{text[at:]}"


PLACES: tuple[Placing, ...] = (at_end, in_summary, in_facts, in_tasks, in_corner, in_corner, between_events, in_event)

ACTS: dict[Callable[[Person], None], int] = {
    Person.ask: 30,
    Person.capture: 8,
    Person.ask_privately: 6,
    Person.ask_off_record: 6,
    Person.revise: 6,
    Person.delete_answer: 2,
    Person.edit_short_term: 14,
    Person.mark_short_term: 2,
    Person.edit_page: 8,
    Person.open_buffer: 6,
    Person.save_buffer: 10,
    Person.save_twice: 6,
    Person.tick: 3,
    Person.delete_line: 3,
    Person.delete_event: 2,
    Person.delete_page: 1,
}
