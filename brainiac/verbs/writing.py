"""The verbs that bring something in: remember and ask save a file in the inbox, suggest proposes a change of memory."""

from __future__ import annotations

import hashlib
import posixpath
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from brainiac import events
from brainiac.brain import Brain, Turn
from brainiac.clock import iso, parse_iso
from brainiac.errors import ModelError, UserError
from brainiac.formats import prompt as prompts
from brainiac.formats.frontmatter import render_meta
from brainiac.formats.markdown import Link, LinkStream, retarget_links
from brainiac.formats.prompt import parse_prompt
from brainiac.history.why import StatementMatch, find_statement
from brainiac.library import read_prompt
from brainiac.llm.redaction import redact
from brainiac.llm.schemas import OFFLINE
from brainiac.pipeline.daemon import answer_one, capture_one
from brainiac.storage.database import read_run_state
from brainiac.storage.files import Disk, temporary_beside
from brainiac.storage.review import asked_before, asking
from brainiac.storage.serving import is_running
from brainiac.storage.statements import text_hash
from brainiac.tree import slugify
from brainiac.verbs.reading import ID, PERSON, SCHEME, Caller, Result, named_page

WAIT_SECONDS = 600.0
MAX_CONVERSATION_BYTES = 500  # the path of its folder must leave room for the names in it
CAPTURE_SECONDS = 5.0  # a daemon takes in a finished note in less than one
LOOK_EVERY_SECONDS = 0.02
_NAME_WORDS = 8


# --- remember ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Remembered(Result):
    """A note that was put into the inbox.

    Attributes:
        id: Its path.
        is_new: False where a note with the same key was there already.
        fresh: Whether it is in short-term memory, where search finds it.
        waits: Why it is not there yet; "" where it is.
    """

    id: str
    is_new: bool
    fresh: bool
    waits: str = ""


def remember(
    brain: Brain,
    text: Annotated[str, Field(description="what is to be remembered, whole and understandable by itself")],
    *,
    about: Annotated[str, Field(description=f"the page it is about: {ID}")] = "",
    is_private: Annotated[
        bool, Field(alias="private", description="it must never reach a model elsewhere, and no door shows it again")
    ] = False,
    key: Annotated[str, Field(description="your own name for this note: the same key again adds nothing")] = "",
    caller: Caller = PERSON,
) -> Remembered:
    """Put a note into `inbox/notes/` and have it taken into short-term memory, here or by the daemon.

    Use when the person asks you to remember something, or says a lasting fact about themselves. It becomes a note of
    yours in the inbox; no page is edited.

    Args:
        brain: The brain.
        text: What is to be remembered, whole.
        about: A page it is about, by a name that `fetch` takes.
        is_private: It must not leave this machine.
        key: The caller's own name for it: the same key again adds nothing.
        caller: Who brings it.

    Raises:
        UserError: There is no text, or no page of that name.
    """
    if not text.strip():
        raise UserError("there is nothing to remember: the text is empty")
    meta = caller.head()
    if about:
        page = named_page(brain, caller.gate(brain), about, caller)
        meta["focus"] = [f"[[{page.id.removesuffix('.md')}]]"]
    if is_private:
        meta["private"] = True
    folder = brain.tree.inbox / "notes"
    if key:
        stem = f"note-{_hash(caller.by, key)[:16]}"
        path = f"{brain.tree.relative(folder)}/{stem}.md"
        # brought in before, though it may have been moved since
        if brain.read(path) is not None or brain.answered.of(path):
            return _take_in(brain, path, is_new=False)
    else:
        stem = _stem(brain, text, is_named=not is_private)
    file = _write_new(folder, stem, meta, text, is_unique=bool(key))
    return _take_in(brain, brain.tree.relative(file), is_new=True)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()


def _take_in(brain: Brain, path: str, *, is_new: bool) -> Remembered:
    """Take a note in, or wait a few seconds for the daemon that does; return what became of it."""
    if not brain.is_active:
        return Remembered(path, is_new, fresh=False, waits=brain.waits_for)
    if not is_running(brain):
        capture_one(brain, path)
    deadline = time.monotonic() + CAPTURE_SECONDS
    while True:
        brain.answered.refresh()
        record = brain.answered.of(path)
        # it is an exchange, and a process recorded what became of it
        is_taken = record is not None and brain.answered.has_outcome(record.exchange)
        if is_taken or not is_running(brain) or time.monotonic() > deadline:
            break
        time.sleep(LOOK_EVERY_SECONDS)
    return Remembered(path, is_new, is_taken, "" if is_taken else "it is taken in later; `status` tells why")


