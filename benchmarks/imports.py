"""Make an export of ChatGPT's or Claude's of any size, import it, and measure time and memory.

    python benchmarks/imports.py chatgpt|claude [--megabytes 1000] [--kill] [--folder DIR]

The export is made as real ones are: much of it is metadata, most answers are long, some conversations go on over weeks.
Everything is made in DIR and removed afterwards. `--kill` ends the import with SIGKILL in the middle, twice, and goes
on. The last line printed is one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from brainiac.formats.markdown import find_events
from brainiac.skeleton import create_brain
from tests.support.exports import START, chatgpt_node, claude_message

WORDS = (ROOT / "docs" / "format.md").read_text("utf-8").split()


def main() -> None:
    """Make the export, import it in a process of its own, and print what it took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("service", choices=("chatgpt", "claude"))
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    folder = options.folder / f"import-{options.service}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("STATE", "CACHE", "CONFIG"):
        os.environ[f"XDG_{name}_HOME"] = str(folder / name.lower())
    try:
        export, made = make(folder, options.service, options.megabytes * 1_000_000)
        create_brain(folder / "brain")
        for seconds in (20, 40) if options.kill else ():
            end_in_the_middle(folder / "brain", export, seconds)
        print(json.dumps(made | measured(folder / "brain", export)))
    finally:
        shutil.rmtree(folder)


def make(folder: Path, service: str, size: int) -> tuple[Path, dict[str, Any]]:
    """Write an archive with conversations of about so many bytes; return it and what it holds."""
    chance, n_bytes, made = random.Random(7), 0, Counter[str]()
    path = folder / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        shards = 8 if service == "chatgpt" else 1
        for shard in range(shards):
            name = f"conversations-{shard:03}.json" if shards > 1 else "conversations.json"
            with archive.open(name, "w", force_zip64=True) as file:
                before = b"["
                while n_bytes < size * (shard + 1) / shards:
                    record, n_exchanges = (chatgpt if service == "chatgpt" else claude)(made["conversations"], chance)
                    line = json.dumps(record).encode()
                    file.write(before + line)
                    before = b",\n"
                    n_bytes += len(line)
                    made.update(conversations=1, exchanges=n_exchanges)
                file.write(b"]")
        archive.writestr("user.json" if service == "chatgpt" else "users.json", "{}")
    return path, {"service": service, "megabytes": n_bytes // 1_000_000, **made}


def text(chance: random.Random, most: int) -> str:
    """Return a text of up to so many words, as paragraphs."""
    words = chance.choices(WORDS, k=chance.randint(3, most))
    return " ".join(word + ("\n\n" if chance.random() < 0.01 else "") for word in words)


def chatgpt(number: int, chance: random.Random) -> tuple[dict[str, Any], int]:
    """Return a conversation of ChatGPT's with the metadata that real ones have, and its number of exchanges."""
    nodes: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    parent, at, n_turns = "root", START + number * 7000, chance.randint(1, 24)
    for turn in range(n_turns):
        for role, most in (("user", 60), ("assistant", 420)):
            key, at = f"{number:08}-{turn:04}-{role}", at + chance.randint(5, 600)
            node = chatgpt_node(key, parent, role, text(chance, most), at)
            metadata = {"request_id": f"{chance.random()}", "model_slug": "gpt-4o", "timestamp_": "absolute"}
            citations = [
                {"start_ix": n, "metadata": {"url": f"https://example.org/{n}", "title": "x" * 60}} for n in range(6)
            ]
            node["message"] |= {"status": "finished_successfully", "weight": 1.0, "end_turn": True}
            node["message"]["metadata"] = metadata | {"citations": citations, "content_references": citations}
            nodes[key], parent = node, key
    title = text(chance, 6)
    return {"id": f"c{number}", "title": title, "create_time": START, "mapping": nodes, "current_node": parent}, n_turns


def claude(number: int, chance: random.Random) -> tuple[dict[str, Any], int]:
    """Return a conversation of Claude's, and its number of exchanges."""
    messages, n_turns = [], chance.randint(1, 24)
    for turn in range(n_turns):
        for sender, most in (("human", 60), ("assistant", 420)):
            message = claude_message(f"{number}-{turn}-{sender}", sender, text(chance, most), turn)
            thought = {"type": "thinking", "thinking": text(chance, 200), "summaries": []}
            message["content"] = [thought, *message["content"]]
            messages.append(message)
    keys = {"name": text(chance, 6), "created_at": "2024-05-06T12:00:00Z", "account": {"uuid": "a"}}
    return {"uuid": f"k{number}", "chat_messages": messages, **keys}, n_turns


def started(brain: Path, export: Path) -> subprocess.Popen[bytes]:
    """Start an import."""
    command = [sys.executable, "-m", "brainiac", "--brain", str(brain), "import", str(export), "--json"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def end_in_the_middle(brain: Path, export: Path, seconds: float) -> None:
    """End an import with SIGKILL after some seconds."""
    process = started(brain, export)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    print(f"killed after {seconds} s with {sum(1 for _ in exchanges(brain))} exchanges in", file=sys.stderr)


def measured(brain: Path, export: Path) -> dict[str, Any]:
    """Import, and return what it took and what became of the conversations and exchanges."""
    start = time.perf_counter()
    process = started(brain, export)
    out, _ = process.communicate()
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    rows = json.loads(out)["items"]
    ids = Counter(exchanges(brain))
    return {
        "seconds": round(seconds),
        "cpu_seconds": round(used.ru_utime + used.ru_stime),
        "peak_mb": round(used.ru_maxrss / 1024),
        "rows": len(rows),
        "states": dict(Counter(row["state"] for row in rows)),
        "on_pages": sum(ids.values()),
        "twice": sum(count - 1 for count in ids.values()),
    }


def exchanges(brain: Path) -> Iterator[str]:
    """Yield the id of each exchange on an imported page."""
    for page in (brain / "memory/long_term/events/imported").rglob("*.md"):
        yield from (placed.event.id for placed in find_events(page.read_text("utf-8")))


if __name__ == "__main__":
    main()
