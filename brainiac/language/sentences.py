"""Sentences, words and stems of plain text, fast enough to run over every hit of every question."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib import resources

import Stemmer  # type: ignore[import-not-found, import-untyped, unused-ignore]  # PyStemmer: Snowball in C

_ABBREVIATIONS = frozenset(
    "dr mr mrs ms prof st jr sr vs etc e.g i.e eg ie no vol fig inc ltd co corp dept approx apt ave blvd "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun a.m p.m u.s u.k".split()
)
_LIST_MARK = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s|$)")
_WORD = re.compile(r"[^\W_]+(?:['’.&/-][^\W_]+)*")
_CLITIC = re.compile(r"['’](?:s|re|ve|ll|d|m)$")

MAX_CHARACTERS = 1_000  # of a sentence
_STOPS = ".!?\n"


def split_sentences(text: str) -> list[str]:
    """Split text into sentences.

    A line break ends a sentence when a blank line, a list mark or an ended sentence stands there; abbreviations,
    initials, numbers, addresses and file names do not.

    Args:
        text: Any text; list marks are removed.

    Returns:
        Sentences without surrounding blanks, in order; never empty ones. What goes on without an end is cut between
        words, so that whoever looks at every pair of words in a sentence ends.
    """
    sentences: list[str] = []
    for block in _blocks(text):
        start = 0
        for match in _END.finditer(block):
            if _is_end(block, match):
                sentences.append(block[start : match.end()].strip())
                start = match.end()
        sentences.append(block[start:].strip())
    pieces = (piece for sentence in sentences for piece in _of_bounded_length(sentence))
    return [piece for piece in pieces if any(c.isalnum() for c in piece)]


def _of_bounded_length(sentence: str) -> Iterator[str]:
    while len(sentence) > MAX_CHARACTERS:
        at = sentence.rfind(" ", 1, MAX_CHARACTERS)
        at = at if at > 0 else MAX_CHARACTERS
        yield sentence[:at].strip()
        sentence = sentence[at:].strip()
    yield sentence


def _blocks(text: str) -> Iterable[str]:
    """Yield list items and paragraphs; wrapped lines are joined, those of a list item where they are indented."""
    current, is_item = "", False
    for line in text.splitlines():
        bare = _LIST_MARK.sub("", line)
        is_apart = is_item and not line[:1].isspace()
        starts_anew = is_apart or bare != line or not line.strip() or current.endswith((".", "!", "?", ":"))
        is_item = bare != line or (is_item and not is_apart)
        if starts_anew and current:
            yield current
            current = ""
        current = f"{current} {bare.strip()}".strip()
    if current:
        yield current


def _is_end(block: str, match: re.Match[str]) -> bool:
    if match.end() == len(block):
        return True
    if match.group() != ".":
        return not match.group().startswith(("..", "…")) or not block[match.end() :].lstrip()[0].islower()
    before = block[: match.start()].rsplit(None, 1)
    last = before[-1].lstrip("(\"'“‘") if before else ""
    is_initial = len(last) == 1 and last.isalpha() and last.isupper() and last != "I"
    return last.lower() not in _ABBREVIATIONS and not is_initial


def ends_of(text: str, limit: int) -> str:
    """Return a text; of one longer than `limit` characters whole sentences of its beginning and of its end."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 3 // 4], text[-(limit // 4) :]
    end = max(head.rfind(stop) for stop in _STOPS) + 1
    start = min(tail.find(stop) % len(tail) for stop in _STOPS) + 1  # not found: -1, that is at its end
    return f"{head[:end] or head}\n\n{tail[start:].strip() or tail}"


def words(text: str) -> list[str]:
    """Return the words as written; `o'clock`, `harbor-api` and `3.5` are one word each."""
    return _WORD.findall(text)


def tokenize(text: str) -> list[str]:
    """Return the words, case-folded and without clitics (`Elena's` → `elena`)."""
    return [_CLITIC.sub("", word.replace("’", "'")).casefold() for word in words(text)]


class _Stemmers(threading.local):
    """One stemmer a thread and language: a Snowball stemmer keeps the word it works on in itself."""

    def __init__(self) -> None:
        self.by_language: dict[str, Stemmer.Stemmer] = {}

    def of(self, language: str) -> Stemmer.Stemmer:
        if language not in self.by_language:
            self.by_language[language] = Stemmer.Stemmer(language)
        return self.by_language[language]


_STEMMERS = _Stemmers()