def _stem(brain: Brain, text: str, *, is_named: bool) -> str:
    """Return the name of a new file without its suffix: the moment, then the first words or, without them, an id.

    Args:
        brain: The brain.
        text: The file's text.
        is_named: Whether the first words may be in the name. Not those of a private text: the name alone is seen in the
            journal, by `status`, and by whoever syncs the folder.
    """
    name = slugify(" ".join(redact(brain, text).split()[:_NAME_WORDS])) if is_named else events.new_id()[-12:]
    return f"{brain.now():%Y-%m-%d-%H%M%S}-{name}"[:80].rstrip("-")


def _write_new(folder: Path, stem: str, meta: Mapping[str, object], text: str, *, is_unique: bool = False) -> Path:
    """Save a new file as a person would and return its path.

    Args:
        folder: Made where it is not there.
        stem: Its name without suffix; a number is added where that is taken.
        meta: Its front matter.
        text: Its text.
        is_unique: Whether the name is this text's own: then a file that has it already is returned as it is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    head = f"{render_meta(meta)}\n" if meta else ""
    # written under a temporary name and renamed: the daemon must not answer half of a prompt
    aside = Path(temporary_beside(str(folder / stem)))
    aside.write_text(f"{head}{text.rstrip()}\n", encoding="utf-8", errors="replace")
    number, path = 1, folder / f"{stem}.md"
    while True:
        try:
            Disk().rename_new(aside, path)
            return path
        # two callers with the same first words in the same second
        except FileExistsError:
            if is_unique:
                aside.unlink()
                return path
            number += 1
            path = folder / f"{stem}-{number}.md"


# --- ask -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked(Result):
    """A prompt and its answer.

    Attributes:
        prompt: The prompt's path.
        response: The answer; None where there is none yet.
        waits: Why there is none, or why memory does not have the exchange yet; "" for neither.
    """

    prompt: str
    response: prompts.Response | None = None
    waits: str = ""

    @property
    def fresh(self) -> bool:
        """Whether there is an answer: it is made from the memory of its moment."""
        return self.response is not None

    @property
    def receipts(self) -> list[dict[str, Any]]:
        """What the answer rested on, as plain values for JSON."""
        if self.response is None:
            return []
        folder = posixpath.dirname(self.response.path)
        return [receipt.to_json(folder) for receipt in self.response.receipts]

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON."""
        if self.response is None:
            return {"prompt": self.prompt, "response": None, "fresh": False, "waits": self.waits}
        fields = ("model", "memories", "tokens", "cost_usd", "took_ms", "created_at", "prompt_id")
        values = {name: getattr(self.response, name) for name in fields}
        values["receipts"] = self.receipts
        path = self.response.path if self.prompt else None  # nothing is kept of a question about the past
        answer = {"prompt": self.prompt, "response": path, "text": self.response.text}
        return answer | {"fresh": True, "waits": self.waits} | values


