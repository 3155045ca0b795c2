"""What a person did in a crash run, and the judgement of what became of it, by the files alone.

Nothing of Brainiac is imported, here or in tests/support/plain_reader.py: the formats are read from docs/format.md.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.support.openai_server import ChatServer
from tests.support.plain_reader import (
    Blobs,
    Said,
    decoded,
    exchanges,
    folded,
    front_matter,
    is_response,
    is_temporary,
    journal,
    texts,
)

STM = "memory/short_term.md"
HEADINGS = ("## Summary", "### Goals", "### Key Facts & Decisions", "### Tasks", "## Event Log")
_WORD = re.compile(r"zz[a-z]{8}")
_COPY = ".sync-conflict"


@dataclass
class Prompt:
    """A prompt or note, with all texts that it ever had.

    Attributes:
        path: Relative; "" until it is known, for one that `ask` dropped.
        head: The line of its front matter.
        words: The word of each text.
        texts: Without front matter, oldest first.
    """

    path: str
    head: str
    words: list[str]
    texts: list[str]
    is_answer_deleted: bool = False

    @property
    def is_capture(self) -> bool:
        return self.path.startswith("inbox/notes/")

    @property
    def is_off_record(self) -> bool:
        return "remember: false" in self.head

    @property
    def is_private(self) -> bool:
        return "private: true" in self.head

    @property
    def sha256(self) -> str:
        """F-PRM-3."""
        text = "\n".join(line.rstrip() for line in self.texts[-1].strip("\n").split("\n"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Book:
    """What a person did.

    Attributes:
        root: The brain.
        machine: Folders of what is this machine's.
        prompts: By path.
        asked: Given to `brainiac ask`; one that was killed early never became a file.
        lines: Words that stand in lines written by hand, with the file.
        removed: Words that were taken out by hand again, with the file.
        unsure: Words that were taken out and that a later save by hand holds again, for it was read before: either is
            right.
        private: Words of lines marked private.
        saves: How often a file was saved by hand.
        crashes: How many requests the model had when a crash came.
    """

    root: Path
    machine: tuple[Path, ...]
    prompts: dict[str, Prompt] = field(default_factory=dict)
    asked: list[Prompt] = field(default_factory=list)
    lines: dict[str, str] = field(default_factory=dict)
    removed: dict[str, str] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    private: set[str] = field(default_factory=set)
    saves: int = 0
    crashes: list[int] = field(default_factory=list)

    def all_prompts(self) -> list[Prompt]:
        """Return the prompts that became files, those of `ask` with their paths."""
        standing = {path: decoded(text) for path, text in texts(self.root, "inbox").items() if not is_response(path)}
        for prompt in self.asked:
            found = [path for path, text in standing.items() if prompt.words[0] in text]
            prompt.path = found[0] if found and not is_temporary(found[0]) else ""
        return [*self.prompts.values(), *(prompt for prompt in self.asked if prompt.path)]


@dataclass
class Judgement:
    """What is wrong, by name, each with what it is about; and how much was looked at."""

    wrong: dict[str, list[str]]
    totals: dict[str, int]


class _Tree:
    """The brain as it stands, each file read once."""

    def __init__(self, book: Book) -> None:
        self.files = texts(book.root)
        self.memory = {
            path: decoded(text)
            for path, text in self.files.items()
            if path.startswith("memory/") and not is_temporary(path)
        }

    @cached_property
    def said(self) -> list[Said]:
        pages = {path: self.files[path] for path in self.memory if _COPY not in path}
        return [one for path, text in pages.items() for one in exchanges(path, text)]

    @cached_property
    def told(self) -> Counter[str]:
        """How many exchanges have each word in what the person said."""
        return Counter(word for one in self.said for word in set(_WORD.findall(one.user)))

    @cached_property
    def by_id(self) -> Counter[str]:
        return Counter(one.id for one in self.said)


def settled(book: Book) -> str:
    """Return a stamp of the tree that stays the same once nothing is left to do."""
    found = []
    for path in sorted(book.root.rglob("*")):
        try:
            stat = path.stat()
        except FileNotFoundError:
            continue
        found.append(f"{path.name}:{stat.st_mtime_ns}:{stat.st_size}")
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def left_to_do(book: Book) -> bool:
    """Return whether a prompt is not answered yet or an exchange not yet remembered."""
    tree = _Tree(book)
    kept = [prompt for prompt in book.all_prompts() if not prompt.is_off_record]
    wrong = {**_answers(book, tree, kept), **_exchanges(book, tree, kept)}
    return any(wrong[name] for name in ("unanswered", "captures_lost", "exchanges_lost"))


def judge(book: Book, server: ChatServer | None, *, is_at_rest: bool) -> Judgement:
    """Look at all that was said and written, and say what is lost, doubled, half-done or where it should not be.

    Args:
        book: What a person did.
        server: What was sent to a model.
        is_at_rest: Nothing was written in the last seconds, so that no file may still be kept aside.
    """
    tree, prompts = _Tree(book), book.all_prompts()
    kept = [prompt for prompt in prompts if not prompt.is_off_record]
    wrong = {
        **_answers(book, tree, kept),
        **_exchanges(book, tree, kept),
        **_edits(book, tree),
        **_whole(book, tree, is_at_rest),
        **_hidden(book, tree, prompts, server),
    }
    totals = {
        "prompts": sum(not prompt.is_capture for prompt in prompts),
        "captures": sum(prompt.is_capture for prompt in prompts),
        "exchanges": len(tree.said),
        "edits": len(book.lines),
        "saves": book.saves,
    }
    return Judgement({name: sorted(found) for name, found in wrong.items()}, totals)


def _answers(book: Book, tree: _Tree, kept: list[Prompt]) -> dict[str, list[str]]:
    """Each prompt's last text has one answer."""
    lost, doubled, half = [], [], []
    answered: Counter[tuple[str, str]] = Counter()
    for lines in journal(book.root).values():
        for line in lines:
            if line["kind"] == "prompt-answered":
                answered[line["data"]["prompt"], line["data"]["prompt_sha256"]] += 1
    for prompt in kept:
        if prompt.is_capture:
            continue
        if prompt.path not in tree.files:
            lost.append(f"{prompt.path} is gone")
            continue
        stem = prompt.path.removesuffix(".md")
        files = [path for path in tree.files if is_response(path) and path.startswith(f"{stem}.response")]
        metas = [front_matter(tree.files[path]) for path in files]
        right = [meta for meta in metas if meta.get("prompt_sha256", "").strip("'\"") == prompt.sha256]
        if not right and not prompt.is_answer_deleted:
            lost.append(f"{prompt.path} {prompt.words[-1]}: {len(files)} answers, none to its text")
        if len(right) > 1 or answered[prompt.path, prompt.sha256] > 1:
            doubled.append(f"{prompt.path} {prompt.words[-1]}")
        half += [path for path, meta in zip(files, metas, strict=True) if "prompt_id" not in meta]
    return {"unanswered": lost, "answered_twice": doubled, "half_answers": half}


