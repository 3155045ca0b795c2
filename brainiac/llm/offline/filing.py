"""Where a candidate belongs: by its subject, then by its topic; folders there are come first."""

from __future__ import annotations

import re
from functools import cache

from slugify import slugify

from brainiac.clock import parse_iso
from brainiac.language.sentences import content_stems, data_lines, overlap, stem
from brainiac.language.times import format_date
from brainiac.llm.offline.subjects import USER
from brainiac.llm.schemas import Candidate, Page, SynthesizeRequest

_TITLES = {
    "work": "Work",
    "home": "Home",
    "health": "Health",
    "money": "Money",
    "travel": "Travel",
    "food": "Food and drink",
    "family": "Family",
    "leisure": "Hobbies",
    "technology": "Tools and technology",
}


@cache
def _topics() -> dict[str, str]:
    """Return the topic of each stem."""
    topics: dict[str, str] = {}
    for line in data_lines("topics.txt"):
        topic, members = line.split(":", 1)
        for member in members.split():
            topics.setdefault(stem(member), topic.strip())
    return topics


def topic_of(text: str, language: str) -> str:
    """Return the topic that most words of a text belong to, or ""."""
    counts: dict[str, int] = {}
    for one in content_stems(text, language):
        if topic := _topics().get(one):
            counts[topic] = counts.get(topic, 0) + 1
    return max(counts, key=lambda topic: counts[topic], default="")


def synthesize(request: SynthesizeRequest, language: str) -> Page:
    """Place one candidate."""
    candidate = request.candidate
    topic = topic_of(candidate.statement, language)
    if candidate.kind == "skill":
        title = _skill_title(candidate)
        folder = _existing(request, "skills", title, language) or topic or "general"
    elif candidate.kind == "event" and candidate.subject == USER:
        day = parse_iso(request.events[-1].at).date() if request.events else request.now.date()
        title, folder = f"{format_date(day)}", day.strftime("%Y/%m")
    else:
        title, folder = _concrete(candidate, topic)
        folder = _existing(request, "concrete", title, language) or folder
    return Page(
        kind=candidate.kind if candidate.kind != "event" or candidate.subject == USER else "concrete",
        folder=folder[:200],
        title=title[:120],
        summary=_summary(candidate, title)[:500],
        tags=list(candidate.tags)[:8],
        emotion=candidate.emotion,
        steps=list(candidate.steps),
    )


def _concrete(candidate: Candidate, topic: str) -> tuple[str, str]:
    """Return title and folder: a person or project has a page of its own."""
    if candidate.subject and candidate.subject != USER:
        if candidate.subject_type == "project":
            return candidate.subject, f"projects/{slugify(candidate.subject)}"
        if candidate.subject_type == "person":
            return candidate.subject, "people"
        return candidate.subject, topic or "general"
    if candidate.category == "preferences":
        return "Preferences", "preferences"
    return (_TITLES.get(topic, "About User"), topic or "personal")


def _skill_title(candidate: Candidate) -> str:
    head = re.split(r"[:\n]|\s1[.)]\s|(?<=[.,:]) *[Ff]irst\b", candidate.statement, maxsplit=1)[0]
    sentences = [one for one in re.split(r"(?<=[.!])\s+", head.strip()) if len(content_stems(one)) > 1]
    head = re.sub(r"\s*\([^)]*\)", "", sentences[0] if sentences else candidate.statement[:80])
    head = _ASIDE.sub("", re.sub(r"^(?:So|And|Well|Ok|OK),? ", "", head)).strip(" .,;")
    found = re.match(r"(?:here is |this is )?how (?:User|we|they|you|to) (?P<verb>[a-z]+) (?P<what>.+)", head, re.I)
    if found:
        verb = found["verb"] if re.search(r"how (?:we|they|you|to) ", head, re.I) else _base(found["verb"])
        head = f"How to {verb} {found['what']}"
    elif re.match(r"to \w", head, re.IGNORECASE):
        head = f"How {head[0].lower()}{head[1:]}"
    return head[:1].upper() + head[1:120]


_ASIDE = re.compile(
    r",? (?:writing (?:it|this)|noting|as (?:explained|told|shown)|before (?:I|they|User)|for the record"
    r"|so (?:I|they)).*$",
    re.I,
)


def _base(verb: str) -> str:
    """Return the base form of a verb in the third person."""
    if verb.endswith(("sses", "shes", "ches", "xes", "zes", "oes")):
        return verb[:-2]
    return verb[:-3] + "y" if verb.endswith("ies") else verb.removesuffix("s")


def _existing(request: SynthesizeRequest, kind: str, title: str, language: str) -> str:
    """Return the existing folder that bears the title's name, or is about it."""
    wanted = content_stems(title, language)
    best, best_share = "", 0.59
    for path in request.folders:
        if path.startswith(kind + "/"):
            leaf = path.rsplit("/", 1)[-1]
            share = overlap(content_stems(leaf.replace("-", " "), language), wanted) if wanted else 0.0
            if share > best_share:
                best, best_share = path.removeprefix(kind + "/"), share
    return best


def _summary(candidate: Candidate, title: str) -> str:
    if candidate.kind == "skill":
        return title
    if candidate.subject and candidate.subject != USER:
        return f"What is known of {candidate.subject}."
    return f"{title}: what User told."
