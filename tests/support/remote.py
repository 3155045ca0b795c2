"""A model that is a remote one as far as a brain can tell, that asks for all it can name; and what it was sent."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from brainiac import Brain
from brainiac.clock import ManualClock
from tests.support.models import MODEL, NOW, model_brain, write_machine, write_memory
from tests.support.openai_server import Behaviour, Captured, ChatServer, call_tools, raw, say, say_json


def elsewhere(server: ChatServer) -> str:
    """Spell the server's address so that it is not known for this machine: a model there is a remote one."""
    return server.url.replace("127.0.0.1", "127.1")


def remote_brain(root: Path, server: ChatServer) -> Brain:
    """Make a brain whose model is a remote one, as far as it can tell."""
    model_brain(root, server, prices={MODEL: [0.1, 0.1]}).close()
    brain = Brain(root, clock=ManualClock(NOW))
    write_machine(brain, {"api_bases": {"openai": elsewhere(server)}})
    return brain


def write_private(root: Path, path: str, title: str, statement: str) -> None:
    """Write a private memory page with one statement."""
    write_memory(root, path, title, 3, statement)
    file = root / "memory/long_term" / path
    file.write_text(file.read_text().replace("tags: []", "tags: []\nprivate: true"))


def reply(captured: Captured) -> Behaviour:
    """Answer as a curious model: look for everything with every tool, then say something."""
    text = json.dumps(captured.body)
    if captured.body.get("tools") and "tool_call_id" not in text:
        return call_tools(
            ("search_memories", {"query": "gift for Mara quillwort zanzibar"}),
            ("read_memory", {"id": "inbox/trip/secret.md"}),
            ("read_memory", {"id": "memory/short_term.md"}),
            ("read_memory", {"id": "memory/long_term/concrete/hidden.md"}),
            ("list_directory", {"path": "memory"}),
        )
    if '"queries"' in text:
        return say_json({"queries": ["gift", "zanzibar", "quillwort"]})
    if captured.body.get("tools"):
        return say("A bicycle.")
    return say_json({})


class Curious:
    """A model that asks for all that it can name, and never says a canary itself."""

    def __init__(self) -> None:
        self.calls: Sequence[tuple[str, dict[str, Any]]] = ()

    def __call__(self, captured: Captured) -> Behaviour:
        body = captured.body
        purpose = purpose_of(captured)
        if purpose == "embed":
            return embedded(body)
        if purpose == "answer":
            is_new = not any(message["role"] == "tool" for message in body["messages"])
            return call_tools(*self.calls) if is_new and self.calls else say("Noted.")
        return say_json(self.typed(purpose, captured.text))

    def typed(self, purpose: str, text: str) -> dict[str, Any]:
        """Return a result as it should be, from what it was shown."""
        if purpose == "queries":
            return {"queries": re.findall(r"topic\d\d", text)[-4:]}  # the prompt is last
        if purpose == "reflect":
            return {"thoughts": "So."}
        if purpose == "consolidate":
            told = re.findall(r"\(id (\w+)\)[^\n]*\n(?:User:\n)?> (I have a \w+ (?:bicycle|boat))", text)
            return {
                "operations": [
                    {
                        "action": "new",
                        "text": said.replace("I have", "User has"),
                        "subject": "User",
                        "page": {"title": "Things", "kind": "concrete"},
                        "evidence": [{"exchange": event, "quote": said}],
                    }
                    for event, said in told
                ]
            }
        if purpose == "synthesize":
            return {"kind": "concrete", "folder": "things", "title": "Things"}
        if purpose == "verify":
            return all_follow(text)
        others: dict[str, dict[str, Any]] = {"summarize": {"text": "So."}, "organize": {"proposals": []}}
        return others[purpose]


def all_follow(text: str) -> dict[str, Any]:
    """Return a second reader's answer that everything follows."""
    items = re.findall(r"^> \[(\d+)\]", text, re.MULTILINE)
    return {"verdicts": [{"item": item, "verdict": "follows", "reason": "said so"} for item in items]}


def purpose_of(captured: Captured) -> str:
    """Return what a request is for, by the form that its answer is to have."""
    if captured.path.endswith("/embeddings"):
        return "embed"
    form = captured.body.get("response_format") or {}
    named = (form.get("json_schema") or {}).get("name", "")
    forms = {"Queries": "queries", "Reflection": "reflect", "Consolidation": "consolidate", "Verdicts": "verify"}
    forms |= {"Page": "synthesize", "Summary": "summarize", "Proposals": "organize"}
    return forms.get(named, "answer")


def embedded(body: Mapping[str, Any]) -> Behaviour:
    digests = [hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in body["input"]]  # nothing is near
    vectors = [[float(byte) - 127.5 for byte in digest] for digest in digests]
    data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return raw(json.dumps({"object": "list", "model": "m", "data": data, "usage": usage}), "application/json")


def told_by_us(body: str) -> str:
    """Return a request without what the model itself said before: its searches name the words it fishes for."""
    messages = [message for message in json.loads(body)["messages"] if message["role"] != "assistant"]
    return json.dumps(messages)


def sent(server: ChatServer) -> str:
    """Return all that was sent."""
    return "\n".join(request.text for request in server.requests).lower()


def read_twice(captured: Captured) -> str:
    """Return the bytes of a request as they came, and once more with JSON's escapes undone, in lower case."""
    return (captured.raw.decode("utf-8", "replace") + json.dumps(captured.body, ensure_ascii=False)).lower()
