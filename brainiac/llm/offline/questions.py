"""What a question asks for: the kind of answer, about whom, which words count, and which time it is limited to."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from brainiac.language.sentences import standard_spelling, stem, stop_words
from brainiac.language.times import TimeSpan, find_times
from brainiac.llm.offline.evidence import tokens_of
from brainiac.llm.offline.question_forms import EXPECTED, LIST_WORDS, LISTINGS, OPERATORS, Expected, Listing


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a question that an answer should hold.

    Attributes:
        stem: Its stem.
        is_light: It says little by itself (`get`, `thing`, `good`): a question of such words alone asks by its form.
        owner: Whose it is: `user`, `other` (her, Elena's), or "" where that is not said.
        is_verb: It is the question's main verb, whose subject must agree.
        phrase: Number of the name it is a part of; one part found is enough.
    """

    stem: str
    is_light: bool = False
    owner: str = ""
    is_verb: bool = False
    phrase: int = -1


@dataclass(frozen=True, slots=True)
class Question:
    """A question, taken apart.

    Attributes:
        text: As asked.
        expected: What an answer must hold.
        terms: The words that count.
        subject: `user`, the stem of a name, or "".
        listing: The list it asks for, or None.
        span: The days it is limited to, or None.
        before: Stems of what the answer came before ("before Denise"); empty for "previous".
        asks_former: It asks for what no longer holds.
        is_present: It asks for what holds now.
    """

    text: str
    expected: Expected
    terms: tuple[Term, ...]
    subject: str = ""
    listing: Listing | None = None
    span: TimeSpan | None = None
    before: frozenset[str] = frozenset()
    asks_former: bool = False
    is_present: bool = True


_I = re.IGNORECASE
_WEAK = frozenset(
    stem(word)
    for word in "do have get go make take use keep like want need give put come let know think say tell call happen be "
    "thing stuff "
    "people person place amount number most least left long often lot everyone anyone one guy stay look find "
    "try start work kind type sort name way time good new own currently current present favorite favourite "
    "usually receive big main ever always exactly able mean plan set bring show currently involved regarding "
    "concerning".split()
)
_BEFORE = re.compile(
    r"[, ]*\b(?:before|prior to|until(?! when| what| which)|instead of|rather than)\b\s+(?P<what>[^?,]+)", _I
)
_FORMER = re.compile(
    r"\b(?:previous(?:ly)?|former(?:ly)?|used? to|earlier|old|last|ex)\b(?! (?:week|month|year|night|name|time"
    r"|\w+day|spring|summer|fall|winter|old|is|are|am))",
    _I,
)
_AND_BEFORE = re.compile(r",? and (?:\w+ )?(?:did I )?before(?: that)?\s*\?*$", _I)  # what was before is told anyway
_OF_A_KIND = re.compile(r"\s+(?:kinds?|sorts?|types?) of\s+", _I)
_CLAUSE = re.compile(r"(?:I|we|you|he|she|it|they|this|that) ", _I)  # "before it moved" names nothing that came after
_HOW_OLD = re.compile(r"\bhow old\b", _I)
_PRESENT = re.compile(
    r"\b(?:do|does|is|are|am|has|have|current(?:ly)?|now|these days|can)\b|\b(?:what|who|where)'s\b", _I
)
_PAST = re.compile(r"\b(?:did|was|were|had)\b", _I)
_OWNED = re.compile(
    r"\b(?P<owner>my|our|her|his|their|its|(?!(?:where|what|who|when|how|why|that|it|there|here|let|he"
    r"|she)'s)\w+'s|\w+s')\s+(?P<rest>(?:[\w-]+\s+){0,2}?[\w'-]+)(?=\s+(?:in|at|on|for|of|to|from|with|by|is|are"
    r"|was|were|be|have|has|do|does|did|get|cost|called|come|and|or|name|before|after|since|run|work|live|start"
    r"|end|last|now|so|still|about|when|where|that|as|go|take|keep|use|the)\b|\s*[?.,!]|$)",
    _I,
)
_NAME = re.compile(r"(?<![.?!] )(?<!^)\b[A-Z][\w-]*[\w](?:'s)?")
_BARE_SUBJECT = re.compile(  # a single word between "does" and its verb is a name, whatever its letters
    r"(?:\b(?:does|did|has|is)(?:n't)?|\b(?:what|where|who|how|when)'s) (?!(?:the|my|our|his|her|its|their|your"
    r"|a|an|any|there|this|that|these|[\w-]+ing"
    r"|those|it|he|she|they|we|you|i|not|some|"
    r"everyone|someone|anyone|all)\b)(?P<subject>[a-z][\w-]+) (?!of\b|in\b|at\b|on\b|to\b|for\b|from\b)[a-z]+",
    _I,
)
_BARE_OWNER = re.compile(  # a possessor without an article is a name as well: "when's noodle's birthday"
    r"(?<!\bmy )(?<!\bour )(?<!\bthe )(?<!\bhis )(?<!\bher )(?<!\btheir )(?<!\byour )(?<!\bthis )(?<!\bthat )(?<!\ba )"
    r"\b(?!(?:where|what|who|when|how|why|that|it|there|here|let|he|she|today|mum|mom|dad|one|everyone|someone)'s)"
    r"(?P<owner>[a-z][\w-]+)'s (?=[a-z])"
)
_SUBJECT_VERB = re.compile(
    r"\b(?i:do|does|did|is|are|was|were|am|have|has|had|can|could|will|would|should)(?:n't)?\s+(?P<subject>I|i|we"
    r"|you|he|she|they|[A-Z][\w-]+)\s+(?:\w+ly |still |ever |always |usually |also )*(?P<verb>[a-z][\w-]*)"
)


