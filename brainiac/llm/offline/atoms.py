"""From what was said to statements that stand alone: names for pronouns, one fact each, nothing that says nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from brainiac.language.entities import find_mentions
from brainiac.language.sentences import content_stems
from brainiac.language.statements import Said
from brainiac.llm.offline.filing import topic_of

_I = re.IGNORECASE
_LINK = r"(?:(?:and|but|so|also|plus|then|well|oh|ok(?:ay)?|hm+)[, ]+)*"
_PRONOUN = re.compile(
    rf"^(?P<lead>{_LINK}(?:[\w' ]{{3,30}}: )?)(?P<word>she|he|her|his|him)(?P<short>'s|'ll|'d|'ve)?(?=[\s,]|$)"
    r"(?P<rest>.*)$",
    _I | re.S,
)
_HAS = re.compile(
    r"^\s+(?:\w+ly\s+|just |already |always |never |not )?(?!called|named|scared|worried|tired|married|engaged|retired"
    r"|bored|based|interested|supposed|expected|allowed|allergic)(?:been|got|had|done|gone|come|found|\w{3,}ed)\b",
    _I,
)
_SOMEBODY_ELSE = re.compile(r"\b(?:girl|boy|baby|son|daughter|wife|husband|sister|brother|kids?|twins?)\b", _I)
_KIN = r"(?:mum|mom|dad|nan|nana|gran|grandma|grandpa|grandad|granny|mother|father)"
_PERSON_FIRST = re.compile(rf"^(?:(?:my|our) )?(?:(?:\w+ )?{_KIN}|[A-Z][\w'-]+)", _I)
_SUBJECT = (
    r"(?:User|we|he|she|they|it|there|(?:the|my|our|User's|their|his|her|its|this|that) [\w'-]+(?: [\w'-]+){0,2}?"
    r"|[A-Z][\w-]+(?: [A-Z][\w-]+)?)"
)
_VERB = r"(?:is|are|was|were|has|have|had|will|can|can't|does|doesn't|runs?|costs?|[a-z]{3,}(?:s|ed))"
_AND = re.compile(rf"(?:,? and|;|,) (?P<rest>{_SUBJECT}(?:'s)? ?(?:\b{_VERB}\b).+)$")
_DEPENDS = re.compile(
    r"\b(?:because|since|if|when|while|although|though|unless|until|so that|which|who|whose|where|says?|said|told"
    r"|thinks?|agreed|decided|either|both|between|as|not|instead|so|before|after)\b",
    _I,
)
_LEANS = re.compile(rf"(?:the|its?|their|there)\b|{_DEPENDS.pattern}", _I)  # means nothing by itself
_FINITE = re.compile(
    r"\b(?:am|is|are|was|were|be|been|has|have|had|do|does|did|will|would|can|could|may|might|must|should|shall|won't"
    r"|can't|cannot|don't|doesn't|didn't|isn't|aren't|wasn't|[a-z]{2,}(?:ed|es|ing)|[a-z]{3,}s|went|got|met|ran|said"
    r"|gave|took|made|came|bought|sold|left|found|found|sent|told|began|wrote|read|put|kept|grew|chose|spent|lost|won"
    r"|built|drove|paid|rang)\b|'(?:s|re|m|ve|ll|d)\b|\b(?:we|they) [a-z]{3,}\b",
    _I,
)
_IS = re.compile(
    r"^(?:User's|the|our|his|her|their|[A-Z][\w-]+(?:'s)?) .*\b(?:is|are|has|have|likes?|runs?|works?)\b", _I
)
_DENIAL = re.compile(  # what somebody is, has, can or does not; what they do not know, mind or wait for is a mood
    r"^(?:User|we|they)\b [\w ]*?(?:\b(?:not|no|never)\b|n't\b) (?!(?:know|care|mind|wait|think|remember|believe"
    r"|understand|sure|certain|want|need|feel|here|there|now|today|yet|\w+ (?:it|that|this))\b)",
    _I,
)
_CHATTER = re.compile(
    r"\b(?:lol|ha(?:ha)+|omg|ugh+|argh+|brr+|yawn|zzz+|phew|wow|meh|hm+|ta|cheers|bye|night night|nigh?t(?:y)? nigh?t"
    r"|good ?night|good (?:morning|evening|afternoon)|hello|hiya|morning|fingers crossed|thank (?:you|god)|thanks"
    r"|well deserved|no regrets|good sign|you know why|what a (?:day|week|night|morning)|can't sleep|tick that off"
    r"|here (?:we|i) (?:go|are)|happy \w+day|tgif|bliss|excellent|delighted|never again|the best|best (?:day|week))\b",
    _I,
)
_FEELING = re.compile(
    r"^(?:user (?:is |feels? |felt )?)?(?:so |very |really |quite |a bit |too |not |feeling )*(?:happy|well|tired|sad"
    r"|good|bad|weird|nervous|great|knackered|exhausted|excited|hungry|bored|fine|dead|crying)\b",
    _I,
)


_FIRM = frozenset({"name", "place", "relation", "quantity", "preference"})


def with_names(told: Sequence[Said], last: str) -> tuple[list[Said], str]:
    """Put the name for a leading "she" or "he", from the sentence before.

    Args:
        told: The sentences of one message.
        last: Whom the message before spoke of; "" if nobody.

    Returns:
        The sentences, and whom the last of them speaks of.
    """
    named: list[Said] = []
    for said in told:
        found = _PRONOUN.match(said.text)
        if found and last:
            said = replace(said, text=_named(found, last))
        else:
            last = "" if _SOMEBODY_ELSE.search(said.text) else _person_of(said) or last
        named.append(said)
    return named, last


def _named(found: re.Match[str], name: str) -> str:
    word, short, rest = found["word"].lower(), found["short"] or "", found["rest"]
    name = f"{found['lead'] if ':' in found['lead'] else ''}{name.title() if name.isupper() else name}"
    if word in ("her", "his"):
        return f"{name}'s{rest}"
    verb = {"'ll": " will", "'ve": " has", "'d": " would"}.get(short, "")
    if short == "'s":
        verb = " has" if _HAS.match(rest) else " is"
    return f"{name}{verb}{rest}"


def _person_of(said: Said) -> str:
    """Return the person a sentence is about: whom it begins with, or the only one it names."""
    first = _PERSON_FIRST.match(said.text.removeprefix("User's "))
    mentions = [one for one in find_mentions(said.text) if one.text[:1].isupper()]
    names = [one.text for one in mentions if one.kind == "name" or re.fullmatch(_KIN, one.text, _I)]
    names = [name.removesuffix("'s") for name in names if name.removesuffix("'s") != "User"]
    opening = first[0].split()[-1].removesuffix("'s") if first else ""
    if said.kind in ("task", "forget"):  # "Remind", "Forget" stand first there
        names = [name for name in names if name != opening]
    elif opening in names and (len(set(names)) == 1 or topic_of(opening, "english") == ""):
        return opening
    elif opening in names:
        names = [name for name in names if name != opening]
    return names[0] if len(dict.fromkeys(names)) == 1 else ""


def split_facts(said: Said) -> Iterator[Said]:
    """Yield the facts of a sentence one by one, where each has a subject and a verb of its own."""
    if said.kind not in ("fact", "preference"):
        yield said
        return
    text = said.text
    found = _AND.search(text)
    while found:
        head = text[: found.start()]
        if _stands(head) and not _DEPENDS.search(head) and not _LEANS.match(found["rest"]) and ": " not in head:
            yield replace(said, text=head)
            text = found["rest"][:1].upper() + found["rest"][1:]
            found = _AND.search(text)
        else:
            found = _AND.search(text, found.start() + 1)
    yield replace(said, text=text)


def _stands(text: str) -> bool:
    return bool(_FINITE.search(text)) and len(content_stems(text)) >= 2


def says_something(said: Said) -> bool:
    """Tell whether a sentence holds anything to be known later: chatter, moods and fragments do not."""
    if said.kind in ("decision", "change", "forget", "how-to", "task"):
        return True
    if said.kind == "preference" and not _CHATTER.search(said.text):
        return any(one.kind != "preference" and one.text != "User" for one in find_mentions(said.text))
    stems = [one for one in content_stems(said.text) if one != "user"]
    firm = [one for one in find_mentions(said.text) if one.kind in _FIRM and one.text != "User"]
    if _CHATTER.search(said.text) and len(stems) <= 5 and len(firm) < 2:
        return False
    if _FEELING.match(said.text) and len(stems) <= 4 and not firm:
        return False
    has_colon = bool(re.match(r"[\w' -]{2,40}: \S", said.text))
    is_sentence = bool(_FINITE.search(said.text)) or has_colon
    if not is_sentence:
        return bool(firm) and len(stems) >= 3 and bool({"quantity", "relation", "name"} & {one.kind for one in firm})
    is_short_fact = bool(firm) or re.match(r"(?:So )?(?:User|we)\b", said.text, _I) or _IS.search(said.text)
    if _DENIAL.match(said.text) and stems:
        return True
    return len(stems) >= 3 or (len(stems) == 2 and bool(is_short_fact))
