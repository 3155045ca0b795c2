"""Evidence recall on imported chats: with an assistant (BEAM), and of several people (FriendsQA).

    python benchmarks/chats.py DATA.json [--embedder auto]

The chats are read from the path and never part of the project: `{"chats": [{"id", "messages": [{"id", "role", "at",
"text"}], "questions": [{"type", "question", "evidence": [ids of messages]}]}]}`, roles other than `user` and
`assistant` being names. They are imported as an export of ChatGPT's, and every question is searched for. An exchange
is what a person says with the answers to it; a pause of an hour ends a conversation. The figures are the share of a
question's exchanges among the first ten that are found, by words, with the embedder, and in the usual ways.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks.baselines import usual_ways
from benchmarks.questions import open_recall
from brainiac.clock import parse_iso
from brainiac.search.query import searches
from brainiac.testing import World
from tests.support.exports import write_json

DEPTH, HITS = 10, 40
PAUSE = timedelta(hours=1)


@dataclass
class Chat:
    """A chat with an assistant or of several people, and what is asked of it.

    Attributes:
        name: Of the chat.
        exchanges: The text of each, in order.
        exchange_of: The number of the exchange to which the message of a second belongs.
        questions: Each with the numbers of the exchanges that answer it, and its type.
        asked_at: When the questions are asked.
    """

    name: str
    messages: Sequence[dict[str, Any]]
    exchanges: list[str] = field(default_factory=list)
    exchange_of: dict[str, int] = field(default_factory=dict)
    questions: list[tuple[str, frozenset[int], str]] = field(default_factory=list)

    @property
    def asked_at(self) -> datetime:
        return max(parse_iso(message["at"]) for message in self.messages) + timedelta(days=1)


def read(path: Path) -> list[Chat]:
    """Read a file of chats."""
    return [_chat(row) for row in json.loads(path.read_text("utf-8"))["chats"]]


def _chat(row: dict[str, Any]) -> Chat:
    chat, by_message = Chat(row["id"], row["messages"]), dict[Any, int]()
    for message in chat.messages:
        if message["role"] != "assistant" or not chat.exchanges:
            chat.exchanges.append("")
        number = len(chat.exchanges) - 1
        chat.exchanges[number] += f"{_said(message)}\n\n"
        chat.exchange_of[message["at"]] = by_message[message["id"]] = number
    for asked in row["questions"]:
        answers = frozenset(by_message[message] for message in asked["evidence"])
        chat.questions.append((searches(asked["question"], ())[0], answers, asked["type"]))
    return chat


def _said(message: dict[str, Any]) -> str:
    return message["text"] if message["role"] in ("user", "assistant") else f"{message['role']}: {message['text']}"


def build_brain(chat: Chat, folder: Path) -> Path:
    """Import a chat into a new brain; return its root."""
    world = World(folder)
    export = folder / "conversations.json"
    write_json(export, list(_conversations(chat)))
    done = world.cli("import", str(export))
    if done.code:
        raise SystemExit(done.err)
    return world.root


def _conversations(chat: Chat) -> Iterator[dict[str, Any]]:
    """Yield the chat's conversations as ChatGPT exports them."""
    groups: list[list[dict[str, Any]]] = []
    for message in chat.messages:
        if not groups or parse_iso(message["at"]) - parse_iso(groups[-1][-1]["at"]) > PAUSE:
            groups.append([])
        groups[-1].append(message)
    for number, group in enumerate(groups, 1):
        nodes: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
        parent = "root"
        for message in group:
            key, role = f"m{message['id']}", "assistant" if message["role"] == "assistant" else "user"
            said = {"content_type": "text", "parts": [_said(message)]}
            at = parse_iso(message["at"]).timestamp()
            node = {"id": key, "author": {"role": role}, "create_time": at, "content": said, "recipient": "all"}
            nodes[key] = {"id": key, "message": node, "parent": parent, "children": []}
            nodes[parent]["children"].append(key)
            parent = key
        at = parse_iso(group[0]["at"]).timestamp()
        name = f"talk-{number}"
        times = {"create_time": at, "update_time": at}
        yield {"id": name, "conversation_id": name, "title": f"Talk {number}", **times, "mapping": nodes,
               "current_node": parent}  # fmt: skip


def measure(chat: Chat, root: Path, embedder: str) -> dict[str, list[float]]:
    """Return for each type of question the shares of its exchanges among the first ten that are found."""
    recall = open_recall(root, root.parent / f"cache-{embedder}", "en", embedder)
    recall.reindex()
    met = defaultdict(list)
    for text, answers, kind in chat.questions:
        if answers:
            hits = recall.search(text, limit=HITS, now=chat.asked_at)
            found = list(dict.fromkeys(chat.exchange_of[hit.at] for hit in hits if hit.at in chat.exchange_of))
            met[kind].append(len(answers & set(found[:DEPTH])) / len(answers))
    recall.close()
    return met


def measure_usual_ways(chat: Chat) -> dict[str, dict[str, list[float]]]:
    """Return the same for the usual ways, on the texts of the exchanges."""
    ways: dict[str, dict[str, list[float]]] = {}
    for name, find in usual_ways(chat.exchanges):
        ways[name] = defaultdict(list)
        for text, answers, kind in chat.questions:
            if answers:
                ways[name][kind].append(len(answers & set(find(text, DEPTH))) / len(answers))
    return ways


def main() -> None:
    """Measure, and print one line of JSON: shares in percent by way and type of question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--embedder", default="auto")
    arguments = parser.parse_args()
    met: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for chat in read(arguments.data):
        with tempfile.TemporaryDirectory() as folder:
            root = build_brain(chat, Path(folder))
            ways = {embedder: measure(chat, root, embedder) for embedder in dict.fromkeys(("none", arguments.embedder))}
            for way, shares in (ways | measure_usual_ways(chat)).items():
                for kind, values in shares.items():
                    met[way][kind] += values
    print(
        json.dumps(
            {
                {"none": "lexical", arguments.embedder: "hybrid"}.get(way, way): {
                    "all": round(100 * float(np.mean([value for values in kinds.values() for value in values])), 1),
                    **{kind: round(100 * float(np.mean(values)), 1) for kind, values in sorted(kinds.items())},
                }
                for way, kinds in met.items()
            }
        )
    )


if __name__ == "__main__":
    main()
