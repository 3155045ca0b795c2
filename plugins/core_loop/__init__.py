"""Core Loop: a prompt in the inbox becomes an answer beside it (seeds S10)."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from brainiac import hookimpl
from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConflictError, FormatError, ModelError
from brainiac.events import (
    AnswerDiscarded,
    Change,
    LedWords,
    PathKind,
    PromptAnswered,
    append,
    content_hash,
    create,
    new_id,
    observe,
    update,
)
from brainiac.formats.access_log import AccessEntry, format_entry
from brainiac.formats.markdown import format_link
from brainiac.formats.page import parse_memory
from brainiac.formats.prompt import Prompt, Response, parse_prompt, render_response
from brainiac.llm.context.assembler import workflow_named
from brainiac.llm.context.long_term import missing_focus
from brainiac.llm.gate import Gate
from brainiac.llm.redaction import redact, without_masks
from brainiac.llm.schemas import Answer, AnswerRequest, Queries, QueriesRequest
from brainiac.search.documents import Hit
from brainiac.search.query import merged, searches
from brainiac.storage.answered import Answer as Answered
from brainiac.storage.statements import text_hash

from . import prompt_commands as commands

NAME = "core_loop"
HITS_PER_QUERY = 8


@hookimpl
def startup(brain: Brain) -> None:
    """Open what the first prompt would otherwise wait for; also, no two threads then open it at once."""
    brain.recall.search("what was said", limit=1, now=brain.now())
    assert brain.models


@hookimpl
def prompt_arrived(brain: Brain, prompt: Prompt) -> None:
    """Answer a prompt in one commit: the access log's lines, then the response.

    Raises:
        ModelError: The model cannot serve now; the prompt stays pending.
        ConflictError: The prompt changed meanwhile; its new text is answered instead.
    """
    started, former = brain.clock.monotonic(), brain.answered.of(prompt.path)
    missing = _missing(brain, prompt)
    request, told = _prepared(brain, prompt)
    answer = _answered(brain, request, told)
    took_ms = round((brain.clock.monotonic() - started) * 1000)
    is_private = prompt.private or told.is_private or brain.models.rests_on_private(request, answer)
    sources = _sources(brain, request.hits, answer)
    outcome = _Outcome(request.hits, answer, sources, took_ms, is_private, missing)
    with brain.commit_lock():
        brain.answered.refresh()
        if _is_answered_meanwhile(brain, prompt, former):
            _discard(brain, prompt)
        else:
            _deliver(brain, prompt, outcome)


def _is_answered_meanwhile(brain: Brain, prompt: Prompt, former: Answered | None) -> bool:
    """Return whether another process, as `ask` beside a daemon that starts, has answered the very same text by now."""
    known = brain.answered.of(prompt.path)
    is_other = known is not None and (former is None or known.exchange != former.exchange)
    return known is not None and is_other and known.prompt_sha256 == prompt.sha256


def _discard(brain: Brain, prompt: Prompt) -> None:
    brain.record(AnswerDiscarded(prompt=prompt.path, prompt_sha256=prompt.sha256), by=NAME)


@dataclass(frozen=True, slots=True)
class _Source:
    """A page that the answer rests on; `anchor` is the block id of a statement, or ""."""

    path: str
    title: str
    uuid: str = ""
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class _Outcome:
    hits: Sequence[Hit]
    answer: Answer
    sources: Sequence[_Source]
    took_ms: int
    is_private: bool
    missing: Sequence[str]


def _missing(brain: Brain, prompt: Prompt) -> list[str]:
    """Return the notes in focus that are not there; a workflow that is not there is refused, whoever answers.

    Raises:
        ModelError: There is no such workflow.
    """
    if prompt.workflow:
        workflow_named(brain, Gate(brain, is_remote=False), prompt.workflow)
    return missing_focus(brain, prompt) if prompt.focus else []


def _prepared(brain: Brain, prompt: Prompt) -> tuple[AnswerRequest, commands.Told]:
    """Find what is relevant, and say what becomes of the commands."""
    conversation = brain.conversation(prompt)
    common: dict[str, Any] = {
        "now": brain.now(),
        "is_private": prompt.private,
        "off_record": not prompt.remember,
        "prompt": prompt,
        "short_term": brain.short_term().memory,
        "conversation": conversation,
    }
    gate = Gate(brain, is_remote=False, is_kept=prompt.remember, is_door=bool(prompt.by))
    found = gate.hits(commands.found(brain, prompt))
    hits = [*found]
    if _is_for_engine(prompt):
        known = {(hit.path, hit.anchor, hit.text) for hit in found}
        expansion = QueriesRequest(**common)
        is_inside = not brain.models.engine_for(expansion).is_remote  # it was shown what is private, and may repeat it
        queries = _queries(brain, expansion)
        retrieved = _retrieve(brain, queries, is_private=prompt.private, is_inside=is_inside)
        hits += [hit for hit in gate.hits(retrieved) if (hit.path, hit.anchor, hit.text) not in known]
    request = AnswerRequest(
        **common,
        hits=hits,
        absent=_absent(brain, prompt),
        is_first=not conversation and not brain.answered.has_answered_beside(prompt.path),
        zone=brain.zone,
        on_text=brain.stream_to,
    )
    told = commands.tell(brain, request, len(found))
    if prompt.remember and (secrets := commands.secrets_told(brain, prompt.text)):
        told.paragraphs.insert(0, secrets)
    return request, told


def _absent(brain: Brain, prompt: Prompt) -> list[str]:
    """Return the words of a prompt that stand nowhere in memory.

    Nothing through a door: what is absent is told from what stands on private pages, and would tell of them.
    """
    if prompt.by or not _is_for_engine(prompt):
        return []
    return brain.recall.absent(without_masks(redact(brain, prompt.said)))


def _is_for_engine(prompt: Prompt) -> bool:
    """Return whether a prompt says anything besides its commands."""
    return bool(prompt.said.strip()) or not prompt.commands


def _answered(brain: Brain, request: AnswerRequest, told: commands.Told) -> Answer:
    """Let the model answer, below what the commands have to say; a prompt of commands alone costs no call."""
    heard = "\n\n".join(told.paragraphs)
    answer = Answer(text="", model=commands.MODEL, led=told.cited[:1])
    if heard and brain.stream_to:
        brain.stream_to(heard + ("\n\n" if _is_for_engine(request.prompt) else ""))
    if _is_for_engine(request.prompt):
        result = brain.models.run(request)
        assert isinstance(result, Answer)
        answer = result
    text = "\n\n".join(filter(None, [heard, answer.text]))
    return answer.model_copy(update={"text": text, "cited": sorted({*told.cited, *answer.cited})})


def _queries(brain: Brain, request: QueriesRequest) -> list[str]:
    """Let the model say what to look for; the prompt itself is always looked for too, and alone where that fails."""
    try:
        found = brain.models.run(request)
    except ModelError as error:  # a step that only helps must not cost the answer
        brain.log.info("queries_failed", prompt=request.prompt.path, problem=error.problem)
        return searches(request.prompt.said, [])
    assert isinstance(found, Queries)
    return searches(request.prompt.said, found.queries)


def _retrieve(brain: Brain, queries: Sequence[str], *, is_private: bool, is_inside: bool) -> list[Hit]:
    """Search for every query, the prompt's own first, and keep each place once, best first.

    Args:
        brain: What to search.
        queries: The prompt's own words, then what a model made of them.
        is_private: No query may leave this machine.
        is_inside: None of the model's may.
    """
    limit = max(HITS_PER_QUERY, brain.settings.context.max_memories)
    found: list[list[Hit]] = []
    for number, query in enumerate(queries):
        stays = is_private or (is_inside and number > 0)
        hits = brain.recall.search(query, limit=limit, now=brain.now(), is_private=stays)
        more = brain.plugins.call("retrieve", brain=brain, query=query, limit=limit)
        found.append([*hits, *(hit for others in more for hit in others)])
    hits = merged(found)[: 2 * limit]
    for order in brain.plugins.call("rerank", brain=brain, query=queries[0], hits=hits):
        hits = list(order)
    return hits


def _deliver(brain: Brain, prompt: Prompt, outcome: _Outcome) -> None:
    """Write the access log's lines and the response, unless the prompt moved meanwhile."""
    raw = brain.read(prompt.path)
    if raw is None or brain.answered.fingerprint(prompt.path, raw) != prompt.sha256:
        _discard(brain, prompt)
        return
    standing = parse_prompt(prompt.path, raw, at=prompt.at, inbox=brain.tree.layout.inbox)
    if (standing.private and not prompt.private) or (prompt.remember and not standing.remember):
        raise ConflictError([prompt.path])  # answered anew as it asks for by now
    at = iso(brain.clock.now())
    target, stale_error = brain.answered.response_target(prompt), brain.answered.error_removal(prompt)
    response = Response(
        path=target.path,
        text=_body(target.path, outcome),
        in_reply_to=posixpath.basename(prompt.path),
        prompt_id=prompt.id or new_id(),
        prompt_sha256=prompt.sha256,
        created_at=at,
        model=outcome.answer.model,
        memories=tuple(_link(target.path, source) for source in outcome.sources),
        tokens=outcome.answer.tokens,
        cost_usd=outcome.answer.cost_usd,
        took_ms=outcome.took_ms,
        remember=prompt.remember,
        private=outcome.is_private,
    )
    text = render_response(response)
    changes: list[Change] = [observe(prompt.path, raw)] if prompt.remember else []
    changes += _log_lines(brain, outcome, at)
    changes.append(update(target.path, target.before, text) if target.before is not None else create(target.path, text))
    changes += stale_error
    answered = PromptAnswered(
        prompt=prompt.path,
        prompt_id=response.prompt_id,
        prompt_sha256=prompt.sha256,
        response=target.path,
        # also where the journal keeps no text of it
        response_hash=content_hash(text.encode("utf-8", "surrogateescape")),
        model=response.model,
        led=_led(outcome) if prompt.remember else (),
    )
    brain.commit(answered, by=NAME, changes=changes, expect={prompt.path: content_hash(raw)})


