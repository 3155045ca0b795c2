"""Whether a statement holds the kind of thing that a question asks for: a date, a person, a sum, a reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

from brainiac.language.sentences import irregular_forms, kinds_of, related, standard_spelling, stem
from brainiac.llm.offline.evidence import Evidence, Token
from brainiac.llm.offline.questions import Question

_I = re.IGNORECASE
_AMOUNT = (
    r"(?:[$€£]\s?\d|\d[\d.,]*\s?(?:k\s|dollars|euros?|bucks|pounds|quid|usd|eur|gbp|cents|[$€£])|(?:hundred"
    r"|thousand|\w+teen|\w+ty|one|two|three|four|five|six|seven|eight|nine|ten) (?:hundred |thousand )*(?:dollars"
    r"|euros|bucks|pounds|quid))"
)
_PAID = re.compile(
    r"(?:cost|paid|pay|for|came to|was|were|is|are|at|charge[sd]?|charging|price[ds]?|spent|spend|sold|bought"
    r"|worth|bill|fee|rent|salary|earn|owe[sd]?|per|of|to|=|:|,)"
    rf"s?\W+(?:(?!sav)\w+\W+){{0,3}}?{_AMOUNT}|{_AMOUNT}[\d.,]*\s*(?:\w+ )?(?:a|per|each|an|every|/)\b",
    _I,
)
_NUMBER = re.compile(
    r"^(?:\d[\d.,:]*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    r"|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|dozen"
    r"|both|couple|once|twice|half)$",
    _I,
)
_AGE = re.compile(
    r"\b\d+[\w -]{0,8}\bold\b|\bage[ds]?\b|\bborn\b|\bturn(?:s|ed|ing)? (?:\d|\w+(?:ty|teen)\b)"
    r"|\b(?:is|was|am|'m) (?:\d{1,2}"
    r"|\w+ty(?:-\w+)?)(?= (?:and|now|this|years)|[.,!]|$)|\b(?:\w+-)?year-old\b",
    _I,
)
_RATE = re.compile(
    r"\b(?:a|an|per|each|every|once|twice|times|daily|weekly|monthly|yearly|nightly|hourly"
    r"|other)\b(?= (?:other )?(?:day|night|week|month"
    r"|year|hour|morning|evening|second|two|three|few|\w+day)s?\b)|\b(?:daily|weekly|monthly|nightly|yearly|hourly)\b",
    _I,
)
_REASON = re.compile(
    r"\b(?:because|since|so that|so|due to|as|thanks to|in order to|to avoid|reason|cause[sd]?|for (?:his|her|my"
    r"|our|the)|makes?|tastes?)\b|[:;–—]",
    _I,
)
_PLACE = re.compile(
    r"\b(?:in|at|to|on|from|near|under|behind|inside|into|around|above|below|between|beside|over|by|through|next "
    r"to|opposite|off)\s+(?!(?:time|total|full|fact|case|all|least|last|once|first|general|advance)\b)(?:the "
    r"|my |our |a |an |their |her |his )?(?P<place>[\w'-]+(?: [A-Z][\w'-]*)?)",
    _I,
)
_WEEKDAY = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\bevery\b|\bweek(?:end|day)s?\b", _I)
_NAMING = re.compile(r"\b(?:named?|names|called|call|name's|goes by)\b", _I)
_SURNAME = re.compile(r"\b(?:last|sur|family|full) ?name\b", _I)
_WORK = re.compile(
    r"\bworks? (?:as|at|for|in|on|with)\b|\bworked (?:as|at|for|in)\b|\bjob\b|\bruns? (?:a|an|the)\b|\b(?:do|does"
    r"|did) (?:[A-Z]\w*|\w+) (?:for|at)\b|\bfreelance\b|\b(?:studie[sd]|teaches|teach|taught|freelances?"
    r"|retired)\b|\b(?:started|starts|joined|employed|promoted|trained|training) (?:at|as|by|with)\b"
    r"|\bself.?employed\b",
    _I,
)
_ASKS_PAST = re.compile(r"\b(?:did|was|were|had|have|has)\b", _I)
_SAVED = re.compile(rf"\b(?:sav\w+|budget\w*|worth of)\W+(?:\w+\W+){{0,3}}?{_AMOUNT}", _I)
_PLACE_WORD = re.compile(r"\b(?:downstairs|upstairs|abroad|nearby|next door|at home|here|online|outside|indoors)\b", _I)
_EVENT = re.compile(r"\b(?:\w{2,}ed|today|this (?:morning|afternoon|evening)|tonight|just)\b", _I)
_CALENDAR = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july "
    "august september "
    "october november december i i'm i've i'd i'll todo".split()
)


def holds(question: Question, evidence: Evidence) -> float:
    """Return how surely a statement holds the kind of thing that was asked for, 0 to 1."""
    check = _CHECKS.get(question.expected)
    return 1.0 if check is None else float(check(question, evidence))


def _text(evidence: Evidence) -> str:
    return standard_spelling(evidence.sentence.utterance)


def _holds_date(question: Question, evidence: Evidence) -> float:
    if evidence.days() or any(span.kind == "frequency" for span in evidence.said.times):
        return 1.0
    if re.search(r"\b(?:before|after|until|once|when|during|at \d|in the)\b", evidence.said.plain, _I):
        return 0.6
    if not _ASKS_PAST.search(question.text):
        return 0.0
    first = evidence.said.plain.split()[0].lower()
    has_happened = bool(_EVENT.search(evidence.said.plain)) or irregular_forms().get(first, first) != first
    return 0.75 if evidence.is_dated and has_happened and evidence.said.kind != "task" else 0.0


def _holds_duration(question: Question, evidence: Evidence) -> bool:
    return any(
        span.kind == "duration" or span.text.lower().startswith("since") for span in evidence.said.times
    ) or bool(re.search(r"\b(?:since|until|from .+ to)\b", evidence.said.plain, _I))


def _holds_number(question: Question, evidence: Evidence) -> float:
    """A number stands close to the thing that is counted, where the question names it."""
    if re.search(r"\bhow often\b|\bhow many times\b", question.text, _I):
        return any(span.kind == "frequency" for span in evidence.said.times) or bool(_RATE.search(evidence.said.plain))
    tokens = evidence.sentence.tokens
    numbers = [i for i, token in enumerate(tokens) if _NUMBER.match(token.word) and not _in_date(token, evidence)]
    if re.search(r"\bhow many\b", question.text, _I):  # pounds are not people
        numbers = [i for i in numbers if not re.search(rf"[$€£]\s?{re.escape(tokens[i].word)}", evidence.said.plain)]
    counted = re.search(r"\bhow many (?:of )?(?:my |our |the )?([\w-]+(?: [\w-]+)?)", question.text, _I)
    if not counted or not numbers:
        is_money = bool(re.search(_AMOUNT, evidence.said.plain, _I))
        is_figure = any(tokens[i].word[0].isdigit() for i in numbers)
        return 1.0 if is_money else 0.8 if is_figure else 0.6 if numbers else 0.0
    things = [
        i
        for i, token in enumerate(tokens)
        if any(token.stem in related(term.stem) for term in question.terms if term.stem[:4] in counted[1].lower())
    ]
    if not things and any(not term.is_light and term.stem[:4] in counted[1].lower() for term in question.terms):
        return 0.5
    return 1.0 if any(abs(i - j) <= 4 for i in numbers for j in things) else 0.6


def _holds_money(question: Question, evidence: Evidence) -> float:
    text = _text(evidence)
    if _PAID.search(text):
        return 1.0
    return 0.85 if re.search(_AMOUNT, text, _I) and not _SAVED.search(text) else 0.0


def _holds_place(question: Question, evidence: Evidence) -> float:
    """A place follows a preposition and is not the very thing that is looked for."""
    text = evidence.said.plain
    for span in reversed(evidence.said.times):
        text = text[: span.start] + " " * (span.end - span.start) + text[span.end :]
    if re.search(r"\bwhere\b.* from\b", question.text, _I) and not re.search(r"\bfrom\b", text):
        return 0.0
    strength = 0.9 if _PLACE_WORD.search(text) else 0.0
    for found in _PLACE.finditer(text):
        stems = {stem(word.lower()) for word in found["place"].split()}
        if not any(
            related(term.stem).get(one, 0) > 0.8 for term in question.terms if not term.is_verb for one in stems
        ):
            strength = max(strength, 1.0 if found["place"][0].isupper() else 0.7)
    return strength


def _holds_reason(question: Question, evidence: Evidence) -> float:
    """A reason is marked as one, or stands in a further clause."""
    if _REASON.search(evidence.said.plain):
        return 1.0
    return 0.6 if "," in evidence.said.plain or evidence.sentence.nearby else 0.0


def _in_date(token: Token, evidence: Evidence) -> bool:
    return any(
        token.word in span.text
        for span in evidence.said.times
        if span.kind in ("point", "range") and token.word[0].isdigit()
    )


def _holds_person(question: Question, evidence: Evidence) -> float:
    asked = {term.stem for term in question.terms}
    if re.match(r"(?:and |so )?who(?:'s| is| was| are)\b", question.text, _I) and all(
        term.phrase >= 0 for term in question.terms
    ):
        return 1.0
    if any(token.stem not in asked for token in names_in(evidence)):
        return 1.0
    # typed without capitals, a name is like any other word
    is_lowercase = not any(token.word[0].isupper() for token in evidence.sentence.tokens if token.word != "I")
    return 0.8 if is_lowercase and evidence.sentence.stems - asked else 0.0


def names_in(evidence: Evidence) -> list[Token]:
    """Return the words of a statement that look like names, with those of the rest of a short utterance."""
    found = []
    tokens = evidence.sentence.tokens
    for position, token in enumerate(tokens):
        lower = token.word.lower()
        if position and tokens[position - 1].word.lower() in ("in", "at", "on", "near"):
            continue  # a place
        if not token.word[0].isupper() or lower in _CALENDAR or not token.is_content:
            continue
        is_verb = lower.endswith(("ed", "ing")) or irregular_forms().get(lower, lower) != lower
        if position or not is_verb:
            found.append(token)
    if not found:
        text = _text(evidence)
        found = [
            Token(word.lower(), word, True)
            for word in re.findall(r"(?<=[\w,] )[A-Z]\w+", text)
            if word.lower() not in _CALENDAR
        ]
    return found


def _holds_name(question: Question, evidence: Evidence) -> bool:
    if not question.terms:
        return bool(
            re.search(
                r"\bmy (?:full |first )?name(?:'s| is)\b|\bcall me\b|\bi'm [A-Z]\w+[.,!]?$|User's name",
                evidence.said.plain,
            )
        )
    asked_of = re.search(
        r"\bnames? of (?:the |my |our |a |\w+'s )?(?P<thing>\w+)|(?P<owner>\w+)(?:'s|s') names?\b", question.text, _I
    )
    focus = stem((asked_of["thing"] or asked_of["owner"]).lower()) if asked_of else ""
    terms = [term for term in question.terms if term.stem == focus] or [
        term for term in question.terms if term.phrase < 0
    ]
    things = {one: near for term in terms if term.phrase < 0 for one, near in related(term.stem).items()}
    asked = {term.stem for term in question.terms}
    tokens = evidence.sentence.tokens
    places = [position for position, token in enumerate(tokens) if token.stem in things and things[token.stem] > 0.8]
    return not things or any(_is_named(tokens, position, asked) for position in places)


def _is_named(tokens: Sequence[Token], position: int, asked: Collection[str]) -> bool:
    """Tell whether a name stands with a thing: `my dog Max`, `a dog named Max`, `Max is my dog`."""
    if any(_NAMING.match(one.word) for one in tokens[max(0, position - 5) : position + 5]):
        return True
    after = tokens[position + 1 : position + 4]
    for index, one in enumerate(after):
        if _is_name(one, asked) and not any(
            other.word.lower() in ("to", "in", "at", "for", "from", "on", "with") for other in after[:index]
        ):
            return True
    before = tokens[max(0, position - 5) : position]
    return any(one.word.lower() in ("is", "was") for one in before) and any(_is_name(one, asked) for one in before)


def _is_name(token: Token, asked: Collection[str]) -> bool:
    return (
        token.word[0].isupper() and token.is_content and token.stem not in asked and token.word.lower() not in _CALENDAR
    )


def _holds_surname(question: Question, evidence: Evidence) -> bool:
    if _SURNAME.search(evidence.said.plain):
        return True
    names = {term.stem for term in question.terms if term.phrase >= 0}
    tokens = evidence.sentence.tokens
    return any(
        token.stem in names and following.word[0].isupper() and following.is_content and not token.word.endswith("'s")
        for token, following in pairwise(tokens)
    )


def _holds_kind(kind: str) -> Callable[[Question, Evidence], bool]:
    return lambda question, evidence: any(stem(kind) in kinds_of(one) for one in evidence.sentence.stems)


def _holds_profession(question: Question, evidence: Evidence) -> bool:
    return bool(_WORK.search(evidence.said.plain)) or _holds_kind("job")(question, evidence)


def _searches(pattern: re.Pattern[str]) -> Callable[[Question, Evidence], bool]:
    return lambda question, evidence: bool(pattern.search(_text(evidence)))


def _holds_brand(question: Question, evidence: Evidence) -> bool:
    asked = {term.stem for term in question.terms}
    return _holds_kind("brand")(question, evidence) or any(one.stem not in asked for one in names_in(evidence))


_CHECKS: dict[str, Callable[[Question, Evidence], float]] = {
    "date": _holds_date,
    "duration": _holds_duration,
    "number": _holds_number,
    "money": _holds_money,
    "age": _searches(_AGE),
    "person": _holds_person,
    "place": _holds_place,
    "reason": _holds_reason,
    "name": _holds_name,
    "surname": _holds_surname,
    "phone": _searches(re.compile(r"(?:\d[ ()/-]?){6,}")),
    "email": _searches(re.compile(r"\w@\w")),
    "breed": _holds_kind("breed"),
    "brand": _holds_brand,
    "color": _holds_kind("color"),
    "profession": _holds_profession,
    "weekday": _searches(_WEEKDAY),
}

CHECKED = frozenset(_CHECKS)  # the kinds of answer that a statement can be seen to hold
CERTAIN = CHECKED & {
    "money",
    "age",
    "name",
    "surname",
    "phone",
    "email",
    "breed",
    "brand",
    "color",
    "weekday",
}  # or not
