"""Core Loop: a prompt in the inbox becomes an answer beside it."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from brainiac import events, hookimpl
from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import ConflictError, FormatError, ModelError
from brainiac.formats.access_log import AccessEntry, format_entry
from brainiac.formats.discretion import Audience
from brainiac.formats.markdown import format_link, relative_link
from brainiac.formats.page import parse_memory
from brainiac.formats.prompt import CITED, SHOWN, Prompt, Receipt, Response, arguments, parse_prompt, render_response
from brainiac.llm.context.assembler import workflow_named
from brainiac.llm.context.memory import MEMORY_HITS, missing_focus
from brainiac.llm.gate import Gate
from brainiac.llm.offline import MAX_PASSAGES
from brainiac.llm.redaction import redact, without_masks
from brainiac.llm.schemas import Answer, AnswerRequest, Queries, QueriesRequest, Result
from brainiac.search.documents import Hit
from brainiac.search.query import merged, searches
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
        workflow_named(brain, Gate(brain, Audience.NOBODY), prompt.workflow)  # raises where there is none of this name
    missing = missing_focus(brain, prompt) if prompt.focus else []
    request, reply = _prepare(brain, prompt)
    answer = _answer(brain, request, reply)
    took_ms = round((brain.clock.monotonic() - started) * 1000)
    is_private = prompt.private or reply.is_private or brain.models.rests_on_private(request, answer)
    sources = _sources(brain, request.hits, answer)
    outcome = _Outcome(request.hits, answer, sources, took_ms, is_private, missing)
    with brain.commit_lock():
        brain.answered.refresh()
        current, raw = brain.answered.of(prompt.path), brain.read(prompt.path)
        # by another process, such as `ask` while a daemon starts
        is_answered = current and current.exchange != (former and former.exchange)
        is_same = raw is not None and brain.answered.fingerprint(prompt.path, raw) == prompt.sha256
        if raw is None or not is_same or (current and is_answered and current.prompt_sha256 == prompt.sha256):
            brain.record(events.AnswerDiscarded(prompt=prompt.path, prompt_sha256=prompt.sha256), by=NAME)
        else:
            _deliver(brain, prompt, raw, outcome)


class _Source(NamedTuple):
    """A page that the answer cites; `anchor` is the block id of a statement, or ""."""

    path: str
    title: str
    uuid: str = ""
    anchor: str = ""

    @classmethod
    def of(cls, hit: Hit) -> _Source:
        """Return the page of a hit."""
        return cls(hit.path, hit.title, hit.uuid, hit.anchor if hit.kind == "statement" else "")


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
    gate = Gate(brain, prompt.reader)
    memory = gate.short_term(brain.short_term().memory)
    common: dict[str, Any] = {"prompt": prompt, "is_private": prompt.private, "now": brain.now()}
    common |= {"conversation": conversation, "short_term": memory}
    found_words = arguments(prompt.commands, "find")
    search = partial(brain.recall.search, limit=2 * MAX_PASSAGES, now=brain.now(), is_private=prompt.private)
    find_hits = gate.hits(hit for words in found_words for hit in search(words))
    retrieved = gate.hits(_retrieve(brain, QueriesRequest(**common))) if _is_for_engine(prompt) else []
    found = {(hit.path, hit.anchor, hit.text) for hit in find_hits}
    near = brain.recall.wishes(prompt.said)
    # Words that are nowhere in memory. Not for a prompt from another program (a door): a word that is not listed would
    # tell that a private page has it. A secret is not looked up, and the mask in its place is no word of the prompt.
    is_looked_up = not prompt.by and _is_for_engine(prompt)
    request = AnswerRequest(
        **common,
        hits=[*find_hits, *(hit for hit in retrieved if (hit.path, hit.anchor, hit.text) not in found)],
        absent=brain.recall.absent(without_masks(redact(brain, prompt.said)), asking=prompt.path)
        if is_looked_up
        else (),
        wants_list="list" in near,
        is_first=not conversation and not brain.answered.has_answered_beside(prompt.path),
        on_text=brain.stream_of(prompt.path),
    )
    reply = commands.reply_to_commands(brain, request, n_find_hits=len(find_hits))
    if prompt.remember and (secrets := commands.redaction_notice(brain, prompt.text)):
        reply.paragraphs.insert(0, secrets)
    commands.add_hints(brain, request, near, reply)
    return request, reply


def _is_for_engine(prompt: Prompt) -> bool:
    """Return whether a prompt says anything besides its commands."""
    return bool(prompt.said.strip()) or not prompt.commands


def _answer(brain: Brain, request: AnswerRequest, reply: commands.CommandReply) -> Answer:
    """Return the reply to the commands followed by the model's answer; a prompt of commands alone costs no call."""
    reply_text = "\n\n".join(reply.paragraphs)
    answer: Result = Answer(text="", model=commands.MODEL, led=reply.cited[:1])
    if reply_text and request.on_text:
        request.on_text(reply_text + ("\n\n" if _is_for_engine(request.prompt) else ""))
    if _is_for_engine(request.prompt):
        answer = brain.models.run(request)
    assert isinstance(answer, Answer)
    text = "\n\n".join(filter(None, [reply_text, answer.text]))
    return answer.model_copy(update={"text": text, "cited": sorted({*reply.cited, *answer.cited})})


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
        written: Result = Queries()
        try:
            written = brain.models.run(request)
        except ModelError as error:  # a step that only helps must not cost the answer
            brain.log.info("queries_failed", prompt=request.prompt.path, problem=error.problem)
        assert isinstance(written, Queries)
        further = searches(request.prompt.said, written.queries)[1:]
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