def _exchanges(book: Book, tree: _Tree, kept: list[Prompt]) -> dict[str, list[str]]:
    """Each exchange stands once in memory: in the event log, on a day's page or in the archive."""
    captures: list[str] = []
    exchanged: list[str] = []
    for prompt in kept:
        name = prompt.words[-1]
        if name not in book.removed.keys() | book.unsure and tree.told[name] == 0:
            (captures if prompt.is_capture else exchanged).append(f"{prompt.path} {name}")
    doubled = [f"{name}: {count} times" for name, count in tree.by_id.items() if count > 1]
    names = {name for prompt in kept for name in prompt.words}
    doubled += [f"{name}: in {tree.told[name]} exchanges" for name in names if tree.told[name] > 1]
    return {"captures_lost": captures, "exchanges_lost": exchanged, "exchanges_doubled": doubled}


def _edits(book: Book, tree: _Tree) -> dict[str, list[str]]:
    """Each line written by hand stands in memory, and not twice in one file; what was taken out stays out."""
    where: dict[str, set[str]] = {}
    repeated: list[str] = []
    for path, text in tree.memory.items():
        if path.endswith("/_index.md"):
            continue  # derived: what stands only there is not kept
        quoted = Counter(name for one in exchanges(path, text.encode()) for name in _WORD.findall(one.ai))
        standing = Counter(_WORD.findall(text)) - quoted  # an answer that quotes a line does not keep it
        for name in standing:
            where.setdefault(name, set()).add(path)
        lines = Counter(line.strip() for line in text.split("\n") if not line.startswith((">", "**AI:**")))
        own = {line: set(_WORD.findall(line)) & book.lines.keys() for line, times in lines.items() if times > 1}
        repeated += [f"{name}: {path}" for names in own.values() for name in names]
    wanted = book.lines.keys() - book.removed.keys() - book.unsure
    lost = [f"{name} ({book.lines[name]})" for name in wanted if name not in where]
    back = [f"{name}: {path}" for name, path in book.removed.items() if path in where.get(name, ())]
    return {"edits_lost": lost, "edits_doubled": repeated, "removals_undone": back}


