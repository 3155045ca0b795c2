"""Core Loop: a prompt in the inbox becomes an answer beside it."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from brainiac import events, hookimpl
from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConflictError, FormatError, ModelError
from brainiac.formats.access_log import AccessEntry, format_entry
from brainiac.formats.markdown import format_link, relative_link
from brainiac.formats.page import parse_memory
from brainiac.formats.prompt import CITED, SHOWN, Prompt, Receipt, Response, parse_prompt, render_response
from brainiac.llm.context.assembler import workflow_named
from brainiac.llm.context.memory import MEMORY_HITS, missing_focus
from brainiac.llm.gate import Gate
from brainiac.llm.redaction import redact, without_masks
from brainiac.llm.schemas import Answer, AnswerRequest, Queries, QueriesRequest
from brainiac.search.documents import Hit
from brainiac.search.query import merged, searches
from brainiac.storage.said import Answer as Answered
from brainiac.storage.said import receipt_id

from . import prompt_commands as commands

NAME = "core_loop"
MAX_RECEIPTS = 12  # of an answer, what it cites first


@hookimpl
def startup(brain: Brain) -> None:
    """Open the index and the models now, so that the first prompt does not wait, and no two threads open them."""
    # the first search opens the index, whatever it finds; the first access opens the models
    brain.recall.search("what was said", limit=1, now=brain.now())
    _ = brain.models


@hookimpl
def prompt_arrived(brain: Brain, prompt: Prompt) -> None:
    """Answer a prompt in one commit: the access log's lines, then the response.

    Nothing is written where another process has answered it meanwhile.

    Raises:
        ModelError: The model cannot serve now, or there is no such workflow; the prompt stays pending.
        ConflictError: The prompt changed meanwhile; its new text is answered instead.
    """
    started, former = brain.clock.monotonic(), brain.answered.of(prompt.path)
    if prompt.workflow:
        workflow_named(brain, Gate(brain, is_remote=False), prompt.workflow)  # raises where there is none of this name
    missing = missing_focus(brain, prompt) if prompt.focus else []
    request, reply = _prepare(brain, prompt)
    answer = _answer(brain, request, reply)
    took_ms = round((brain.clock.monotonic() - started) * 1000)
    is_private = prompt.private or reply.is_private or brain.models.rests_on_private(request, answer)
    sources = _sources(brain, request.hits, answer)
    outcome = _Outcome(request.hits, answer, sources, took_ms, is_private, missing)
    with brain.commit_lock():
        brain.answered.refresh()
        if _is_answered_meanwhile(brain, prompt, former):
            _discard(brain, prompt)
        else:
            _deliver(brain, prompt, outcome)


def _is_answered_meanwhile(brain: Brain, prompt: Prompt, former: Answered | None) -> bool:
    """Return whether another process has answered the same text meanwhile, such as `ask` while a daemon starts.

    Args:
        brain: The brain.
        prompt: The prompt.
        former: The answer that its file had when the work on it began.
    """
    current = brain.answered.of(prompt.path)
    is_other = current is not None and (former is None or current.exchange != former.exchange)
    return current is not None and is_other and current.prompt_sha256 == prompt.sha256


def _discard(brain: Brain, prompt: Prompt) -> None:
    """Record that the answer to this text of the prompt is not written."""
    brain.record(events.AnswerDiscarded(prompt=prompt.path, prompt_sha256=prompt.sha256), by=NAME)


@dataclass(frozen=True, slots=True)
class _Source:
    """A page that the answer cites; `anchor` is the block id of a statement, or ""."""

    path: str
    title: str
    uuid: str = ""
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The answer to a prompt with all that is written beside it.

    Attributes:
        hits: What was shown to the model, and what `/find` found.
        answer: The text, and which hits it cites.
        sources: The pages that it cites.
        took_ms: How long it took.
        is_private: Whether the exchange must not leave this machine.
        missing: Notes in the prompt's `focus` that do not exist.
    """

    hits: Sequence[Hit]
    answer: Answer
    sources: Sequence[_Source]
    took_ms: int
    is_private: bool
    missing: Sequence[str]


