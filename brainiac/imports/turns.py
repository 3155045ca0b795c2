"""Takes turns of assistants' sessions into memory, as an import does, and finds in transcripts what no hook told.

A turn has the id that an import of its transcript gives it, so that neither brings it twice, and what was deleted,
forgotten or undone here stays so. That id is on the disk before the commit: whatever is cut short is done again with
the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from brainiac.brain import Brain
from brainiac.clock import is_within, parse_iso
from brainiac.errors import BrainiacError
from brainiac.formats.discretion import is_private_text
from brainiac.formats.prompt import is_off_record
from brainiac.imports.chats import Point, Told, read_on, title_of
from brainiac.imports.intake import Intake
from brainiac.imports.records import Conversation, PastExchange, exchange_id, joined
from brainiac.llm.redaction import redact
from brainiac.places import LocalPlaces, id_in, is_brain
from brainiac.storage.database import StateDatabase
from brainiac.storage.pushes import TWIN_SECONDS, without_pushed
from brainiac.storage.turns import HOSTS, REST, Turn, Turns, digest

_BESIDE = {"claude-code": (0, "*.jsonl"), "codex": (3, "*/*/*/*.jsonl")}  # where a host's transcripts lie, from one on


@contextmanager
def turns_of(brain: Brain, folder: str) -> Iterator[Turns | None]:
    """Yield where the turns that come to the brain in a folder are kept; None where that is none."""
    root = Path(folder).expanduser().resolve()
    if not (folder and is_brain(root)):
        yield None
    elif root == brain.root.resolve():
        yield Turns(brain.database)
    else:  # its daemon finds them there, also one that starts later
        with closing(StateDatabase(LocalPlaces.of(root, id_in(root / "system/config.yaml")))) as database:
            yield Turns(database)


def hear(brain: Brain, told: Turn, kind: str, text: str, reason: str) -> None:
    """Keep what a hook tells, if the person asked for that folder: a prompt waits for its answer, which comes to it.

    Args:
        brain: The brain whose hook it is.
        told: The turn, without words.
        kind: As `push` has it.
        text: The words.
        reason: Why these are none of the person's, so that no transcript brings them; "" where they are.
    """
    folder, capture = brain.machine.captured(told.project)
    if not (capture.brain and told.host in HOSTS and told.session):
        return
    told = replace(told, is_private=capture.private)
    new = _worded(brain, replace(told, key=told.key or told.at, ai=""), text)
    said = redact(brain, without_pushed(text))
    with turns_of(brain, capture.brain) as turns:
        if not turns:
            return
        turns.since(told.host, folder, brain.now())
        with turns.lock():
            known = turns.of_session(told.session)
            former = next((turn for turn in known if told.key and turn.key == told.key), None)
            alike = [
                turn for turn in known if turn.words == new.words and is_within(TWIN_SECONDS, turn.at, brain.now())
            ]
            if kind == "related" and not (former or alike):
                turns.keep([replace(new, user="", is_done=True, reason=reason) if reason else new])
            elif kind in ("answer", "end"):
                former = former or (known[-1] if known and not told.key else None)
                if former and former.user:
                    words = joined([former.ai, *([] if said in former.ai else [said])])
                    turns.keep([replace(former, ai=words, is_over=kind == "end", heard=told.at)])
            elif kind in ("waiting", "again") and told.transcript:
                turns.keep([replace(told, key=f"look {told.at}")])


def _worded(brain: Brain, turn: Turn, text: str) -> Turn:
    """Return a turn with what the person typed, as it may be kept: without secrets, and without what memory said.

    Of words off the record, as in a file, nothing is kept but that there were some.
    """
    text = without_pushed(text)
    turn = replace(turn, words=digest(turn.session, *text.split()))
    if is_off_record(text.encode("utf-8", "replace")):
        return replace(turn, ai="", is_done=True, reason="off the record")
    return replace(turn, user=redact(brain, text), is_private=turn.is_private or is_private_text(text))


def take(brain: Brain) -> None:
    """Take in the turns that are over, with what transcripts tell of them and of the gaps between them."""
    turns = Turns(brain.database)
    for turn in turns.over(brain.now()):
        if not turn.user:  # a session began: a look into all that lie where its transcript does
            up, pattern = _BESIDE.get(turn.host, (0, ""))
            for file in sorted(Path(turn.transcript).parents[up].glob(pattern)) if pattern else ():
                _fill(brain, turns, turn.host, file)
            turns.keep([replace(turn, transcript="")])
    for last in {turn.session: turn for turn in turns.over(brain.now())}.values():
        try:
            _take_session(brain, turns, last)
        except (BrainiacError, OSError) as error:  # tried again; others are not kept waiting
            brain.log.warning("turns_wait", host=last.host, problem=str(error))
    turns.tidy(brain.now())


def _take_session(brain: Brain, turns: Turns, last: Turn) -> None:
    """Take in what is over of a session; `last` is one of its turns."""
    if last.transcript and last.host in _BESIDE:
        _fill(brain, turns, last.host, Path(last.transcript))
    with turns.lock():
        over = [_named(turn) for turn in turns.over(brain.now()) if turn.session == last.session]
        turns.keep(over)
    # by the last one that is in memory its page is found
    before = [turn for turn in turns.of_session(last.session) if turn.is_done and not turn.reason][-1:]
    said = [PastExchange(turn.name, turn.at, turn.user, turn.ai, turn.is_private) for turn in [*before, *over]]
    title = title_of(each for each in said if not each.is_private)
    intake = Intake(brain, f"a session in {Path(last.project).name or '/'}", by="hook", is_undone_known=True)
    list(intake.take(last.host, [Conversation(last.session, title, tuple(said), over[-1].at)]))
    with turns.lock():
        turns.keep([replace(turn, user="", ai="", is_done=True) for turn in over])


def _named(turn: Turn) -> Turn:
    """Return a turn with its id in memory."""
    name = turn.name or turn.key
    return replace(turn, name=name, exchange=exchange_id(turn.host, turn.session, PastExchange(name, turn.at)))


# --- transcripts ------------------------------------------------------------------------------------------------------


def _fill(brain: Brain, turns: Turns, host: str, file: Path) -> None:
    """Learn from a transcript, from the point up to which it was read, what no hook told.

    Its last turn may go on, and is left until another follows or nothing more came for long.
    """
    try:
        changed = file.stat().st_mtime
        if changed < turns.began(host):
            return
        with file.open("rb") as opened:
            told, after = read_on(host, opened, Point(*turns.point(str(file))))  # type: ignore[arg-type]
    except (OSError, TypeError):
        return
    session = after.session or file.stem
    has_rested = brain.now().timestamp() - changed > REST.total_seconds()
    asked = []
    for one in (one for one in told if _is_asked_for(brain, turns, one, host)):
        said = one.exchange
        key, ai = one.prompt or said.key, redact(brain, without_pushed(said.ai))
        new = _named(Turn(session, key, said.at, host, one.folder, name=said.key, transcript=str(file)))
        asked.append((one, _worded(brain, replace(new, ai=ai, told_as=new.exchange, is_over=True), said.user)))
    with turns.lock():
        known, kept = turns.of_session(session), list[Turn]()
        for one, new in asked:
            is_last = one is told[-1]
            if former := _same(known, one, new):
                known.remove(former)
                now = replace(former, told_as=new.told_as)
                if not former.exchange:  # its order among others of the same second is the transcript's too
                    now = replace(now, name=new.name, at=new.at, exchange=new.exchange, seen=new.seen)
                if not former.is_done and (not is_last or has_rested):
                    now = replace(now, ai=former.ai or new.ai, is_over=True)
                kept += [now] if now != former else []
            # a session that is forked has the turns of the former one in its own transcript
            elif (not is_last or has_rested) and not (host == "claude-code" and turns.is_told(new.name, new.key)):
                kept.append(new)
        turns.keep(kept, str(file), after)


def _same(known: Sequence[Turn], told: Told, new: Turn) -> Turn | None:
    """Return the turn that a hook or an earlier look told already; each is so told once."""
    open_ = [turn for turn in known if not turn.told_as and (turn.user or turn.is_done)]
    by_id = [turn for turn in known if new.exchange in (turn.exchange, turn.told_as)]
    by_prompt = [turn for turn in open_ if told.prompt and turn.key == told.prompt]
    return next(iter([*by_id, *by_prompt, *(turn for turn in open_ if turn.words == new.words)]), None)


def _is_asked_for(brain: Brain, turns: Turns, told: Told, host: str) -> bool:
    """Return whether what a transcript tells was typed where, and since, the person asked for it."""
    folder, capture = brain.machine.captured(told.folder)
    return (
        told.is_typed
        and capture.brain != ""
        and Path(capture.brain).expanduser().resolve() == brain.root.resolve()
        and parse_iso(told.exchange.at or "1970-01-01") >= parse_iso(turns.since(host, folder, brain.now()))
    )