def _whole(book: Book, tree: _Tree, is_at_rest: bool) -> dict[str, list[str]]:
    """Nothing is half-done: journals without gaps, all texts there, the tree as the journal tells it, no leftovers."""
    half = [f"{STM} lacks {heading}" for heading in HEADINGS if heading not in tree.memory.get(STM, "")]
    half += [path for path in tree.files if is_at_rest and is_temporary(path)]
    half += [f"{one.path}: {one.id} without what was said" for one in tree.said if not one.user.strip()]
    blobs, missing, unlike = Blobs(book.root / "logs/journal/blobs"), [], []
    for device, lines in journal(book.root).items():
        numbers = [line["seq"] for line in lines]
        if numbers != list(range(1, len(numbers) + 1)):
            half.append(f"{device}: gaps or repeats in seq")
        if len({line["id"] for line in lines}) != len(lines):
            half.append(f"{device}: an event stands twice")
        named = {
            c[side] for line in lines for c in line["changes"] if c["op"] != "append" for side in ("before", "after")
        }
        missing += [digest for digest in named if digest and blobs.text(digest) is None]
        unlike += _unlike(tree, folded(lines))
    return {"half_done": half, "texts_missing": missing, "not_as_journaled": unlike}


def _unlike(tree: _Tree, fold: dict[str, str]) -> list[str]:
    """Return the files that are not as the journal has them; derived index pages and hidden files excepted."""

    def is_looked_at(path: str) -> bool:
        name = path.rpartition("/")[2]
        is_tracked = path.startswith(("inbox/", "memory/", "system/")) and name != "_index.md"
        return is_tracked and "/." not in path and _COPY not in path and not re.search(r"~$|\.swp$", name)

    standing = {
        path: hashlib.sha256(text).hexdigest()
        for path, text in tree.files.items()
        if is_looked_at(path) and front_matter(text).get("remember") != "false"
    }
    told = {path: digest for path, digest in fold.items() if is_looked_at(path)}
    return [path for path in standing.keys() | told.keys() if standing.get(path) != told.get(path)]


def _hidden(book: Book, tree: _Tree, prompts: list[Prompt], server: ChatServer | None) -> dict[str, list[str]]:
    """What is off the record is in its own files at most; what is private is on private places, and on no wire."""
    own: dict[str, set[str]] = {}
    for prompt in (*prompts, *(one for one in book.asked if not one.path)):
        if prompt.is_off_record:
            stem = prompt.path.removesuffix(".md")
            for name in prompt.words:
                own[name] = {prompt.path, f"{stem}.response.md", f"{stem}.response-2.md", f"{stem}.error.md"}
    private = {name for prompt in prompts if prompt.is_private for name in prompt.words} | book.private
    wire = [json.dumps(request.body, ensure_ascii=False) for request in server.requests] if server else []
    sent = {name for body in wire for name in private & set(_WORD.findall(body))}
    return {
        "off_record_kept": _kept(book, tree, own),
        "private_in_the_open": _open(tree, private),
        "private_sent": sorted(sent),
    }


def _kept(book: Book, tree: _Tree, own: dict[str, set[str]]) -> list[str]:
    """Return where words of what is off the record stand besides their own files, names of files included."""
    found = []
    places = {path: path.encode() + b"\n" + text for path, text in tree.files.items()}
    places |= {f"blob {digest[:12]}": text for digest, text in Blobs(book.root / "logs/journal/blobs").all().items()}
    for folder in book.machine:
        places |= {f"{folder.name}/{path}": text for path, text in texts(folder).items()}
    for path, text in places.items():
        for name in set(_WORD.findall(text.decode("utf-8", "replace"))) & own.keys():
            if path not in own[name]:
                found.append(f"{name}: {path}")
    return found


def _open(tree: _Tree, private: set[str]) -> list[str]:
    """Return private words on pages and in answers, in exchanges and in lines that are not private."""
    answers = {path: decoded(text) for path, text in tree.files.items() if is_response(path)}
    found = []
    for path, text in {**tree.memory, **answers}.items():
        if path.endswith("/_index.md") or front_matter(text.encode()).get("private") == "true":
            continue  # an index page tells of a private page its title alone
        hidden = {
            name
            for one in exchanges(path, text.encode())
            if one.is_private
            for name in _WORD.findall(f"{one.user}\n{one.ai}")
        }
        for piece in re.split(r"\n\s*\n|\n(?=[-*+] )", text):
            if "<!-- private -->" in piece.lower():
                hidden.update(_WORD.findall(piece))
        found += [f"{name}: {path}" for name in (set(_WORD.findall(text)) & private) - hidden]
    return found
