"""What a person typed, as durable statements: what kind each sentence is, and the sentence in the third person."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Literal

from brainiac.language.markup import is_instruction, own_words
from brainiac.language.person import in_third_person
from brainiac.language.sentences import split_sentences, standard_spelling, words
from brainiac.language.times import TimeSpan, find_times

SaidKind = Literal[
    "fact", "preference", "decision", "task", "done", "change", "forget", "question", "how-to", "small-talk"
]
Importance = Literal["low", "medium", "high"]


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence of what a person typed.

    Attributes:
        text: A statement in the third person without command words: `User moved to Portland in June 2020`.
        original: The sentence as typed.
        plain: The sentence in standard spelling, for looking into it.
        kind: What it is.
        what: The bare content: a task without "todo:", what to forget, the sentence otherwise.
        times: Its time expressions, with offsets into `plain`.
        importance: From the wording.
        old: What a change or correction leaves behind, in the person's words; "".
        new: What stands instead; "".
    """

    text: str
    original: str
    plain: str
    kind: SaidKind
    what: str
    times: tuple[TimeSpan, ...]
    importance: Importance = "medium"
    old: str = ""
    new: str = ""


_I = re.IGNORECASE
_LEAD = re.compile(
    r"^(?:(?:please )?(?:(?:(?:note|remember|keep in mind|be aware|know|fyi|update|correction|reminder|just so you know"
    r"|for the record)\b(?: (?:that|this)\b)?|by the way|btw|also|(?:big |good |bad |great |sad )?news|important|hey|hi"
    r"|hello|ok(?:ay)?"
    r"|so that|so|well|oh|and|p\.?s\.?|actually)\b)(?:\s*[:,!–—-]+\s*|\s+(?=i |i'|my |we |the |it |that |one)))+",
    _I,
)
_TASK = re.compile(
    r"^(?:\[ ?\]\s*)?(?:[\w .#'-]{3,40}:\s+(?=i |we ))?(?:(?:please )?(?:"
    r"(?:(?:still )?to do|todo|to-do|task|action item|next step)s?\s*[:–—-]\s*"
    r"|(?:(?:add|put) )?(?:a )?(?:todo|task|reminder) (?:to|:)\s*"
    r"|remind (?:me|user) (?:again )?(?:[\w ]{0,20}?)(?=to |about |that )(?:to |about |that )"
    r"|(?:don't|do not|mustn't|let me not|make sure i don't) (?:let me )?forget (?:to |that i (?:need|have) to |about )"
    r"|(?:i must |must )?(?:remember|make sure) to "
    r"|(?:and |but |so |now |then )?(?:i|we|user)(?:'ve| have| ve)? (?:still |also |really |just )*"
    r"(?:got to |needs? to |ha(?:ve|s) to |must |gotta |should |ought to |am supposed to |want to remember to )(?=\w)"
    r"|(?:still )?(?:need|have) to |must (?!have|be)|gotta ))(?P<what>.+)$",
    _I | re.S,
)
_REMINDER = re.compile(
    r"(?:please |and |so )*(?:(?:don't|do not) (?:let me )?forget(?: it| that| this)?|remind me(?: of (?:it"
    r"|that|this))?)[.! ]*",
    _I,
)
_WISH = re.compile(r"^(?:i|we)(?:'d| would)? (?:want|like|love|plan|have|need)(?:ed)? to ", _I)
_FORGET = re.compile(
    r"^(?:please |can you |could you |you can |now )*(?:forget|(?:delete|remove|erase|drop|cancel"
    r"|clear)(?= (?:my |the |that |this |all )?"
    r"(?:\w+ ){0,2}?(?:reminder|note|memory|memories|fact|entry|task|todo|what i (?:said|told))))\s+"
    r"(?!to )(?P<what>.+)$",
    _I | re.S,
)
_FORGET_LEAD = re.compile(
    r"^(?:about |that |what i (?:said|told you) about |everything (?:you know )?(?:about|on) |anything about "
    r"|(?:my |the |that |this |all )?(?:\w+ )?(?:reminder|note|memory|memories|fact|entry|task|todo)s? "
    r"(?:about |to |that |on |of |for )?)+",
    _I,
)
_AUX = r"(?:is|are|was|were|am|do|does|did|can|could|will|would|should|shall|have|has|had|must|might)(?:n't)?"
_QUESTION = re.compile(
    r"^(?:(?:and|but|so|ok|okay|then|hey|hi|please|now|quick question|question|wait|hm+|also|any idea|do "
    r"you (?:know|remember)|can you (?:tell me|remember)|so"
    r"|i (?:forget|forgot|can't remember|don't remember|need to know|want to know|wonder))[,:]? )*(?:"
    r"(?:who|what|where|when|why|how|which|whose|whom)(?:'s|'re|'d|'ll)\b"
    r"|(?:who|what|where|when|why|whose|whom|which|how)\b(?=.*\?)"
    r"|(?:who|which|whose|whom|why|what(?! an? )|how (?:many|much|long|old|often|far|big|tall|heavy|about))\b(?!.*:)"
    rf"|(?:where|when|how) {_AUX}\b(?!.*:)"
    r"|(?:do|does|did|is|are|was|were|have|has|had|can|could|will|would|should|am|isn't|don't|didn't|doesn't|haven't)"
    r" (?:i|we|you|he|she|they|it|there|this|that|anyone|someone)\b(?!.*:)"
    r"|(?:does|is|are|has) (?:the |my |our )?[\w'-]+ [\w'-]+(?!.*:)"
    r"|(?:tell|show|give|remind) me (?:what|when|where|who|which|why|how|about|of|all|the|my|everything)\b"
    rf"|(?:talk|walk|run|take) me through\b|how [a-z]+ {_AUX} (?:i|we|you|the|my|our)\b"
    r"|anything (?:i|we)\b(?!.*:)"
    r"|(?:list|show|find|look up|search(?: for)?|recall|summari[sz]e)(?: (?:all|me|my|the|our|every|open|what"
    r"|which))+\b)",
    _I,
)
_ASKED_LAST = re.compile(  # what is asked follows what it is about: "the cover, did I go with ochre or what"
    rf"[,–—-]\s+(?:(?:who|what|where|when|why|how|which)(?:'s|'re)?(?: [\w-]+){{0,2}} )?{_AUX}"
    r" (?:i|we|you|he|she|they|it|the|my|our)\b(?!.*[:;])|\bor (?:what|not)$",
    _I,
)
_DECISION = re.compile(
    r"\b(?:(?:we|i|they|team)(?:'ve| have|'re| are|'m| am)? (?:\w+ly |all |finally |just |now )?(?:decid(?:ed"
    r"|ing)|agreed|chose|picked|opted"
    r"|settled|resolved|ruled out|going with|going for|went with|going to go with|standardi[sz](?:ed|ing)"
    r"|committed to|voted)"
    r"|(?:decided|agreed|settled|opted) (?:to|on|that|against|for|we)|(?:the |our |my )?decision\b(?: is| was|:)"
    r"|we(?:'ll| will) (?:go with|use|stick with)|(?:picked|chose|chosen) .+ (?:over|instead of|rather than))",
    _I,
)
_SWITCH = re.compile(
    r"\b(?:we|team)(?:'ve| have|'re| are)? (?:\w+ly |now )?(?:switch(?:ed|ing)|migrat(?:ed|ing)|mov(?:ed|ing)"
    r"|replac(?:ed|ing)|dropp(?:ed|ing))\b.*\bbecause\b",
    _I,
)
_PREFERENCE = re.compile(
    r"\b(?:i|we|user|\w+)(?:'d| would)? (?:really |still |only |absolutely |also |don't |do not |doesn't "
    r"|never |no longer )*(?:like|love|adore|prefer|hate|dislike"
    r"|enjoy|detest|loathe|favou?r|can't stand|cannot stand|can't bear)s?\b(?! to know)|\b(?:favou?rite|rather"
    r"|fan of|can't stand)\b",
    _I,
)
_HOW_TO = re.compile(
    r"^(?:how (?:i |we |to |you )|to (?!do\b)|recipe|steps|instructions|procedure)[^.?!]*?(?::|,? (?:first|you (?:need"
    r"|have) to|run|do|use)\b)",
    _I,
)
_SEQUENCE = re.compile(
    r"\bfirst(?:ly)?,? (?!(?:of|time|thing|day|name|one|week|month|year)\b)[a-z]+ .{3,200}?"
    r"[,;.] (?:and )?then,? .{3,200}?[,;.] (?:(?:and )?(?:finally|lastly|after that)|and then),? ",
    _I | re.S,
)
_DONE = re.compile(
    r"\b(?:is|are|'s|all|that's|now|been|finally|already)\b[\w ]{0,12}\b(?:done|finished|completed?|sorted"
    r"|settled|paid|sent|submitted|booked|fixed|taken care of)\b"
    r"|^(?:i|we)?(?:'ve| have)? ?(?:just |already |finally |now )*(?:finish|complet|cancel|submitt|mail)ed\b"
    r"|^(?:i|we)(?:'ve| have) (?:just |already |finally |now )*(?:sent|paid|done|booked|called|ordered|bought"
    r"|made|written|fixed|signed|renewed)\b"
    r"|\b(?:done|finished) (?:with|it|that)\b|^done\b|\bcheck(?:ed)? off\b",
    _I,
)
_CHANGES = [
    re.compile(pattern, _I)
    for pattern in (
        r"\b(?:left|quit|leaving) (?P<old>[^,.;]+?) (?:for|to join) (?P<new>[^,.;]+)",
        r"\b(?:moved|moving|switched|switching|changed|changing|migrated|went|going|upgraded|transferred"
        r"|swapped|move|switch|change|migrate|transfer|migration|transition)\b[^.;]*?\bfrom (?P<old>[^,.;]+?) (?:to"
        r"|for) (?P<new>[^,.;]+)",
        r"\b(?:replaced?|replacing|swap|swapped|traded|exchanged?) (?P<old>[^,.;]+?) (?:with|for|by) (?P<new>[^,.;]+)",
        r"\b(?P<new>[^,.;]+?),? (?:and )?not (?:the |on |in |at )?(?P<old>[^,.;]+)$",
        r"\bnot (?P<old>[^,.;]+?)(?: anymore| any more)?,? but (?P<new>[^,.;]+)",
        r"\b(?P<new>[^,.;]+?) (?:instead of|rather than) (?P<old>[^,.;]+)",
        r"\b(?:no longer|stopped|quit|gave up|given up|used to) (?P<old>[^,.;]+?)(?: any ?more)?(?:,? (?:and "
        r"|but |i |they )*now (?P<new>[^.;]+)|[.,;!]|$)",
    )
]
_TRAILER = re.compile(r"\s+(?:because|since|so that|so|as|last|this|in \d|on|two|a few) .*$", _I)
_STRONG_CHANGE = re.compile(
    r"\b(?:any ?more|no longer|correction|gave up|given up|stopped|quit|switched|changed|replaced"
    r"|moved .*\bfrom)\b|^actually\b|, not (?:the )?\w+[.!]?$"
    r"|\bleft .* for\b",
    _I,
)
_SMALL_TALK = re.compile(
    r"^(?:(?:hi|hey|hello|yo|hiya|good (?:morning|evening|night|afternoon)|thanks?(?: you)?|thx|cheers"
    r"|ok(?:ay)?|cool|nice|great|awesome|lol|haha+"
    r"|yes|no|nope|yep|yeah|sure|right|perfect|wow|hm+|bye|goodbye|see you|welcome|no worries|never ?mind|got "
    r"it|sounds good|test(?:ing)?"
    r"|how are you|what's up|how's it going|so much|very much|a lot|again|there|everyone|buddy|all|for (?:the"
    r"|your|that)( \w+)?|that's (?:great|fine|it|all|nice|good)"
    r"|have a \w+ (?:day|one|evening|weekend)|talk (?:to you )?(?:soon|later)|later|soon|tomorrow|brainiac|it "
    r"was|that (?:was|is) \w+|i see|good|fine|job|work)[\s,.!?…:)\-]*)+$",
    _I,
)
_HIGH = re.compile(
    r"\b(?:must|crucial|critical(?:ly)?|essential|vital|never|allerg\w+|important(?:ly)?|urgent(?:ly)?"
    r"|emergency|deadline|absolutely|asap)\b",
    _I,
)
_LOW = re.compile(
    r"\b(?:maybe|perhaps|might|i think|i guess|kind of|sort of|probably|possibly|not sure|thinking (?:of"
    r"|about)|considering|could be|someday)\b",
    _I,
)


