"""Core Loop: a prompt in the inbox becomes an answer beside it (seeds S10)."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from brainiac import hookimpl
from brainiac.clock import iso
from brainiac.errors import BudgetError, ModelError
from brainiac.events import append, content_hash, create, new_id, observe, update
from brainiac.llm.schemas import Answer, AnswerRequest, Queries, QueriesRequest
from brainiac.notes.access_log import AccessEntry, format_entry
from brainiac.notes.prompt import Response, render_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from brainiac.brain import Brain
    from brainiac.events import Change
    from brainiac.notes.prompt import Prompt
    from brainiac.recall.hit import Hit

NAME = "core_loop"
HITS_PER_QUERY = 8


@hookimpl
def prompt_arrived(brain: Brain, prompt: Prompt) -> None:
    """Answer a prompt in one commit: the access log's lines, then the response.

    Raises:
        ModelError: The model cannot serve now; the prompt stays pending.
        ConflictError: The prompt changed meanwhile; its new text is answered instead.
    """
    started = brain.clock.monotonic()
    hits, answer = _think(brain, prompt)
    took_ms = round((brain.clock.monotonic() - started) * 1000)
    _deliver(brain, prompt, _Outcome(hits, answer, took_ms))


@dataclass(frozen=True, slots=True)
class _Outcome:
    hits: Sequence[Hit]
    answer: Answer
    took_ms: int

    @property
    def cited(self) -> list[Hit]:
        return [self.hits[index] for index in self.answer.cited if 0 <= index < len(self.hits)]


def _think(brain: Brain, prompt: Prompt) -> tuple[Sequence[Hit], Answer]:
    """Find what is relevant and let the model answer from it."""
    now = brain.clock.now()
    short_term = brain.short_term().memory
    conversation = brain.conversation(prompt)
    common = {
        "now": now,
        "is_private": prompt.private,
        "off_record": not prompt.remember,
        "prompt": prompt,
        "short_term": short_term,
        "conversation": conversation,
    }
    queries = _queries(brain, QueriesRequest(**common))
    hits = _retrieve(brain, queries or [prompt.text])
    request = AnswerRequest(
        **common,
        hits=hits,
        search=lambda query, limit: brain.recall.search(query, limit=limit, now=now),
        on_text=brain.stream_to,
    )
    answer = brain.models.run(request)
    assert isinstance(answer, Answer)
    return hits, answer


def _queries(brain: Brain, request: QueriesRequest) -> list[str]:
    """Let the model say what to look for; the prompt itself is always looked for too."""
    found = brain.models.run(request)
    assert isinstance(found, Queries)
    return [*dict.fromkeys([request.prompt.text, *found.queries])]


def _retrieve(brain: Brain, queries: Sequence[str]) -> list[Hit]:
    """Search for every query and keep each place once, best first."""
    best: dict[tuple[str, str, str], Hit] = {}
    limit = max(HITS_PER_QUERY, brain.settings.context.max_memories)
    for query in queries:
        found: Sequence[Hit] = brain.recall.search(query, limit=limit, now=brain.clock.now())
        for more in brain.plugins.call("retrieve", brain=brain, query=query, limit=limit):
            found = [*found, *more]
        for hit in found:
            key = (hit.path, hit.anchor, hit.speaker)
            if key not in best or hit.score > best[key].score:
                best[key] = hit
    hits = sorted(best.values(), key=lambda hit: -hit.score)[: 2 * limit]
    for order in brain.plugins.call("rerank", brain=brain, query=queries[0], hits=hits):
        hits = list(order)
    return hits


def _deliver(brain: Brain, prompt: Prompt, outcome: _Outcome) -> None:
    """Write the access log's lines and the response, unless the prompt moved meanwhile."""
    raw = brain.read(prompt.path)
    if raw is None or brain.answered.fingerprint(prompt.path, raw) != prompt.sha256:
        brain.record("answer-discarded", by=NAME, data={"prompt": prompt.path, "prompt_sha256": prompt.sha256})
        return
    at = iso(brain.clock.now())
    target, stale_error = brain.answered.response_target(prompt), brain.answered.error_of(prompt)
    response = Response(
        path=target.path,
        text=_body(target.path, outcome),
        in_reply_to=posixpath.basename(prompt.path),
        prompt_id=prompt.id or new_id(),
        prompt_sha256=prompt.sha256,
        created_at=at,
        model=outcome.answer.model,
        memories=tuple(_link(target.path, hit) for hit in _pages(outcome.cited)),
        tokens=outcome.answer.tokens,
        cost_usd=outcome.answer.cost_usd,
        took_ms=outcome.took_ms,
        remember=prompt.remember,
        private=prompt.private,
    )
    text = render_response(response)
    changes: list[Change] = [observe(prompt.path, raw)] if prompt.remember else []
    changes += _log_lines(brain, outcome, at)
    changes.append(update(target.path, target.before, text) if target.before is not None else create(target.path, text))
    changes += stale_error
    brain.commit(
        "prompt-answered",
        by=NAME,
        changes=changes,
        data={
            "prompt": prompt.path,
            "prompt_id": response.prompt_id,
            "prompt_sha256": prompt.sha256,
            "response": target.path,
            "model": response.model,
        },
        expect={prompt.path: content_hash(raw)},
    )


def _log_lines(brain: Brain, outcome: _Outcome, at: str) -> list[Change]:
    """One READ for each long-term memory that was read, one CITE for each that the answer rests on."""
    root = brain.tree.root
    read = dict.fromkeys([hit.path for hit in _pages(outcome.hits)] + list(outcome.answer.read))
    entries = [AccessEntry(at, "READ", str(root / path)) for path in read]
    entries += [AccessEntry(at, "CITE", str(root / hit.path)) for hit in _pages(outcome.cited) if hit.uuid]
    text = "".join(format_entry(entry) for entry in entries if "/long_term/" in entry.path)
    return [append(brain.tree.relative(brain.tree.access_log), text)] if text else []


def _pages(hits: Sequence[Hit]) -> list[Hit]:
    """Keep the first hit of each page."""
    return list({hit.path: hit for hit in reversed(hits)}.values())[::-1]


def _body(path: str, outcome: _Outcome) -> str:
    """Return the answer with links to what it cites below it."""
    links = [_link(path, hit) for hit in _pages(outcome.cited)]
    text = outcome.answer.text.rstrip()
    return f"{text}\n\nFrom memory: {', '.join(links)}" if links else text


def _link(path: str, hit: Hit) -> str:
    """Link a hit from a response, with its identity in the title."""
    target = quote(posixpath.relpath(hit.path, posixpath.dirname(path)), safe="/.#^-_~")
    if hit.kind == "statement" and hit.anchor:
        target += f"#^{hit.anchor}"
    title = hit.title.replace("[", "(").replace("]", ")")
    return f'[{title}]({target} "uuid:{hit.uuid}")' if hit.uuid else f"[{title}]({target})"


__all__ = ["BudgetError", "ModelError", "prompt_arrived"]
