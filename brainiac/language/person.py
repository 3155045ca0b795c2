"""From the first person into the third: `I'm moving and my dog likes it` → `User is moving and their dog likes it`."""

from __future__ import annotations

import re
from collections.abc import Callable

from brainiac.language.sentences import irregular_forms

_ADVERBS = frozenset(  # with the pronouns, what may stand between "I" and its verb
    "already also always but just more ever almost never only still often sometimes now then even both too not no "
    "longer all once again alone first long soon seldom rather quite either neither each instead kind of myself".split()
)
_VERBS_IN_LY = frozenset("rely fly ally rally tally bully apply reply supply imply comply multiply".split())
_MODALS = frozenset(
    "can could will would shall should may might must cannot ought can't couldn't won't wouldn't shouldn't".split()
)
_UNCHANGED = frozenset(
    "put cut let set shut hit quit read cost hurt split spread bet cast".split()
)  # past or present alike
_IRREGULAR_PRESENT = {
    "have": "has",
    "do": "does",
    "go": "goes",
    "don't": "doesn't",
    "am": "is",
    "haven't": "hasn't",
    "was": "was",
}
_CONTRACTED = {"'m": "is", "'ve": "has", "'ll": "will", "'d": "would"}
_PRONOUN_I = re.compile(r"(?:(?<=[\s(\"“,])|^)[Ii](?=[\s,.!)]|$)")
_NO_PAST_FORM = ("be", "do", "have", "good", "bad", "person", "child", "man", "woman", "foot", "lie", "mean", "light")
_TOKEN = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?|[^A-Za-z]+")
_PLAIN = {"me": "User", "myself": "themselves", "mine": "User's", "my": "User's"}
_AGAIN = {"me": "them", "myself": "themselves", "mine": "theirs", "my": "their"}
_AGAIN_CONTRACTED = {"'m": "they are", "'ve": "they have", "'ll": "they will", "'d": "they would"}
_SPOKEN_START = re.compile(
    r"^(?:(?:just|finally|already|recently|also) )?(?!(?:need|bed|red|hundred|seed|speed|shed|feed|embed|united|"
    r"indeed|based|used|supposed|related|advanced|limited|mixed|made|given|fed)\b)[a-z]{2,}ed\b(?! by\b)",
    re.IGNORECASE,
)


def in_third_person(sentence: str, *, is_continued: bool = False) -> str:
    """Return a sentence about its writer as one about `User`, every detail kept.

    Args:
        sentence: One sentence, as typed. "We" stays: whom it means is not known.
        is_continued: The user was named just before, so that "they" and "their" are used from the start.

    Returns:
        The sentence without its closing full stop.
    """
    text = re.sub(r"(?<!\.)\.$", "", sentence.strip())
    if not is_continued and _lacks_subject(text):
        text = "User " + text[0].lower() + text[1:]
        is_continued = True
    pieces: list[str] = []
    verb_form: Callable[[str], str] | None = None  # what to do with the next verb
    for match in _TOKEN.finditer(text):
        token, lower = match.group(), match.group().lower().replace("’", "'")
        if lower == "i" and _PRONOUN_I.match(text, match.start()):
            is_joint = "".join(pieces[-2:]).endswith("and ")
            verb_form = _plural_of if is_continued or is_joint else third_person_of
            pieces.append("they" if is_continued else "User")
        elif token[0].isalpha() and verb_form and not _stands_before_verb(lower):
            pieces.append(verb_form(lower) if token.islower() else token)
            verb_form = None
        else:
            pieces.append(_replace(token, lower, is_first=not pieces, is_continued=is_continued))
        is_continued = is_continued or pieces[-1].startswith(("User", "their"))
    return "".join(pieces)


_SECOND = {
    "i": "you", "me": "you", "my": "your", "mine": "yours", "myself": "yourself", "i'm": "you're", "i've": "you've",
    "i'll": "you'll", "i'd": "you'd", "we": "you", "us": "you", "our": "your", "ours": "yours",
    "ourselves": "yourselves",
    "we're": "you're", "we've": "you've", "we'll": "you'll", "we'd": "you'd",
}  # fmt: skip
_FIRST_PERSON = re.compile(
    r"\b(?:(?P<be>I (?:am|was))|(?P<word>(?:I|we)'(?:m|re|ve|ll|d)|I|we|us|me|my|mine|myself|ours?|ourselves))\b",
    re.IGNORECASE,
)


def in_second_person(sentence: str) -> str:
    """Return a sentence as said back to its writer: `I moved with my dog` → `you moved with your dog`."""

    def replaced(found: re.Match[str]) -> str:
        if found["be"]:
            return "you are" if found["be"].lower().endswith("am") else "you were"
        return found[0] if found[0] == "US" else _SECOND[found[0].lower()]

    return _FIRST_PERSON.sub(replaced, sentence.replace("’", "'"))


def _lacks_subject(text: str) -> bool:
    first = re.match(r"(?:(?:just|finally|already|recently|also) )?([A-Za-z]+)", text, re.IGNORECASE)
    if not first or (first[1][0].islower() and text[0].isupper()):
        return False
    word = first[1].lower()
    is_past = irregular_forms().get(word, word) not in (word, *_NO_PAST_FORM)
    return is_past or bool(_SPOKEN_START.match(text))


def _replace(token: str, lower: str, *, is_first: bool, is_continued: bool) -> str:
    if lower[:2] == "i'" and lower[1:] in _CONTRACTED:
        return _AGAIN_CONTRACTED[lower[1:]] if is_continued else f"User {_CONTRACTED[lower[1:]]}"
    replaced = (_AGAIN if is_continued else _PLAIN).get(lower)
    if replaced is None:
        return token
    return replaced[0].upper() + replaced[1:] if is_first else replaced


def _stands_before_verb(word: str) -> bool:
    return word in _ADVERBS or (word.endswith("ly") and word not in _VERBS_IN_LY)


def _plural_of(verb: str) -> str:
    return {"am": "are", "was": "were"}.get(verb, verb)


def third_person_of(verb: str) -> str:
    """Return the form that goes with he, she or User: `live` → `lives`; past forms and modals stay."""
    if verb in _IRREGULAR_PRESENT:
        return _IRREGULAR_PRESENT[verb]
    if verb in _MODALS or verb in _UNCHANGED or verb in irregular_forms() or verb.endswith(("ed", "ing")):
        return verb
    if (verb.endswith("s") and not verb.endswith("ss")) or verb in ("and", "or", "to", "as", "in", "at", "on", "of"):
        return verb
    if re.search(r"(?:s|x|z|ch|sh|o)$", verb):
        return verb + "es"
    return verb[:-1] + "ies" if re.search(r"[^aeiou]y$", verb) else verb + "s"