def _prepare(brain: Brain, prompt: Prompt) -> tuple[AnswerRequest, commands.CommandReply]:
    """Search memory for a prompt; return the request for its answer, and the reply to its commands.

    The hits of the request are those of `/find`, then those for the model.
    """
    conversation = brain.conversation(prompt)
    # here nothing leaves this machine: what a model elsewhere may see is filtered when it is called
    gate = Gate(brain, is_remote=False, is_answer_kept=prompt.remember, is_door=bool(prompt.by))
    common: dict[str, Any] = {
        "now": brain.now(),
        "is_private": prompt.private,
        "off_record": not prompt.remember,
        "prompt": prompt,
        "short_term": gate.short_term(brain.short_term().memory),
        "conversation": conversation,
    }
    find_hits = gate.hits(commands.find_hits(brain, prompt))
    retrieved = gate.hits(_retrieve(brain, QueriesRequest(**common))) if _is_for_engine(prompt) else []
    found = {(hit.path, hit.anchor, hit.text) for hit in find_hits}
    near = brain.recall.wishes(prompt.said)
    request = AnswerRequest(
        **common,
        hits=[*find_hits, *(hit for hit in retrieved if (hit.path, hit.anchor, hit.text) not in found)],
        absent=_absent(brain, prompt),
        wants_list="list" in near,
        is_first=not conversation and not brain.answered.has_answered_beside(prompt.path),
        zone=brain.zone,
        on_text=brain.stream_of(prompt.path),
    )
    reply = commands.reply_to_commands(brain, request, n_find_hits=len(find_hits))
    if prompt.remember and (secrets := commands.redaction_notice(brain, prompt.text)):
        reply.paragraphs.insert(0, secrets)
    commands.add_hints(brain, request, near, reply)
    return request, reply


def _absent(brain: Brain, prompt: Prompt) -> list[str]:
    """Return the words of a prompt that are nowhere in memory; [] for a prompt of commands alone.

    [] also for a prompt from another program (a door): a word that is not listed would tell that a private page has it.
    """
    is_from_door = bool(prompt.by)
    if is_from_door or not _is_for_engine(prompt):
        return []
    # a secret is not looked up, and the mask in its place is no word of the prompt
    return brain.recall.absent(without_masks(redact(brain, prompt.said)), asking=prompt.path)


def _is_for_engine(prompt: Prompt) -> bool:
    """Return whether a prompt says anything besides its commands."""
    return bool(prompt.said.strip()) or not prompt.commands


def _answer(brain: Brain, request: AnswerRequest, reply: commands.CommandReply) -> Answer:
    """Return the reply to the commands followed by the model's answer; a prompt of commands alone costs no call."""
    reply_text = "\n\n".join(reply.paragraphs)
    answer = Answer(text="", model=commands.MODEL, led=reply.cited[:1])
    if reply_text and request.on_text:
        request.on_text(reply_text + ("\n\n" if _is_for_engine(request.prompt) else ""))
    if _is_for_engine(request.prompt):
        result = brain.models.run(request)
        assert isinstance(result, Answer)
        answer = result
    text = "\n\n".join(filter(None, [reply_text, answer.text]))
    return answer.model_copy(update={"text": text, "cited": sorted({*reply.cited, *answer.cited})})


def _queries(brain: Brain, request: QueriesRequest) -> list[str]:
    """Return the queries that the model writes; none where it fails."""
    try:
        result = brain.models.run(request)
    except ModelError as error:  # a step that only helps must not cost the answer
        brain.log.info("queries_failed", prompt=request.prompt.path, problem=error.problem)
        return []
    assert isinstance(result, Queries)
    return result.queries