def parse_question(text: str, now: datetime, language: str, known: frozenset[str] = frozenset()) -> Question:
    """Take a question apart.

    Args:
        text: One sentence, in the first person of the one who asks.
        now: What "last week" refers to.
        language: Snowball's name.
        known: Stems of names that memory holds, for questions typed without capitals.
    """
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return _parse(standard_spelling(text).strip(), day, language, known)


@lru_cache(maxsize=1024)
def _parse(text: str, now: datetime, language: str, known: frozenset[str]) -> Question:
    text = _OF_A_KIND.sub(" ", _AND_BEFORE.sub("?", text))
    expected: Expected = next((name for name, pattern in EXPECTED if pattern.search(text)), "statement")
    bare, before, asks_former = _former(text, language)
    listing = next((name for name, pattern in LISTINGS if pattern.search(text) and not asks_former), None)
    span = _limit(bare, now, expected)
    if span is not None:
        bare = bare.replace(span.text, " ")
    found = _SUBJECT_VERB.search(bare)
    subject = _subject_of(found["subject"], language) if found else ""
    if bare_name := _BARE_SUBJECT.search(bare):
        known |= {stem(bare_name["subject"].lower(), language)}
    known |= {stem(match["owner"], language) for match in _BARE_OWNER.finditer(bare)}
    verb = stem(found["verb"].lower(), language) if found else ""
    dropped = _dropped(expected, listing, language)
    return Question(
        text=text,
        expected=expected,
        terms=_terms(bare, dropped, verb, language, known),
        subject=subject,
        listing=listing,
        span=span,
        before=before,
        asks_former=asks_former,
        is_present=not _PAST.search(text) and bool(_PRESENT.search(text)) and not asks_former,
    )


def _former(text: str, language: str) -> tuple[str, frozenset[str], bool]:
    """Return the question without its "before …", what that names, and whether it asks for what was."""
    is_about_time = re.search(r"\b(?:instead of|rather than)\b", text, _I)
    if (found := _BEFORE.search(text)) and _CLAUSE.match(found["what"]):
        return text[: found.start()] + text[found.end() :], frozenset(), False
    if found and not is_about_time:
        names = frozenset(token.stem for token in tokens_of(found["what"], language) if token.is_content)
        return text[: found.start()] + text[found.end() :], names, True
    if not _HOW_OLD.search(text) and (former := _FORMER.search(text)):
        return text[: former.start()] + text[former.end() :], frozenset(), True
    return text, frozenset(), False


def _limit(text: str, now: datetime, expected: Expected) -> TimeSpan | None:
    if expected in ("date", "duration", "weekday", "age"):
        return None
    spans = [span for span in find_times(text, now) if span.kind in ("point", "range")]
    spans = [span for span in spans if not re.search(r"\b(?:an?|any|every|each)\s+(?:on )?$", text[: span.start], _I)]
    return spans[0] if spans else None


def _subject_of(word: str, language: str) -> str:
    if word.lower() in ("i", "we"):
        return "user"
    return stem(word.lower(), language) if word[0].isupper() else ""


def _dropped(expected: Expected, listing: Listing | None, language: str) -> frozenset[str]:
    listed = f"{OPERATORS.get(expected, '')} {LIST_WORDS.get(listing or '', '')}"
    return frozenset(stem(word, language) for word in listed.split())


def _terms(text: str, dropped: frozenset[str], verb: str, language: str, known: frozenset[str]) -> tuple[Term, ...]:
    owners, names = _owners(text, dropped, language), _names(text, language)
    terms: dict[str, Term] = {}
    for token in tokens_of(text, language):
        one = token.stem
        if not token.is_content or one in terms:
            continue
        if one in names or (one in known and one not in _WEAK):
            terms[one] = Term(one, owner=owners.get(one, ""), phrase=names.get(one, 100 + len(terms)))
        elif one not in dropped:
            owner = owners.get(one, "")
            terms[one] = Term(one, one in _WEAK and not owner, owner, is_verb=one == verb and not owner)
    if all(term.is_light for term in terms.values()):  # "where do I work?" has nothing else to go by
        terms = {one: replace(term, is_light=False) for one, term in terms.items()}
    return tuple(terms.values())


def _names(text: str, language: str) -> dict[str, int]:
    """Return the stems of capitalized words, with the number of the name each is a part of."""
    names: dict[str, int] = {}
    end, phrase = -9, -1
    for number, match in enumerate(_NAME.finditer(text)):
        phrase = phrase if match.start() - end == 1 else number
        for part in re.split(r"[-']", match.group()):
            if part != "s" and part.lower() not in stop_words(language):
                names[stem(part.lower(), language)] = phrase
        end = match.end()
    return names


def _owners(text: str, dropped: frozenset[str], language: str) -> dict[str, str]:
    """Return for each possessed thing whose it is; of several words the last is the thing."""
    found: dict[str, str] = {}
    for match in _OWNED.finditer(text):
        owner = "user" if match["owner"].lower() in ("my", "our") else "other"
        stems = [token.stem for token in tokens_of(match["rest"], language) if token.is_content]
        kept = [one for one in stems if one not in dropped]
        possessors = [stem(word, language) for word in re.findall(r"(\w+)(?:'s|s')\b", match["rest"].lower())]
        found |= dict.fromkeys([*kept[-1:], *(one for one in kept if one in possessors)], owner)
    return found
