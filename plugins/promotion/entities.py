"""What in a sentence must not be lost: names, places, relations, dates, quantities, negations, preferences.

Words are classed by the tables `entities.txt`, `paraphrases.txt` and `light_words.txt`, so that "two" is 2,
"spouse" may stand for "wife", and a word that no table knows still counts as content of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import zip_longest
from typing import Literal, cast

from .stems import data_lines, stem, stop_words

FacetKind = Literal["place", "name", "relation", "date", "duration", "quantity", "negation", "preference", "other"]


@dataclass(frozen=True, slots=True)
class Mention:
    """A word, number or set phrase that carries content.

    Attributes:
        start: Offset of its first character.
        end: Offset behind its last.
        text: As written.
        kind: What it tells; `other` when it is content that no protected kind covers.
        values: Its normal forms; two mentions with a common one say the same.
        clause: Number of the clause it stands in, for what a negation or a number belongs to.
        position: Its index among the mentions of the text.
    """

    start: int
    end: int
    text: str
    kind: FacetKind
    values: frozenset[str]
    clause: int
    position: int

    @property
    def is_number(self) -> bool:
        """Whether it is a figure or a number word."""
        return any(value[0].isdigit() for value in self.values)


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: str
    values: frozenset[str]


_TOKEN = re.compile(
    r"""(?P<number>(?:19|20)\d\d-\d\d-\d\d|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:[.:/]\d+)*(?:st|nd|rd|th)?)
      | (?P<sign>[£$€%])
      | (?P<word>[^\W\d_]+\d\w*|[^\W\d_]+(?:['’][^\W\d_]+)*(?:\.(?=[^\W\d_]\b)[^\W\d_])?)
      | (?P<stop>[;!?]|(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bSt)\.(?=\s|$)|,(?=\s)|\b(?:but)\b)""",
    re.VERBOSE,
)
_SIGNS = {"£": "pound", "$": "dollar", "€": "euro", "%": "percent"}
_MONTHS = "january february march april may june july august september october november december".split()
_DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_CALENDAR = (
    {name: name for name in _MONTHS + _DAYS} | {name[:3]: name for name in _MONTHS + _DAYS} | {"sept": "september"}
)
_CALENDAR |= {day + "s": day for day in _DAYS}
_AMBIGUOUS_MONTHS = frozenset({"may", "march", "mar", "sun", "sat", "wed", "dec", "jan"})
_PLACE_BEFORE = frozenset("in at from to near around outside towards via".split())
_APOSTROPHE_S = re.compile(r"['’](?:s|re|ve|ll|d|m)?$")
_IS_RATE = re.compile(r"\s+(?:an?|per|every|each|in|daily|weekly|monthly|yearly)\b", re.IGNORECASE)
_TENS = frozenset(str(number) for number in range(20, 100, 10))


@cache
def _entries() -> dict[str, _Entry]:
    """Read `entities.txt`: what each word or phrase is."""
    found: dict[str, _Entry] = {}
    for line in data_lines("entities.txt"):
        head, members = line.split(":", 1)
        kind, value = head.split()
        for member in members.split():
            word = member.replace("_", " ")
            before = found.get(word)
            values = {value} | (set(before.values) if before else set())
            found[word] = _Entry(before.kind if before else kind, frozenset(values))
    return found


@cache
def _phrases() -> re.Pattern[str]:
    phrases = sorted((word for word in _entries() if " " in word or "-" in word), key=len, reverse=True)
    spaced = "|".join(re.escape(phrase).replace("'", "['’]") for phrase in phrases)
    return re.compile(rf"\b(?:{spaced})\b", re.IGNORECASE)


@cache
def light_words() -> frozenset[str]:
    """Return the words that a statement may lose or gain in a retelling."""
    return frozenset(" ".join(data_lines("light_words.txt")).split()) | stop_words() - {"not", "no", "n't", "never"}


@cache
def pale_verbs() -> frozenset[str]:
    """Return the stems of verbs that a retelling may exchange for another."""
    return frozenset(stem(word) for word in " ".join(data_lines("pale_verbs.txt")).split())


@cache
def _paraphrases() -> dict[str, frozenset[str]]:
    groups: dict[str, set[str]] = {}
    for number, line in enumerate(data_lines("paraphrases.txt")):
        for member in line.split():
            groups.setdefault(stem(member), set()).add(f"={number}")
    return {word: frozenset(numbers) for word, numbers in groups.items()}


@lru_cache(maxsize=4096)
def find_mentions(text: str) -> tuple[Mention, ...]:
    """Find everything in a text that carries content, in order.

    Args:
        text: One statement, or several.
    """
    mentions: list[Mention] = []
    clause = 0
    for start, end, token_kind in _tokens(text):
        if token_kind == "stop":
            clause += 1
            continue
        classed = _classify(text, start, end, token_kind)
        if classed is not None:
            kind, values = classed
            mentions.append(Mention(start, end, text[start:end], kind, values, clause, len(mentions)))
    return tuple(replace(mention, position=index) for index, mention in enumerate(_with_measures(mentions)))


def _tokens(text: str) -> Iterator[tuple[int, int, str]]:
    phrases = {match.start(): match.end() for match in _phrases().finditer(text)}
    taken = 0
    for match in _TOKEN.finditer(text):
        if match.start() < taken:
            continue
        if match.start() in phrases:
            taken = phrases[match.start()]
            yield match.start(), taken, "phrase"
        else:
            yield match.start(), match.end(), match.lastgroup or ""


def _classify(text: str, start: int, end: int, token_kind: str) -> tuple[FacetKind, frozenset[str]] | None:
    token = text[start:end]
    if token_kind == "sign":
        return "quantity", frozenset({_SIGNS[token]})
    if token_kind == "number":
        return _number(token)
    if any(c.isdigit() for c in token):
        return "name", frozenset({"#" + token.casefold()})  # S3, M3, v2
    lowered = token.lower().replace("’", "'")
    if lowered.endswith("n't") or lowered == "cannot":
        return "negation", frozenset({"not"})
    if token_kind == "phrase":
        return _by_entry(_entries()[lowered])
    bare = _APOSTROPHE_S.sub("", lowered)
    return _word(text, start, token, bare) if bare else None


def _number(token: str) -> tuple[FacetKind, frozenset[str]]:
    plain = token.replace(",", "")
    is_date = re.fullmatch(r"(?:19|20)\d\d(?:-\d\d-\d\d)?|\d+:\d\d|\d+(?:st|nd|rd|th)", plain) is not None
    values = {plain} | ({plain[:-2]} if plain[-1].isalpha() else set())
    if re.fullmatch(r"\d{1,2}:00", plain):
        values.add(plain[:-3])
    return ("date" if is_date else "quantity"), frozenset(values)


def _by_entry(entry: _Entry) -> tuple[FacetKind, frozenset[str]] | None:
    if entry.kind == "light":
        return None
    kinds: dict[str, FacetKind] = {"unit": "date", "measure": "quantity", "number": "quantity"}
    return kinds.get(entry.kind) or cast(FacetKind, entry.kind), entry.values


def _word(text: str, start: int, token: str, bare: str) -> tuple[FacetKind, frozenset[str]] | None:
    is_capital = token[0].isupper()
    is_first = not re.search(r"[^\W_]", text[:start][-1:] or "") and _opens_sentence(text, start)
    is_acronym = len(bare) > 1 and token[: len(bare)].isupper()
    if not is_acronym or bare in _CALENDAR:
        known = _known(bare, is_capital, is_first, text[start + len(token) :])
        if known is not None or bare in light_words() or (len(bare) == 1 and not is_capital):
            return known
    if is_capital and not (is_first and (bare.endswith("ing") or bare in _paraphrases())):
        kind: FacetKind = "place" if _is_place(text[:start]) else "name"
        return kind, frozenset({bare}) | _paraphrases().get(stem(bare), frozenset())
    return "other", frozenset({stem(bare)}) | _paraphrases().get(stem(bare), frozenset())


def _opens_sentence(text: str, start: int) -> bool:
    before = text[:start].rstrip(" \"'“‘(")
    return not before or before[-1] in ".!?;:\n"


def _known(bare: str, is_capital: bool, is_first: bool, rest: str) -> tuple[FacetKind, frozenset[str]] | None:
    month = _CALENDAR.get(bare)
    if month and is_capital and (bare not in _AMBIGUOUS_MONTHS or not is_first or re.match(r"\s\d", rest)):
        return "date", frozenset({month})
    entry = _entries().get(bare)
    if bare == "once" and not _IS_RATE.match(rest):
        return None  # "once on GitLab" means formerly
    if entry is None or (entry.kind == "number" and is_capital and not is_first):
        return None
    return _by_entry(entry)


def _is_place(before: str) -> bool:
    preceding = re.findall(r"\w+", before)[-3:]
    while preceding and preceding[-1][0].isupper():
        preceding.pop()
    if preceding and preceding[-1].lower() == "the":
        preceding.pop()
    return bool(preceding) and preceding[-1].lower() in _PLACE_BEFORE


def _with_measures(mentions: list[Mention]) -> Iterator[Mention]:
    """Class a number by what follows it (`5 years` is a duration) and join tens and units (`thirty-five`)."""
    skip = -1
    units = _units()
    for mention, following in zip_longest(mentions, mentions[1:]):
        if mention.position == skip:
            continue
        if mention.is_number and following is not None and following.clause == mention.clause:
            joined = _joined(mention, following)
            if joined:
                skip = following.position
                yield joined
                continue
            if following.values & units and mention.kind == "quantity" and following.start - mention.end <= 1:
                mention = replace(mention, kind="duration")
        elif mention.values & units and mention.position and _follows_number(mention, mentions):
            mention = replace(mention, kind="duration")
        yield mention


def _follows_number(mention: Mention, mentions: list[Mention]) -> bool:
    before = mentions[mention.position - 1]
    return before.is_number and mention.start - before.end <= 1


@cache
def _units() -> frozenset[str]:
    return frozenset(value for entry in _entries().values() if entry.kind == "unit" for value in entry.values)


def _joined(tens: Mention, unit: Mention) -> Mention | None:
    if not (tens.values & _TENS and tens.text.isalpha() and unit.text.isalpha() and unit.start - tens.end == 1):
        return None
    digits = [value for value in unit.values if len(value) == 1 and value.isdigit()]
    if not digits:
        return None
    values = frozenset(str(int(min(tens.values)) + int(digit)) for digit in digits)
    return Mention(tens.start, unit.end, tens.text + "-" + unit.text, tens.kind, values, tens.clause, tens.position)


def facets(text: str) -> list[Mention]:
    """Return what a text holds of the protected kinds (everything but `other`), in order."""
    return [mention for mention in find_mentions(text) if mention.kind != "other"]


def find_names(text: str) -> list[str]:
    """Return the proper names of a text, places included, as written; neighbouring words are one name."""
    names: list[str] = []
    last: Mention | None = None
    for mention in find_mentions(text):
        if mention.kind not in ("name", "place"):
            continue
        word = _APOSTROPHE_S.sub("", mention.text)
        if last and text[last.end : mention.start].strip(" .&") == "" and last.text == _APOSTROPHE_S.sub("", last.text):
            names[-1] = text[text.rindex(names[-1], 0, last.end) : mention.start] + word
        else:
            names.append(word)
        last = mention
    return names


@lru_cache(maxsize=4096)
def means_same(first: frozenset[str], second: frozenset[str]) -> bool:
    """Tell whether two words, by their values, are the same, stand for each other, or are of one family."""
    if not first.isdisjoint(second):
        return True
    return any(_of_one_family(one, other) for one in first for other in second)


_ENDINGS = frozenset("er or r ist ner mer ter ing ment ion ation al ly y ic ness ity ian ish ful s ed d n e i".split())


def _of_one_family(first: str, second: str) -> bool:
    """Tell whether two stems derive from one word (`allerg` and `allergi`, `photograph` and `photographi`)."""
    short, long = sorted((first, second), key=len)
    if not short.isalpha() or not long.isalpha() or len(short) < 3:
        return False
    if long.startswith(short):
        return long[len(short) :] in _ENDINGS or (len(short) >= 4 and len(long) - len(short) <= 4)
    common = next(i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b)
    return common >= 4 and common >= 0.75 * len(short) and len(long) - common <= 4