def ask(
    brain: Brain,
    text: Annotated[str, Field(description="the question, whole")],
    *,
    conversation: Annotated[str, Field(description="a name that keeps several questions together")] = "",
    model: Annotated[str, Field(description="one of the models in this brain's settings; empty: its default")] = "",
    is_private: bool = False,
    is_off_record: bool = False,
    key: str = "",
    is_again: bool = False,
    can_revise: bool = False,
    earlier: Sequence[prompts.Exchange] = (),
    caller: Caller = PERSON,
    stream: Callable[[str], None] | None = None,
    on_wait: Callable[[str, str], None] | None = None,
) -> Asked:
    """Save a prompt in the inbox and return its answer, made here or by the daemon.

    Use when the person wants this memory's own assistant to answer; question and answer are kept. To look something up
    use `search`.

    Args:
        brain: The brain.
        text: The prompt.
        conversation: A subfolder of the inbox.
        model: Another model for this one; a door may choose among those of the settings.
        is_private: Never to a model elsewhere.
        is_off_record: Nothing of it is kept.
        key: The caller's own name for it: the same key again is the same prompt, and gets the same answer.
        is_again: One of the same key is answered anew, in place of the answer that it has.
        can_revise: One of the same key may have another text: then its file gets that text, and is answered anew.
        earlier: What was said before, where the caller and not a folder keeps the conversation; it is not kept.
        caller: Who asks.
        stream: Called with each piece of an answer that is made in this process.
        on_wait: Called with the prompt's path and a reason while something keeps the daemon from answering.

    Raises:
        UserError: There is no text, it cannot be asked there, it was refused, no model could serve, or the key was
            used for another text.
    """
    folder, stem, meta = new = _new_prompt(
        brain, text, conversation, model, caller, is_private=is_private, is_off_record=is_off_record
    )
    if brain.present is not brain:
        return _answer_then(brain, *new, text, Turn(stream, tuple(earlier)), caller)
    if caller.is_person and not key:
        # written now: its path is known only when it is, as a number is added to a name that is taken
        path, is_written = brain.tree.relative(_write_new(*new, text)), True
    else:
        # a client's key may have any characters
        stem = f"turn-{_hash(caller.by, conversation, key)[:16]}" if key else f"{stem}-{events.new_id()[-8:]}"
        path = f"{brain.tree.relative(folder)}/{stem}.md"
        before = brain.read(path)
        is_written = before is not None  # by an earlier call with the same key
        given = text.encode("utf-8", "replace")
        # front matter does not count
        if before is not None and len({parse_prompt(path, each, at="").sha256 for each in (before, given)}) > 1:
            if not can_revise:
                raise UserError(f"the key {key[:80]!r} was used for another text; give each text a key of its own")
            path, is_written = _revise(brain, path, before, meta, text, caller)
            is_again = is_written and _is_answered(brain, path)
    links = _client_links(path)
    passed_on = stream if stream is None or caller.is_person else lambda piece: stream(links.feed(piece))
    # a daemon in this process may take a file at once, so that its turn is made known before the file is there
    with brain.turn(path, Turn(passed_on, tuple(earlier))):
        if not is_written:
            _write_new(folder, posixpath.basename(path).removesuffix(".md"), meta, text, is_unique=True)
        return _answer(brain, path, is_again=is_again and is_written, caller=caller, on_wait=on_wait)


def _answer_then(
    brain: Brain, folder: Path, stem: str, meta: Mapping[str, object], text: str, turn: Turn, caller: Caller
) -> Asked:
    """Return the answer of a brain as it stood, which is nowhere kept; its prompt gets no path."""
    from brainiac.history.as_of import AsOf  # few ask for it

    assert isinstance(brain, AsOf)
    path = f"{brain.tree.relative(folder)}/{stem}-{events.new_id()[-8:]}.md"
    links = _client_links(path)
    if not caller.is_person:
        passed_on = turn.stream
        turn = replace(turn, stream=passed_on and (lambda piece: passed_on(links.feed(piece))))
    try:
        response = brain.answer(path, f"{render_meta(meta)}\n{text}\n".encode("utf-8", "replace"), turn)
    except ModelError as error:
        raise UserError(f"{error.problem} {error.advice}".strip()) from error
    return Asked("", _for_caller(response, path, caller))


def save_prompt(brain: Brain, text: str, *, conversation: str = "") -> str:
    """Save a person's prompt in the inbox, as `ask` does first, and return its path; `answer` has it answered.

    Raises:
        UserError: There is no text, or it cannot be asked there.
    """
    return brain.tree.relative(_write_new(*_new_prompt(brain, text, conversation), text))


