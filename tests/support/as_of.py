"""What tests of memory as it stood save, ask and look at."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from brainiac.testing import World

HOME = "memory/long_term/concrete/home.md"
DENTIST = "memory/long_term/concrete/dentist.md"


def page(world: World, path: str, title: str, *statements: str, head: str = "") -> None:
    """Save a page by hand, and have a daemon see it."""
    uuid = f"0199{title.encode().hex():0<28}"[:32]
    uuid = f"{uuid[:8]}-{uuid[8:12]}-7{uuid[13:16]}-8{uuid[17:20]}-{uuid[20:32]}"
    lines = "\n".join(f"- {text} ^s{number}a{number}" for number, text in enumerate(statements))
    world.save(path, f"---\nuuid: {uuid}\n{head}---\n# {title}\n\n{lines}\n")
    world.run()


def say(world: World, name: str, text: str) -> None:
    world.drop(f"{name}.md", text)
    world.run()


def found(world: World, query: str, at: str = "") -> list[str]:
    """Return the texts that a search finds."""
    said = world.cli("search", query, "--json", *(["--at", at] if at else []))
    assert said.code == 0, said.err
    return [hit["text"] for hit in json.loads(said.out)["hits"]]


def through_door(world: World, verb: str, at: str, **arguments: Any) -> str:
    try:
        return json.dumps(world.door(verb, **arguments, at=at), ensure_ascii=False)
    except Exception as error:  # noqa: BLE001 - what is refused is told in words, which are looked through too
        return str(error)


def everything(world: World) -> dict[str, bytes]:
    """Return every file of the brain."""
    return {str(path.relative_to(world.root)): path.read_bytes() for path in world.root.rglob("*") if path.is_file()}


def process(world: World, *words: str, limit: int = 0) -> subprocess.Popen[str]:
    """Start a command in a process of its own, which may write no file of more than `limit` bytes."""
    homes = {f"XDG_{name.upper()}_HOME": str(world.home / name) for name in ("state", "cache", "config")}

    def bound() -> None:
        if limit:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.Popen(
        [sys.executable, "-m", "brainiac", "--brain", str(world.root), *words],
        env=os.environ | homes | {"HOME": str(world.home), "TZ": "UTC"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=bound,
    )


def made(world: World) -> list[Path]:
    """Return what says of each moment in the cache that it is whole."""
    return list((world.home / "cache").rglob("as_of/*/made"))
