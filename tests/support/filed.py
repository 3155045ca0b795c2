"""A brain of files with a model behind a real HTTP server, which a test tells what to answer for each purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from brainiac.testing import World
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, say, say_json
from tests.support.remote import all_follow, purpose_of

Answered = Mapping[str, Any] | str | Callable[[str], Mapping[str, Any] | str]  # of the text that was sent
REVIEW = "memory/review.md"


class Filed:
    """A world and the model that serves it.

    Attributes:
        world: The brain.
        answers: What the model answers, by purpose: JSON, a text, or a function of what it was sent.
        rows: The operations that it consolidates to.
        sent: The texts that it was sent, by purpose.
    """

    def __init__(self, folder: Path, server: ChatServer) -> None:
        self.world = World(folder)
        self.answers: dict[str, Answered] = {}
        self.rows: list[dict[str, Any]] = []
        self.sent: dict[str, list[str]] = {}
        server.default = by_request(self._reply)
        self.world.save("system/config.yaml", "recall: {embedder: none}\nllm: {model: openai/test-model}\n")
        config = self.world.home / "config/brainiac"
        config.mkdir(parents=True)
        (config / "config.yaml").write_text(yaml.safe_dump({"api_bases": {"openai": server.url}}))

    def _reply(self, captured: Captured) -> Behaviour:
        purpose, text = purpose_of(captured), captured.text
        self.sent.setdefault(purpose, []).append(text)
        usual = {"answer": "All right.", "verify": all_follow(text), "consolidate": {"operations": self.rows}}
        answer = self.answers.get(purpose, usual.get(purpose, {}))
        answer = answer(text) if callable(answer) else answer
        return say(answer) if isinstance(answer, str) else say_json(answer)

    def tell(self, text: str, name: str = "told") -> str:
        """Drop a prompt, have it answered and noted, and return the answer; an hour passes."""
        asked = self.world.drop(f"{name}.md", f"{text}\n")
        self.world.run()
        self.world.clock.advance(3600)
        return asked.answer or ""

    def promote(self) -> str:
        """Promote; return what the command printed."""
        return self.world.cli("promote").out

    def states(self, text: str, quote: str, action: str = "new", exchange: str = "e1", **fields: Any) -> None:
        """Have the model make a statement, too, of what was said in an exchange."""
        row = {"action": action, "ids": [], "text": text, "valid_until": "", "steps": [], "page": {"title": "Home"}}
        self.rows.append(row | {"evidence": [{"exchange": exchange, "quote": quote}]} | fields)

    @property
    def pages(self) -> str:
        """The pages of facts, without the indexes."""
        files = self.world.tree().items()
        top = "memory/long_term/concrete/"
        return "\n".join(text for path, text in files if path.startswith(top) and not path.endswith("_index.md"))

    def file(self, path: str) -> str:
        """Return the text of a file; "" where there is none."""
        return self.world.tree().get(path, "")


@contextmanager
def filed(folder: Path) -> Iterator[Filed]:
    """Yield a brain with a model behind a server on loopback."""
    with ChatServer() as server:
        yield Filed(folder, server)