def _new_prompt(
    brain: Brain,
    text: str,
    conversation: str,
    model: str = "",
    caller: Caller = PERSON,
    *,
    is_private: bool = False,
    is_off_record: bool = False,
) -> tuple[Path, str, Mapping[str, object]]:
    """Return where a prompt is to be saved, its name without suffix unless its caller gives another, and its front
    matter; see `ask`.

    Raises:
        UserError: There is no text, the model is none of this brain, the conversation is a folder in which nothing is
            answered, such as that of the notes, or its name is too long.
    """
    if not text.strip():
        raise UserError("there is nothing to ask: the text is empty")
    named = {OFFLINE, brain.settings.llm.model, *brain.settings.llm.models.values()}
    if model and not caller.is_person and model not in named:  # it could cost money or show memory
        raise UserError(f"{model!r} is no model of this brain; there are {', '.join(sorted(named))}")
    meta = caller.head()
    if model:
        meta["model"] = model
    if is_private:
        meta["private"] = True
    if is_off_record:
        meta["remember"] = False
    if not brain.is_active and not brain.git_operation:
        meta["device"] = brain.journal.device  # no other device answers it, whatever arrives there first
    if len(conversation.encode("utf-8", "replace")) > MAX_CONVERSATION_BYTES:
        most = f"the name of a conversation has at most {MAX_CONVERSATION_BYTES} bytes"
        raise UserError(f"{conversation[:40]!r}…: {most}")
    # named from the root on, so that no message tells a client where the brain stands
    folder = brain.tree.confine(posixpath.join(brain.tree.layout.inbox, conversation), inside=brain.tree.inbox)
    if brain.tree.kind_of(f"{brain.tree.relative(folder)}/prompt.md") is not events.PathKind.PROMPT:
        raise UserError(f"{conversation!r} is no conversation: nothing in that folder is answered")
    return folder, _stem(brain, text, is_named=not (is_private or is_off_record)), meta


def _is_answered(brain: Brain, path: str) -> bool:
    """Return whether the text that the prompt at a path has now was answered."""
    prompt = read_prompt(brain, path)
    brain.answered.refresh()
    return prompt is not None and brain.answered.is_answered(prompt)


def _revise(
    brain: Brain, path: str, before: bytes, meta: Mapping[str, object], text: str, caller: Caller
) -> tuple[str, bool]:
    """Put a client's new wording into the file of its prompt.

    Where somebody changed the file since the client wrote it, the new wording belongs into a file of its own.

    Args:
        brain: The brain.
        path: The prompt.
        before: The file's present content.
        meta: The new front matter.
        text: The new wording.
        caller: The client.

    Returns:
        The path for the new wording, and whether it is written there: by this call, or by an earlier one.
    """
    brain.answered.refresh()
    answer, digest = brain.answered.of(path), events.content_hash(before)
    writings = (
        event.what
        for event in brain.journal.events_naming(path)
        if any((change.path, change.after) == (path, digest) for change in event.changes)
    )
    # what somebody typed there may have been answered since: who wrote it says whose it is
    writing = next((what for what in writings if isinstance(what, events.NoteEdited)), None)
    if answer is None or answer.prompt_hash != digest or writing is None or not writing.client:
        path = f"{path.removesuffix('.md')}-{_hash(text)[:8]}.md"
        return path, brain.read(path) is not None
    # the last line: a daemon takes the file at once, instead of waiting whether somebody goes on typing
    after = f"{render_meta(meta)}\n{text.rstrip()}\n\n/send\n"
    brain.commit(events.NoteEdited(client=caller.by), by="person", changes=[events.update(path, before, after)])
    return path, True


def answer(
    brain: Brain,
    path: str,
    *,
    is_again: bool = False,
    stream: Callable[[str], None] | None = None,
    on_wait: Callable[[str, str], None] | None = None,
) -> Asked:
    """Have a prompt in the inbox answered for the person, here or by the daemon.

    Args:
        brain: The brain.
        path: The prompt, relative.
        is_again: Answer it although it was answered.
        stream: Called with each piece of an answer that is made in this process.
        on_wait: Called with the prompt's path and a reason while something keeps the daemon from answering.

    Raises:
        UserError: It was refused, no model could serve, or it was not answered in ten minutes.
    """
    with brain.turn(path, Turn(stream)):
        return _answer(brain, path, is_again=is_again, caller=PERSON, on_wait=on_wait)


def _client_links(path: str) -> LinkStream:
    """Return what gives the links of an answer as `fetch` takes them: a client has no folder that they lead from."""

    def shown(link: Link, written: str) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link.target))
        return retarget_links(written, lambda _: SCHEME + target)

    return LinkStream(shown)