def statements_of(text: str, at: datetime) -> list[Said]:
    """Turn what a person typed into statements, one a sentence, in order.

    Args:
        text: A prompt or note.
        at: When it was written.

    Returns:
        Every sentence, questions and small talk included, so that callers choose by `kind`.
    """
    return list(_statements(text, at.replace(second=0, microsecond=0)))


@lru_cache(maxsize=4096)
def _statements(text: str, at: datetime) -> tuple[Said, ...]:
    text = own_words(text)
    parts = [text.strip()] if is_how_to(text) else _parts(text)
    said: list[Said] = []
    for one in (_said(part, at) for part in parts if part):
        if said and _REMINDER.fullmatch(one.plain) and said[-1].kind not in ("task", "question", "forget"):
            said[-1] = _as_task(said[-1])
        else:
            said.append(one)
    return tuple(said)


def _parts(text: str) -> list[str]:
    """Return the sentences; what is only the matter of an instruction stays with it."""
    paragraphs = re.split(r"\n[ \t]*\n", text)
    parts = ([one.strip()] if is_instruction(one) else split_sentences(one) for one in paragraphs)
    return [part for some in parts for part in some]


def _as_task(said: Said) -> Said:
    """Turn a wish into the task it is by "don't let me forget" right behind it."""
    what = _WISH.sub("", said.plain).rstrip(".! ")
    return replace(said, kind="task", what=what, text=_durable("task", what, said.plain))


