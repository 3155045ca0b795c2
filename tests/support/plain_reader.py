"""Reads a brain's folder from docs/format.md alone, for judging: nothing of Brainiac is imported here."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_EXCHANGE = re.compile(r"^### (\S[^\n]*)\n<!-- (?:event|exchange): (\S+) -->\r?$", re.MULTILINE)
_LABEL = re.compile(r"^\*\*(User|AI|Thoughts):\*\*", re.MULTILINE)
_CONTROL = re.compile(r"&((?:amp;)*)#(\d+);")


@dataclass(frozen=True)
class Said:
    """One exchange as it stands on a page: its id, what the person said, what was answered."""

    id: str
    path: str
    user: str
    ai: str
    is_private: bool
    at: str = ""


def texts(root: Path, *folders: str) -> dict[str, bytes]:
    """Return every file below some folders of a brain by its relative path; without folders, all."""
    tops = [root / folder for folder in folders] or [root]
    found: dict[str, bytes] = {}
    for top in tops:
        for path in sorted(top.rglob("*")):
            try:
                if path.is_file() and not path.is_symlink():
                    found[path.relative_to(root).as_posix()] = path.read_bytes()
            except FileNotFoundError:
                continue  # a temporary file of a process at work
    return found


def is_temporary(path: str) -> bool:
    """Return whether a file is one that Brainiac keeps aside for a moment, and no part of memory."""
    return any(part.startswith(".brainiac-") for part in path.split("/"))


def decoded(content: bytes) -> str:
    """Return a text with `\\n` as line end."""
    return content.decode("utf-8", "replace").replace("\r\n", "\n")


def exchanges(path: str, content: bytes) -> Iterator[Said]:
    """Yield the exchanges that stand on a page (F-STM-2, F-MEM-7)."""
    text = decoded(content)
    heads = list(_EXCHANGE.finditer(text))
    for number, head in enumerate(heads):
        end = heads[number + 1].start() if number + 1 < len(heads) else len(text)
        body = text[head.end() : end]
        is_private = body.lstrip("\n").lower().startswith("<!-- private -->")
        yield Said(head[2], path, _labelled(body, "User"), _labelled(body, "AI"), is_private, head[1].split()[0])


def _labelled(body: str, label: str) -> str:
    """Return the text behind a label, quoted in its line or as a block quote below it (F-TXT-2)."""
    for found in _LABEL.finditer(body):
        if found[1] == label:
            first, _, rest = body[found.end() :].partition("\n")
            if first.strip():
                return _plain(first.strip().removeprefix('"').removesuffix('"'))
            quoted = []
            for line in rest.split("\n"):
                if not line.startswith(">"):
                    break
                quoted.append(line[1:].removeprefix(" "))
            return _plain("\n".join(quoted))
    return ""


def _plain(text: str) -> str:
    """Undo F-TXT-1."""
    return _CONTROL.sub(lambda found: chr(int(found[2])) if not found[1] else f"&{found[1][4:]}#{found[2]};", text)


def journal(root: Path, logs: str = "logs") -> dict[str, list[dict[str, Any]]]:
    """Return the whole lines of every device's journal, in the order of its files (F-JRN-1)."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((root / logs / "journal").glob("*/*.jsonl")):
        lines = path.read_bytes().split(b"\n")[:-1]
        found.setdefault(path.parent.name, []).extend(json.loads(line) for line in lines if line.strip())
    return found


class Blobs:
    """The texts that a journal names by hash.

    Args:
        folder: `logs/journal/blobs`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def text(self, digest: str) -> bytes | None:
        """Return a text, put together where it is a splice on another; None where it is not kept or damaged."""
        content = self._read(digest, 0)
        return content if content is not None and hashlib.sha256(content).hexdigest() == digest else None

    def all(self) -> dict[str, bytes]:
        """Return every text that is kept."""
        names = {path.parent.name + path.name.removesuffix(".splice") for path in self._folder.glob("??/[!.]*")}
        return {name: content for name in sorted(names) if (content := self.text(name)) is not None}

    def _read(self, digest: str, depth: int) -> bytes | None:
        whole = self._folder / digest[:2] / digest[2:]
        if whole.exists():
            return whole.read_bytes()
        splice = whole.with_name(whole.name + ".splice")
        if not splice.exists() or depth > 1000:
            return None
        head, _, inserted = splice.read_bytes().partition(b"\n")
        values = json.loads(head)
        base = self._read(values["base"], depth + 1)
        if base is None:
            return None
        return base[: values["start"]] + inserted + base[values["start"] + values["removed"] :]


def folded(lines: list[dict[str, Any]]) -> dict[str, str]:
    """Return path → content hash as one device's journal tells it, from its last baseline on."""
    tree: dict[str, str] = {}
    for line in lines:
        if line["kind"] == "tree-adopted":
            tree.clear()
        for change in line["changes"]:
            if change["op"] == "append":
                continue
            if change.get("source"):
                tree.pop(change["source"], None)
            if change["after"] is None:
                tree.pop(change["path"], None)
            else:
                tree[change["path"]] = change["after"]
    return tree


def is_response(path: str) -> bool:
    """Return whether a file of the inbox is an answer (F-RSP-1)."""
    return re.search(r"\.response(-\d+)?\.md$", path) is not None


def front_matter(content: bytes) -> dict[str, str]:
    """Return the top-level `key: value` lines of a file's front matter, as texts."""
    text = decoded(content)
    if not text.startswith("---\n"):
        return {}
    head = text[4:].partition("\n---")[0]
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in head.split("\n")) if key}