def _answer(
    brain: Brain, path: str, *, is_again: bool, caller: Caller, on_wait: Callable[[str, str], None] | None
) -> Asked:
    """Have a prompt answered and return the answer; see `answer`."""
    if brain.git_operation:
        return Asked(path, waits=brain.waits_for)
    try:
        if is_running(brain) and not is_again:  # a daemon, here or elsewhere, sees the file by itself
            target = _await_answer(brain, path, on_wait)
        else:
            target = answer_one(brain, path, is_again=is_again)
    except ModelError as error:
        by_itself = ", and a running `brainiac run` by itself" if error.retryable else ""
        place = f"Your prompt stands in {path}: `brainiac ask --again {shlex.quote(path)}` asks it again{by_itself}."
        raise UserError(" ".join(filter(None, (error.problem, error.advice, place)))) from error
    file = brain.tree.relative(target)
    response = prompts.parse_response(file, target.read_bytes())
    prompt = brain.read(path)
    is_private_prompt = prompt is not None and parse_prompt(path, prompt, at="").private
    response = _for_caller(response, path, caller, is_private_prompt=is_private_prompt)
    return Asked(path, response, brain.waits_for if response.remember else "")


def _for_caller(
    response: prompts.Response, path: str, caller: Caller, *, is_private_prompt: bool = False
) -> prompts.Response:
    """Return an answer to the prompt at a path as its caller gets it.

    Raises:
        UserError: It is private, and neither the caller nor the prompt is.
    """
    if caller.is_person:
        return response
    if response.private and not is_private_prompt:
        # our engines were shown nothing private for this caller, but a plugin or a person's hand may have written it
        raise UserError(f"{path}: its answer is for the person alone; it stands in {response.path}")
    links = _client_links(path)
    return replace(response, text=links.feed(response.text) + links.rest())


def _await_answer(brain: Brain, path: str, on_wait: Callable[[str, str], None] | None) -> Path:
    """Return the response file that the daemon writes; `on_wait` is called with each new reason for waiting.

    Raises:
        UserError: The daemon wrote an error file, or nothing within ten minutes.
    """
    response, error = brain.tree.absolute(prompts.response_path(path)), brain.tree.absolute(prompts.error_path(path))
    deadline = time.monotonic() + WAIT_SECONDS
    reason = ""
    while time.monotonic() < deadline:
        # of a revised prompt the file may still hold the answer to its former wording
        if response.is_file() and _is_answered(brain, path):
            answer = brain.answered.of(path)
            # the path may have a number, where a person edited that answer
            return brain.tree.absolute(answer.response) if answer and answer.response else response
        if error.is_file():
            raise UserError(f"{path} was not answered. {prompts.reason_of_error(error.read_text(encoding='utf-8'))}")
        rows = read_run_state(brain.database).pending
        pending = next((row for row in rows if row.get("prompt") == path and row.get("retry_at")), None)
        if pending:  # else it is at work on it, or gave up and wrote an error file
            moment = parse_iso(str(pending["retry_at"])).astimezone(brain.zone)
            new_reason = f"{pending.get('reason')} It is tried again at {moment:%Y-%m-%d %H:%M:%S}."
            if on_wait and new_reason != reason:
                on_wait(path, new_reason)
            reason = new_reason
        time.sleep(LOOK_EVERY_SECONDS)
    where = f"it comes to {prompts.response_path(path)}"
    raise UserError(f"{path}: no answer yet; {where}, and `brainiac status` tells what waits")


# --- suggest -------------------------------------------------------------------------------------------------------

Change = Literal["replace", "end", "forget"]


@dataclass(frozen=True, slots=True)
class Suggested(Result):
    """A line in `memory/review.md`, which a person accepts with `[x]` or declines with `[-]`.

    Attributes:
        id: Of the proposal.
        what: What is proposed, in one sentence.
        is_new: False where the same proposal is open already.
        fresh: Always true: the target was read just now.
    """

    id: str
    what: str
    is_new: bool
    fresh: bool = True