def _sources(brain: Brain, hits: Sequence[Hit], answer: Answer) -> list[_Source]:
    """Return the pages that an answer rests on, each once."""
    found: dict[str, _Source] = {}
    for index in answer.cited:
        if 0 <= index < len(hits):
            hit = hits[index]
            anchor = hit.anchor if hit.kind == "statement" else ""
            found.setdefault(hit.path, _Source(hit.path, hit.title, hit.uuid, anchor))
    for path in answer.cited_paths:
        if path not in found and (text := brain.read_text(path)) is not None:
            found[path] = _page_source(brain, path, text)
    return list(found.values())


def _page_source(brain: Brain, path: str, text: str) -> _Source:
    if brain.tree.kind_of(path) is PathKind.SHORT_TERM:
        return _Source(path, "Short-term memory")
    try:
        memory = parse_memory(path, text)
    except FormatError:
        return _Source(path, posixpath.basename(path).removesuffix(".md"))
    return _Source(path, memory.title, memory.uuid)


def _log_lines(brain: Brain, outcome: _Outcome, at: str) -> list[Change]:
    """One READ for each long-term memory that was read, one CITE for each that the answer rests on."""
    root, long_term = brain.tree.root, brain.tree.relative(brain.tree.long_term) + "/"
    read = dict.fromkeys([hit.path for hit in outcome.hits] + list(outcome.answer.read))
    entries = [AccessEntry(at, "READ", str(root / path)) for path in read if path.startswith(long_term)]
    leading = outcome.answer.led
    led = [source.path for source in outcome.sources] if leading is None else [outcome.hits[n].path for n in leading]
    entries += [AccessEntry(at, "CITE", str(root / path)) for path in led if path.startswith(long_term)]
    text = "".join(format_entry(entry) for entry in entries)
    return [append(brain.tree.relative(brain.tree.access_log), text)] if text else []


def _led(outcome: _Outcome) -> tuple[LedWords, ...]:
    """Return which words led the answer: Promotion keeps what led answers on several days."""
    answer = outcome.answer
    leading = answer.led if answer.led is not None else answer.cited[:1]
    hits = [outcome.hits[number] for number in leading if 0 <= number < len(outcome.hits)]
    return tuple(LedWords(path=hit.path, anchor=hit.anchor, hash=text_hash(hit.text)) for hit in hits)


def _body(path: str, outcome: _Outcome) -> str:
    """Return the answer with links to what it cites below it."""
    text = outcome.answer.text.rstrip()
    if outcome.missing:
        text += f"\n\nNo such note, though the prompt has it in `focus`: {', '.join(outcome.missing)}"
    targets = [(posixpath.relpath(source.path, posixpath.dirname(path)), source) for source in outcome.sources]
    links = [_link(path, source) for target, source in targets if f"]({target}" not in text]
    return f"{text}\n\nFrom memory: {', '.join(links)}" if links else text


def _link(path: str, source: _Source) -> str:
    """Link a page from a response, with its identity in the title."""
    target = posixpath.relpath(source.path, posixpath.dirname(path))
    return format_link(source.title, target, source.uuid, source.anchor)