def _deliver(brain: Brain, prompt: Prompt, raw: bytes, outcome: _Outcome) -> None:
    """Commit the response and the lines of the access log.

    Args:
        brain: The brain.
        prompt: The prompt.
        raw: What its file holds now, whose text is the same.
        outcome: The answer.

    Raises:
        ConflictError: The prompt became private or off the record meanwhile, so that it has to be answered anew.
    """
    current = parse_prompt(prompt.path, raw, at=prompt.at, inbox=brain.tree.layout.inbox)
    if (current.private and not prompt.private) or (prompt.remember and not current.remember):
        raise ConflictError([prompt.path])
    at, target = iso(brain.clock.now()), brain.answered.response_target(prompt)
    receipts, body = _receipts(brain, target.path, outcome), outcome.answer.text.rstrip()
    if outcome.missing:
        body += f"\n\nNo such note, though the prompt has it in `focus`: {', '.join(outcome.missing)}"
    # links to the cited pages that the text does not link to
    targets = [(relative_link(source.path, posixpath.dirname(target.path)), source) for source in outcome.sources]
    links = [_link(target.path, source) for path, source in targets if f"]({path}" not in body]
    response = Response(
        path=target.path,
        text=f"{body}\n\nFrom memory: {', '.join(links)}" if links else body,
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
    changes += [*_log_lines(brain, outcome, at), events.write(target.path, target.before, text)]
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
    for hit in (hits[index] for index in answer.cited if 0 <= index < len(hits)):
        by_path.setdefault(hit.path, _Source.of(hit))
    for path in answer.cited_paths:
        if path not in by_path and (text := brain.read_text(path)) is not None:
            by_path[path] = _Source(path, posixpath.basename(path).removesuffix(".md"))
            if brain.tree.kind_of(path) is events.PathKind.SHORT_TERM:
                by_path[path] = _Source(path, "Short-term memory")
                continue
            with suppress(FormatError):  # what is no page is called by its file name
                memory = parse_memory(path, text)
                by_path[path] = _Source(path, memory.title, memory.uuid)
    return list(by_path.values())


def _receipts(brain: Brain, path: str, outcome: _Outcome) -> dict[str, Receipt]:
    """Return what an answer rested on, for the response at a path, by the name that memory knows each by."""
    answer, receipts = outcome.answer, dict[str, Receipt]()
    cited = set(answer.cited)
    shown = answer.cited if answer.shown is None else [*answer.cited, *(i for i in answer.shown if i not in cited)]
    for index in dict.fromkeys(shown):
        hit = outcome.hits[index]
        use, day = CITED if index in cited else SHOWN, brain.day_of(hit.at) if hit.at else ""
        id_, link = receipt_id(name := hit.name_in_memory), _link(path, _Source.of(hit))
        # of an exchange both sides may have been shown
        receipts.setdefault(name, Receipt(id_, use, day, hit.author.label, link, hit.is_earlier or bool(hit.former)))
    for source in outcome.sources:  # pages that the model read by its tools
        if source.path in answer.cited_paths:
            name, link = source.uuid or source.path, _link(path, source)
            receipts.setdefault(name, Receipt(receipt_id(name), CITED, "", "", link))
    return dict(list(receipts.items())[:MAX_RECEIPTS])


def _log_lines(brain: Brain, outcome: _Outcome, at: str) -> list[events.Change]:
    """Return the addition to the access log: READ for each memory shown, CITE for each that the answer rests on."""
    root, long_term = brain.tree.root, brain.tree.relative(brain.tree.long_term) + "/"
    shown_paths = dict.fromkeys([hit.path for hit in outcome.hits] + list(outcome.answer.read))
    # an engine that quotes many passages says which of them led to the answer: only those count as cited
    led = outcome.answer.led
    cited_paths = [source.path for source in outcome.sources] if led is None else [outcome.hits[n].path for n in led]
    rows = [("READ", path) for path in shown_paths] + [("CITE", path) for path in cited_paths]
    entries = (AccessEntry(at, action, str(root / path)) for action, path in rows if path.startswith(long_term))
    text = "".join(map(format_entry, entries))
    return [events.append(brain.tree.relative(brain.tree.access_log), text)] if text else []


def _link(path: str, source: _Source) -> str:
    """Return a link to a page from the response at a path, with the page's uuid in the link's title."""
    target = relative_link(source.path, posixpath.dirname(path))
    return format_link(source.title, target, source.uuid, source.anchor)