def suggest(
    brain: Brain,
    name: Annotated[
        str,
        Field(alias="id", description="a statement: an id that `search` gave or its words; for `forget` a page too"),
    ],
    change: Annotated[
        Change, Field(description="`replace`: word it anew; `end`: it no longer holds; `forget`: take it out of memory")
    ],
    text: Annotated[str, Field(description="the new wording, for `replace` alone")] = "",
    *,
    caller: Caller = PERSON,
) -> Suggested:
    """Propose a change of memory to the person; nothing is changed until they accept it.

    Use when a statement is wrong or out of date. It puts a line before the person, who decides; nothing changes until
    then.

    Args:
        brain: The brain.
        name: A statement (`path#^block`, block id, its words), or for `forget` a page or an exchange too.
        change: `replace` gives it another wording, `end` moves it to History, `forget` removes it from memory.
        text: The new wording.
        caller: Who suggests it.

    Raises:
        UserError: Nothing that the caller may see is called so, or there is no new wording.
        ConflictError: Somebody keeps writing `review.md`.
    """
    if bool(text.strip()) != (change == "replace"):
        raise UserError("a new wording belongs to `replace`, and to nothing else")
    gate = None if caller.is_person else caller.gate(brain)
    name = name.removeprefix(SCHEME)
    target = find_statement(brain, name, gate)
    if target is not None and target.is_exact:
        record = _about_statement(brain, target, change, text, caller)
        is_private = target.memory.is_private
    elif change == "forget":
        record, is_private = _about_page(brain, name, caller)
    else:
        raise UserError(f"{name!r} is no statement here; `search` gives ids that are")
    return brain.retry(lambda: _propose(brain, record, is_private, caller))


def _about_statement(
    brain: Brain, target: StatementMatch, change: Change, text: str, caller: Caller
) -> events.ProposalRecord:
    """Return the proposal to change one statement.

    Raises:
        UserError: It is under History, or has no block id by which the change could find it.
    """
    memory, statement = target.memory, target.statement
    if statement.is_history:
        raise UserError(f"“{statement.text}” no longer holds: it stands in the history of {memory.path}")
    words, ending = _on_one_line(statement.text), f"({memory.path}), as {_on_one_line(caller.by)} suggests"
    if change == "forget":
        whole_hash = text_hash(memory.text[statement.start : statement.end])  # with what is nested below it
        blocks = ((memory.uuid or memory.path, whole_hash),)
        what = f"Forget “{words}” {ending}"
        return events.ForgetProposal(id=events.new_id(), what=what, operation="forget", exchanges=(), blocks=blocks)
    if not statement.block_id or not memory.uuid:
        raise UserError(f"“{words}” has no block id yet; `brainiac adopt {memory.path}` gives it one")
    day, digest = brain.day_of(iso(brain.now())), text_hash(statement.text)
    common: dict[str, Any] = {"id": events.new_id(), "page": memory.uuid, "path": memory.path}
    common |= {"block": statement.block_id, "hash": digest, "on": day}
    if change == "replace":
        new_words = _on_one_line(text)
        what = f"Replace “{words}” by “{new_words}” {ending}"
        return events.ReplaceProposal(what=what, operation="replace", text=new_words, **common)
    what = f"Retire “{words}” {ending}"
    return events.RetireProposal(what=what, operation="retire", replaced_by="", sources=(), **common)


def _about_page(brain: Brain, name: str, caller: Caller) -> tuple[events.ProposalRecord, bool]:
    """Return the proposal to forget a page or an exchange that the caller may see, and whether that is private.

    Raises:
        UserError: There is none.
    """
    page = named_page(brain, caller.gate(brain), name, caller)
    what = f"Forget {_on_one_line(page.title)} ({page.id}), as {_on_one_line(caller.by)} suggests"
    from brainiac.history.forget import find_target  # `ask`, which starts a process each time, forgets nothing

    proposal, door = find_target(brain, page.id).proposal(what), replace(PERSON, is_person=False)
    try:
        named_page(brain, door.gate(brain), page.id, door)
    except UserError:  # no client may see it
        return proposal, True
    return proposal, False


def _on_one_line(text: str) -> str:
    """Return words for a line of `review.md`, without line breaks and without a comment that looks like an id."""
    return " ".join(text.replace("<!--", "<! --").split())


def _propose(brain: Brain, record: events.ProposalRecord, is_private: bool, caller: Caller) -> Suggested:
    """Journal a proposal and add its line to `review.md`; where the same one is open, return that."""
    record = replace(record, is_private=is_private, is_wish=caller.is_person)
    for asked in asked_before(brain).values():
        if not asked.how and replace(asked.record, id=record.id, waits=False) == record:
            return Suggested(asked.record.id, record.what, is_new=False)
    records, changes = asking(brain, [record])
    brain.commit(events.ProposalMade(proposals=records), by=caller.by, changes=changes)
    return Suggested(record.id, record.what, is_new=True)