def is_how_to(text: str) -> bool:
    """Tell whether a text is one recipe: a line that says what for, and the steps."""
    first, *rest = text.strip().splitlines() or [""]
    if _SEQUENCE.search(text) and not text.rstrip().endswith("?"):
        return True
    numbered = sum(bool(re.match(r"\s*\d+[.)]\s", line)) for line in rest)
    return bool(_HOW_TO.match(first) or numbered >= 2) and not first.rstrip().endswith("?")


def _said(sentence: str, at: datetime) -> Said:
    plain = standard_spelling(sentence)
    bare = _LEAD.sub("", plain) or plain
    kind, what = classify(bare, is_corrected=bare != plain and _STRONG_CHANGE.match(plain) is not None)
    old, new = _old_and_new(bare) if kind in ("change", "decision", "fact", "done") else ("", "")
    return Said(
        text=_durable(kind, what, bare),
        original=sentence,
        plain=plain,
        kind=kind,
        what=what,
        times=tuple(find_times(plain, at)),
        importance=importance_of(plain),
        old=old,
        new=new,
    )


def classify(sentence: str, *, is_corrected: bool = False) -> tuple[SaidKind, str]:
    """Tell what kind a sentence is, and its bare content.

    Args:
        sentence: Without leading words such as "by the way".
        is_corrected: It was announced as a correction.
    """
    if found := _FORGET.match(sentence):
        return "forget", _FORGET_LEAD.sub("", found["what"]).strip(" .!") or found["what"].strip(" .!")
    if is_how_to(sentence):
        return "how-to", sentence
    if is_instruction(sentence):
        return "question", sentence
    if sentence.rstrip(" \"')").endswith("?") or _QUESTION.match(sentence) or _ASKED_LAST.search(sentence):
        return "question", sentence
    if _SMALL_TALK.match(sentence) or len(words(sentence)) < 2:
        return "small-talk", sentence
    if found := _TASK.match(sentence):
        return "task", found["what"].strip().rstrip(".!")
    for kind, pattern in _BY_WORDING:
        if pattern.search(sentence):
            return kind, sentence
    return ("change" if is_corrected else "fact"), sentence


_BY_WORDING: tuple[tuple[SaidKind, re.Pattern[str]], ...] = (
    ("decision", _DECISION),
    ("decision", _SWITCH),
    ("change", _STRONG_CHANGE),
    ("done", _DONE),
    ("preference", _PREFERENCE),
)


def _durable(kind: SaidKind, what: str, bare: str) -> str:
    if kind == "task":
        is_reminder = re.match(r"(?:please )?(?:remind|reminder|don't|do not)", bare, _I)
        lead = "Remind User to " if is_reminder else "User needs to "
        return lead + in_third_person(what, is_continued=True)
    if kind == "forget":
        return "Forget " + in_third_person(what, is_continued=True)
    text = in_third_person(bare)
    return text[:1].upper() + text[1:]


def _old_and_new(sentence: str) -> tuple[str, str]:
    for pattern in _CHANGES:
        if found := pattern.search(sentence.rstrip(".!")):
            return _TRAILER.sub("", found["old"] or "").strip(), _TRAILER.sub("", found["new"] or "").strip()
    return "", ""


def importance_of(sentence: str) -> Importance:
    """Tell how much weight the wording gives a statement."""
    if _HIGH.search(sentence):
        return "high"
    return "low" if _LOW.search(sentence) else "medium"