@lru_cache(maxsize=65536)
def stem(word: str, language: str = "english") -> str:
    """Return the stem of a case-folded word; irregular English forms count as their base form (`ate` → `eat`)."""
    base = irregular_forms().get(word, word) if language == "english" else word
    return str(_STEMMERS.of(language).stemWord(base))


@cache
def irregular_forms() -> dict[str, str]:
    """Return irregular English forms with their base forms."""
    forms = {}
    for line in data_lines("irregular.txt"):
        base, *others = line.split()
        forms.update(dict.fromkeys(others, base))
    return forms


@cache
def stop_words(language: str = "english") -> frozenset[str]:
    """Return the words that carry no content; empty for a language we have no list of."""
    return frozenset(" ".join(data_lines("stop_words.txt")).split()) if language == "english" else frozenset()


def content_stems(text: str, language: str = "english") -> list[str]:
    """Return the stems of the words that carry content, in order."""
    stop = stop_words(language)
    return [stem(token, language) for token in tokenize(text) if token not in stop]


@cache
def _tables() -> tuple[dict[str, set[str]], dict[str, set[str]], dict[str, set[str]]]:
    """Read the synonym table: near-synonyms, kinds and instances of a stem."""
    alike: dict[str, set[str]] = {}
    kinds: dict[str, set[str]] = {}
    instances: dict[str, set[str]] = {}
    for line in data_lines("synonyms.txt"):
        names, _, members = line.rpartition(">")
        stems = {stem(word.split("@")[0]) for word in members.split()}
        for one in stems if not names else ():
            alike.setdefault(one, set()).update(stems - {one})
        for kind in (stem(word) for word in names.split()):
            instances.setdefault(kind, set()).update(stems)
            for one in stems:
                kinds.setdefault(one, set()).add(kind)
    return alike, kinds, instances


@lru_cache(maxsize=4096)
def related(stemmed: str) -> dict[str, float]:
    """Return the stems that may stand for one that is looked for, with how near each comes.

    Returns:
        1.0 for the stem itself, 0.9 for near-synonyms, 0.85 for instances (`herb` → `cilantro`), 0.6 for its kinds.
        Synonyms of a kind count as the kind (`occupation` → `nurse`).
    """
    alike, kinds, instances = _tables()
    synonyms = alike.get(stemmed, set())
    found = dict.fromkeys(kinds.get(stemmed, ()), 0.6)
    for one in (stemmed, *synonyms):
        found |= dict.fromkeys(instances.get(one, ()), 0.85)
    return found | dict.fromkeys(synonyms, 0.9) | {stemmed: 1.0}


def kinds_of(stemmed: str) -> frozenset[str]:
    """Return the stems of the kinds that a stem names an instance of (`cilantro` → `herb`, `food`)."""
    return frozenset(_tables()[1].get(stemmed, ()))


def needs_after(stemmed: str) -> frozenset[str]:
    """Return the words of which one must follow for a stem to be a synonym: `move` is `live` in `move to`."""
    return _followers().get(stemmed, frozenset())


@cache
def _followers() -> dict[str, frozenset[str]]:
    marked = (word.split("@") for line in data_lines("synonyms.txt") for word in line.split() if "@" in word)
    return {stem(word): frozenset(followers.split(",")) for word, followers in marked}


def overlap(first: Sequence[str], second: Iterable[str]) -> float:
    """Return the share of the first stems that the second hold, synonyms included: 0 to 1."""
    if not first:
        return 0.0
    others = set(second)
    return sum(not others.isdisjoint(related(one)) for one in first) / len(first)


def data_lines(name: str) -> list[str]:
    """Return the lines of a word list of this package, comments and blanks left out."""
    text = resources.files("brainiac.language").joinpath(name).read_text("utf-8")
    return [line for line in (raw.split("#")[0].strip() for raw in text.splitlines()) if line]


@cache
def _casual() -> tuple[re.Pattern[str], dict[str, str]]:
    pairs = (line.split() for line in data_lines("casual.txt"))
    table = {casual: standard.replace("_", " ") for casual, standard in pairs}
    longest_first = "|".join(re.escape(word) for word in sorted(table, key=len, reverse=True))
    return re.compile(
        rf"(?<![\w'’/-])(?:{longest_first})(?![\w'’]|\.\w)|(?<![\w'’.-])i(?=['\s,.!?]|$)", re.IGNORECASE
    ), table


def standard_spelling(text: str) -> str:
    """Return text with casual spelling made standard: `im`, `dont`, `whats`, `i` → `I'm`, `don't`, `what's`, `I`."""
    pattern, table = _casual()
    return pattern.sub(lambda found: table.get(found[0].lower(), "I"), text.replace("’", "'"))