def _retrieve(brain: Brain, request: QueriesRequest) -> list[Hit]:
    """Search for the prompt's own words, and for what a model writes where these find nothing that is sure.

    Each place is among the hits once, best first. Plugins may add hits and reorder them.
    """
    (own,) = searches(request.prompt.said, [])
    results = [_search(brain, request, own, is_private=request.is_private)]
    if not any(hit.is_sure for hit in results[0][:1]):
        request = replace(request, hits=results[0])
        # a local model was shown private pages and may repeat them in its queries: those go to no remote embedder
        is_private = request.is_private or not brain.models.engine_for(request).is_remote
        further = searches(request.prompt.said, _queries(brain, request))[1:]
        results += [_search(brain, request, query, is_private=is_private) for query in further]
    hits = merged(results)[: 2 * MEMORY_HITS]
    return list(brain.plugins.chain("rerank", "hits", hits, brain=brain, query=own))


def _search(brain: Brain, request: QueriesRequest, query: str, *, is_private: bool) -> list[Hit]:
    """Return what a query finds, and what plugins find for it behind that."""
    hits = brain.recall.search(
        query, limit=MEMORY_HITS, now=brain.now(), is_private=is_private, asking=request.prompt.path
    )
    from_plugins = brain.plugins.call("retrieve", brain=brain, query=query, limit=MEMORY_HITS)
    return [*hits, *(hit for plugin_hits in from_plugins for hit in plugin_hits)]


def _deliver(brain: Brain, prompt: Prompt, outcome: _Outcome) -> None:
    """Commit the response and the lines of the access log, unless the prompt was moved or edited meanwhile.

    Raises:
        ConflictError: The prompt became private or off the record meanwhile, so that it has to be answered anew.
    """
    raw = brain.read(prompt.path)
    if raw is None or brain.answered.fingerprint(prompt.path, raw) != prompt.sha256:
        _discard(brain, prompt)
        return
    current = parse_prompt(prompt.path, raw, at=prompt.at, inbox=brain.tree.layout.inbox)
    if (current.private and not prompt.private) or (prompt.remember and not current.remember):
        raise ConflictError([prompt.path])
    at, target = iso(brain.clock.now()), brain.answered.response_target(prompt)
    receipts = _receipts(brain, target.path, outcome)
    response = Response(
        path=target.path,
        text=_body(target.path, outcome),
        in_reply_to=posixpath.basename(prompt.path),
        prompt_id=prompt.id or events.new_id(),
        prompt_sha256=prompt.sha256,
        created_at=at,
        model=outcome.answer.model,
        memories=tuple(_link(target.path, source) for source in outcome.sources),
        receipts=tuple(receipts.values()),
        tokens=outcome.answer.tokens,
        cost_usd=outcome.answer.cost_usd,
        took_ms=outcome.took_ms,
        remember=prompt.remember,
        private=outcome.is_private,
    )
    text = render_response(response)
    # observed: the journal keeps the very text that was answered
    changes: list[events.Change] = [events.observe(prompt.path, raw)] if prompt.remember else []
    changes += _log_lines(brain, outcome, at)
    changes.append(
        events.update(target.path, target.before, text)
        if target.before is not None
        else events.create(target.path, text)
    )
    changes += brain.answered.error_removal(prompt)
    answered = events.PromptAnswered(
        prompt=prompt.path,
        prompt_id=response.prompt_id,
        prompt_sha256=prompt.sha256,
        response=target.path,
        # where the journal keeps no text of the response, an edit of the file is recognized by this
        response_hash=events.content_hash(text.encode("utf-8", "surrogateescape")),
        model=response.model,
        origin=prompt.origin,
        author=prompt.by,
        receipts={receipt.id: name for name, receipt in receipts.items()} if prompt.remember else {},
    )
    # the answer is to these very words: after a save in between nothing is written, and the new text is answered
    brain.commit(answered, by=NAME, changes=changes, expect={prompt.path: events.content_hash(raw)})


