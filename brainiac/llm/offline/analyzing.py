"""From the event log to what is worth remembering for long: one candidate a statement, repeated ones merged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from brainiac.clock import parse_iso
from brainiac.language.sentences import content_stems, tokenize
from brainiac.language.statements import Said, statements_of
from brainiac.language.times import with_dates
from brainiac.llm.offline.atoms import says_something, split_facts, with_names
from brainiac.llm.offline.filing import topic_of
from brainiac.llm.offline.subjects import USER, Subjects
from brainiac.llm.offline.tasks import is_finished_by
from brainiac.llm.schemas import AnalyzeRequest, Candidate, Candidates, Category, Kind

_IMPORTANCE = {"low": 0.3, "medium": 0.5, "high": 0.8}
_EMOTIONS = {
    "joy": "happy glad love loved great wonderful excited exciting thrilled delighted fun awesome amazing enjoyed win "
    "won celebrate engaged married finally",
    "pride": "proud accomplished achievement",
    "sadness": "sad died death miss missed lost grief heartbroken lonely cried funeral",
    "anxiety": "worried anxious nervous afraid scared stress stressed stressful panic fear",
    "frustration": "annoyed annoying frustrated frustrating angry hate awful terrible broke broken failed stuck",
    "relief": "relieved relief phew",
    "fatigue": "tired exhausted burnt",
    "gratitude": "grateful thankful",
    "disgust": "disgusting gross soap",
}
_EMOTION_OF = {word: emotion for emotion, words in _EMOTIONS.items() for word in words.split()}
_RELATIONS = re.compile(
    r"\b(?:mom|mum|mother|dad|father|sister|brother|son|daughter|wife|husband|partner|girlfriend|boyfriend"
    r"|fianc\w+|friends?|married|engaged|boss|manager|colleague)\b",
    re.I,
)
_IDENTITY = re.compile(
    r"\b(?:name is|lives?|moved|born|years old|works? (?:as|at|for)|is (?:a|an) [\w ]*(?:er|or|ist|ian)\b|birthday"
    r"|allerg\w+)\b",
    re.I,
)
_STEP_ENDS = re.compile(r"\s*(?:\n+\s*(?:[-*•]|\d+[.)])?\s*|;\s+|\.\s+|,\s+(?:and )?then\s+|,\s+(?:and\s+)?(?=[a-z]))")
_NUMBERED = re.compile(r"^[ \t]*\d+[.)][ \t]+(.+)$", re.M)
_TOLD = re.compile(r"\bfirst(?:ly)?,? (?=[a-z]+ .{3,200}?[,;.] (?:and )?then\b)", re.I | re.S)
_SEQUENCE_ENDS = re.compile(r"[,;.]\s+(?:and\s+)?(?:then|after that|next|finally|lastly|last)\b,?\s+", re.I)
_REFERS = re.compile(r"(?:(?:so|and|but) )?(?:(?:that one|he|she|it|it's|they|that|this|one|there)\b|new \w+:)", re.I)
_EVERY = re.compile(r"\b(?:every|each|always|usually|daily|weekly|on \w+days)\b", re.I)
_SAME = 0.85
_SAME_TALK = timedelta(minutes=30)  # a message that begins with "she" goes on with the one before


@dataclass
class _Found:
    said: Said
    at: datetime
    events: list[str]
    stems: frozenset[str] = field(default_factory=frozenset)


def analyze(request: AnalyzeRequest, language: str) -> Candidates:
    """Return the candidates of an event log; small talk and questions give none."""
    found = _merged(_all(request, language))
    subjects = Subjects([one.said.text for one in found], request.subjects)
    return Candidates(candidates=[_candidate(one, subjects, language) for one in found][:400])


def _all(request: AnalyzeRequest, language: str) -> list[_Found]:
    found: list[_Found] = []
    last, spoken_at = "", None
    for event in request.events:
        at = parse_iso(event.at)
        if spoken_at is None or at - spoken_at > _SAME_TALK:
            last = ""
        spoken_at = at
        told = [one for said in statements_of(event.user, at) for one in (*_beside_steps(said, at), said)]
        told = [said for said in told if said.kind not in ("question", "small-talk")]
        told, last = with_names(told, last)
        for said in _joined([fact for one in told for fact in split_facts(one)]):
            if says_something(said):
                found.append(_Found(said, at, [event.id], frozenset(content_stems(said.text, language))))
    return [one for index, one in enumerate(found) if not _is_finished_later(one, found[index + 1 :], language)]


def _beside_steps(said: Said, at: datetime) -> list[Said]:
    """Return what a how-to tells besides its steps: `Nan is 91. She gave me her recipe:`."""
    if said.kind != "how-to" or re.match(r"(?:how|what|to|when|steps|recipe|instructions)\b", said.plain, re.I):
        return []
    facts = statements_of(purpose_of(said.plain), at)
    return [one for one in facts if one.kind in ("fact", "preference") and says_something(one)]


def _joined(told: Sequence[Said]) -> list[Said]:
    """Join a sentence that starts with a pronoun to the one it speaks of: alone it would mean nothing."""
    joined: list[Said] = []
    for said in told:
        if (
            joined
            and said.kind in ("fact", "done", "preference")
            and _REFERS.match(said.text)
            and joined[-1].kind not in ("task", "forget")
        ):
            last = joined[-1]
            joined[-1] = replace(
                last, text=f"{last.text}; {said.text[0].lower()}{said.text[1:]}", times=last.times + said.times
            )
        else:
            joined.append(said)
    return joined


def _is_finished_later(task: _Found, later: Sequence[_Found], language: str) -> bool:
    """Tell whether a task is done by the end of the log: only that it was done is remembered."""
    return task.said.kind == "task" and any(
        is_finished_by(task.said.what, one.said, _beside(one, later), language) for one in later
    )


def _beside(one: _Found, found: Sequence[_Found]) -> frozenset[str]:
    return frozenset().union(*(other.stems for other in found if other.events == one.events and other is not one))


def _merged(found: Sequence[_Found]) -> list[_Found]:
    """Merge statements that say the same; the latest wording stands, all events are behind it."""
    kept: list[_Found] = []
    for one in found:
        same = next((other for other in kept if _says_same(one, other)), None)
        if same is None:
            kept.append(one)
            continue
        same.events += [event for event in one.events if event not in same.events]
        if len(one.stems) >= len(same.stems):
            same.said, same.at, same.stems = one.said, one.at, one.stems
    return kept


def _says_same(first: _Found, second: _Found) -> bool:
    if (
        first.said.kind != second.said.kind
        or not first.stems
        or not second.stems
        or _numbers(first) != _numbers(second)
    ):
        return False
    if _is_negated(first) != _is_negated(second):
        return False
    return len(first.stems & second.stems) / len(first.stems | second.stems) >= _SAME


def _numbers(found: _Found) -> frozenset[str]:
    return frozenset(re.findall(r"\d[\d.,]*", with_dates(found.said.text, found.at, except_year=True)))


def _is_negated(found: _Found) -> bool:
    return bool(re.search(r"\b(?:not|no|never)\b|n't\b", found.said.plain))


def _candidate(found: _Found, subjects: Subjects, language: str) -> Candidate:
    said = found.said
    kind = _kind_of(found)
    subject, subject_type = subjects.of(said.text)
    statement = with_dates(said.text, found.at, except_year=True)
    topic = topic_of(said.text, language)
    return Candidate(
        statement=statement[:1000],
        kind=kind,
        subject=subject[:120],
        subject_type=subject_type if kind != "skill" or subject != USER else "workflow",
        category=_category_of(said),
        events=found.events,
        importance=_IMPORTANCE[said.importance],
        emotion=_emotion_of(said.plain),
        tags=_tags(said, topic),
        canonical_key=_key(subject, said, language)[:120],
        steps=steps_of(said.plain) if kind == "skill" else [],
        is_forget=said.kind == "forget",
    )


def _kind_of(found: _Found) -> Kind:
    said = found.said
    if said.kind == "how-to":
        return "skill"
    if said.kind in ("change", "preference", "decision", "task", "forget"):
        return "concrete"
    if _EVERY.search(said.plain):
        return "concrete"
    days = [span for span in said.times if span.kind in ("point", "range")]
    is_recent = any(span.latest <= found.at.date() and (found.at.date() - span.earliest).days <= 60 for span in days)
    return "event" if is_recent or said.kind == "done" else "concrete"


def _category_of(said: Said) -> Category | None:
    if said.kind == "preference":
        return "preferences"
    if _RELATIONS.search(said.plain):
        return "relationships"
    return "identity" if _IDENTITY.search(said.plain) else None


def _emotion_of(text: str) -> str:
    return next((_EMOTION_OF[word] for word in tokenize(text) if word in _EMOTION_OF), "")


def _tags(said: Said, topic: str) -> list[str]:
    return list(
        dict.fromkeys(
            tag
            for tag in (topic, said.kind if said.kind in ("decision", "task", "preference", "how-to") else "")
            if tag
        )
    )


def _key(subject: str, said: Said, language: str) -> str:
    stems = content_stems(said.text, language)
    rest = [one for one in stems if one not in content_stems(subject, language)]
    return "/".join([subject.casefold().replace(" ", "-"), *rest[:2]])


def steps_of(text: str) -> list[str]:
    """Return the steps of a how-to in order, without what says what it is for."""
    if numbered := [found.strip() for found in _NUMBERED.findall(text)]:
        return [step.rstrip(".")[:1000] for step in numbered][:50]
    if told := _TOLD.search(text):
        steps = _SEQUENCE_ENDS.split(text[told.end() :])
    else:
        _, colon, rest = text.partition(":") if re.match(r"[^\n]*:(?!//)", text) else ("", "", text)
        steps = _STEP_ENDS.split(rest if colon and rest.strip() else text)
    return [step.strip(" ,;").rstrip(".")[:1000] for step in steps if step.strip(" ,;.")][:50]


def purpose_of(text: str) -> str:
    """Return what a how-to says before its first step."""
    ends = [found.start() for pattern in (_NUMBERED, _TOLD) if (found := pattern.search(text))]
    return text[: min(ends)].strip() if ends else re.split(r":(?!//)|\n", text, maxsplit=1)[0].strip()