def _sources(brain: Brain, hits: Sequence[Hit], answer: Answer) -> list[_Source]:
    """Return the pages that an answer cites, each once."""
    by_path: dict[str, _Source] = {}
    for index in answer.cited:
        if 0 <= index < len(hits):
            hit = hits[index]
            anchor = hit.anchor if hit.kind == "statement" else ""
            by_path.setdefault(hit.path, _Source(hit.path, hit.title, hit.uuid, anchor))
    for path in answer.cited_paths:
        if path not in by_path and (text := brain.read_text(path)) is not None:
            by_path[path] = _page_source(brain, path, text)
    return list(by_path.values())


def _receipts(brain: Brain, path: str, outcome: _Outcome) -> dict[str, Receipt]:
    """Return what an answer rested on, for the response at a path, by the name that memory knows each by."""
    answer, receipts = outcome.answer, dict[str, Receipt]()
    cited = set(answer.cited)
    shown = answer.cited if answer.shown is None else [*answer.cited, *(i for i in answer.shown if i not in cited)]
    for index in dict.fromkeys(shown):
        hit = outcome.hits[index]
        name, anchor = hit.name_in_memory, hit.anchor if hit.kind == "statement" else ""
        receipt = Receipt(
            id=receipt_id(name),
            use=CITED if index in cited else SHOWN,
            day=brain.day_of(hit.at) if hit.at else "",
            who=hit.author.label,
            link=_link(path, _Source(hit.path, hit.title, hit.uuid, anchor)),
            is_outdated=hit.is_earlier or bool(hit.former),
        )
        receipts.setdefault(name, receipt)  # of an exchange both sides may have been shown
    for source in outcome.sources:  # pages that the model read by its tools
        if source.path in answer.cited_paths:
            name, link = source.uuid or source.path, _link(path, source)
            receipts.setdefault(name, Receipt(receipt_id(name), CITED, "", "", link))
    return dict(list(receipts.items())[:MAX_RECEIPTS])


def _page_source(brain: Brain, path: str, text: str) -> _Source:
    """Return a file as a source; one that is no page is called by its file name."""
    if brain.tree.kind_of(path) is events.PathKind.SHORT_TERM:
        return _Source(path, "Short-term memory")
    try:
        memory = parse_memory(path, text)
    except FormatError:
        return _Source(path, posixpath.basename(path).removesuffix(".md"))
    return _Source(path, memory.title, memory.uuid)


def _log_lines(brain: Brain, outcome: _Outcome, at: str) -> list[events.Change]:
    """Return the addition to the access log: READ for each memory shown, CITE for each that the answer rests on."""
    root, long_term = brain.tree.root, brain.tree.relative(brain.tree.long_term) + "/"
    shown_paths = dict.fromkeys([hit.path for hit in outcome.hits] + list(outcome.answer.read))
    entries = [AccessEntry(at, "READ", str(root / path)) for path in shown_paths if path.startswith(long_term)]
    # an engine that quotes many passages says which of them led to the answer: only those count as cited
    if outcome.answer.led is not None:
        cited_paths = [outcome.hits[number].path for number in outcome.answer.led]
    else:
        cited_paths = [source.path for source in outcome.sources]
    entries += [AccessEntry(at, "CITE", str(root / path)) for path in cited_paths if path.startswith(long_term)]
    text = "".join(format_entry(entry) for entry in entries)
    return [events.append(brain.tree.relative(brain.tree.access_log), text)] if text else []


def _body(path: str, outcome: _Outcome) -> str:
    """Return the answer for a response at a path, with links to the cited pages that its text does not link to."""
    text = outcome.answer.text.rstrip()
    if outcome.missing:
        text += f"\n\nNo such note, though the prompt has it in `focus`: {', '.join(outcome.missing)}"
    targets = [(relative_link(source.path, posixpath.dirname(path)), source) for source in outcome.sources]
    links = [_link(path, source) for target, source in targets if f"]({target}" not in text]
    return f"{text}\n\nFrom memory: {', '.join(links)}" if links else text


def _link(path: str, source: _Source) -> str:
    """Return a link to a page from the response at a path, with the page's uuid in the link's title."""
    target = relative_link(source.path, posixpath.dirname(path))
    return format_link(source.title, target, source.uuid, source.anchor)
