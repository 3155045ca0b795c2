"""The forms that questions take: what kind of answer each asks for, and which lists there are to ask for."""

from __future__ import annotations

import re
from typing import Literal

Expected = Literal[
    "date",
    "duration",
    "number",
    "money",
    "age",
    "person",
    "place",
    "reason",
    "steps",
    "name",
    "surname",
    "phone",
    "email",
    "breed",
    "brand",
    "color",
    "profession",
    "weekday",
    "statement",
    "yes-no",
]
Listing = Literal["tasks", "done", "decisions", "goals", "events", "about"]

_I = re.IGNORECASE
LISTINGS: tuple[tuple[Listing, re.Pattern[str]], ...] = (
    (
        "done",
        re.compile(
            r"\b(?:(?:what|which|list|show).*(?:have|did) (?:i|we) (?:\w+ )?(?:finish(?:ed)?|complete[d]?|get "
            r"done|gotten done|got done|done so far|ticked? off|accomplish(?:ed)?)|(?:finished|completed"
            r"|done) (?:tasks?|todos?|items?))\b",
            _I,
        ),
    ),
    (
        "tasks",
        re.compile(
            r"\b(?:tasks?|to-?dos?|to do list|reminders|open items|action items|outstanding|(?:still )?(?:need"
            r"|have|got|supposed|want|left|ought) to (?:do|get done|take care of)"
            r"|left to \w+|(?:anything|something|what|else) (?:is )?(?:still )?to (?:do|prepare|sort|arrange"
            r"|organi[sz]e|buy|finish|book|pay)|on my (?:list|plate)|should i (?:do|be doing)"
            r"|remind(?:ed)? (?:me|you) (?:to do|of))\b"
            r"|\bwhat (?:should|must) i\b|\b(?:what do|do|is there \w+) (?:i )?(?:still )?(?:have|need) to\b"
            r"|\bwhat (?:do|must|should) i (?:still )?(?:have to|need to|must)?\b(?: still)? ?(?:buy|get|send|call"
            r"|book|order|pay|finish|do)\b(?=.*\bstill\b)|\bwhat else (?:do|is there)\b.*\bdo\b",
            _I,
        ),
    ),
    (
        "decisions",
        re.compile(
            r"\bdecisions?\b|\b(?:what|which)\b.*?(?:'ve|\b(?:did|have|has)) (?:we|i|the team"
            r"|they) (?:\w+ )?(?:decided?|agreed?|settled?)\b|\bwhat (?:was|has been|were|got) (?:decided"
            r"|agreed|settled)\b",
            _I,
        ),
    ),
    ("goals", re.compile(r"\b(?:my|our|the|current|open) (?:\w+ )?goals?\b", _I)),
    (
        "about",
        re.compile(
            r"^(?:\w+,? )?(?:(?:what|anything|everything) (?:(?:do|did|have) )?(?:you|we|i) (?:know|remember"
            r"|have|tell you|told you|say|said|mention(?:ed)?|noted?) (?:about|on|of|regarding|concerning)"
            r"|tell me (?:\w+ )?about|what's (?:known|up) (?:about|with)|what about|everything (?:about|on)"
            r"|(?:summari[sz]e|list|show)(?: me)? (?:what|everything|all)\b.*?(?:about|on|of))\b",
            _I,
        ),
    ),
    (
        "events",
        re.compile(
            r"\bwhat(?: all| else)? (?:happened|(?:did|have) (?:i|we) (?:do|done|been doing|been up to|get up "
            r"to|tell you|say|said|mention|note|write)|went on|was going on|was up|have i been up to)\b",
            _I,
        ),
    ),
)
EXPECTED: tuple[tuple[Expected, re.Pattern[str]], ...] = (
    (
        "reason",
        re.compile(
            r"^(?:\w+ )?why\b|\bwhat (?:was|is|were) (?:the|my|our) reasons?\b|\bfor what reason\b"
            r"|\b(?:root )?causes? of\b|\bwhat caused\b|\bhow come\b",
            _I,
        ),
    ),
    ("surname", re.compile(r"\b(?:last|sur|family|full) ?names?\b", _I)),
    (
        "phone",
        re.compile(
            r"\b(?:phone|mobile|cell|telephone)(?: number)?\b(?=.*\bnumber\b)|\b(?:phone|mobile|cell|telephone) number",
            _I,
        ),
    ),
    ("breed", re.compile(r"\b(?:what|which) breed\b|\bbreed (?:is|of)\b", _I)),
    ("brand", re.compile(r"\b(?:what|which) (?:make|brand|model)\b", _I)),
    ("email", re.compile(r"\be-?mail address", _I)),
    ("age", re.compile(r"\bhow old\b|\bwhat age\b|\bage of\b|'s age\b|\bmy age\b", _I)),
    (
        "weekday",
        re.compile(
            r"\b(?:which|what) (?:day of the week|weekday|days)\b|\b(?:which|what) day (?:do|does|is|are)\b", _I
        ),
    ),
    (
        "date",
        re.compile(
            r"^(?!(?:how|what|who|which|why|where)\b[^,]*\bwhen\b).*\bwhen\b(?! i | we |ever)|\b(?:what"
            r"|which) (?:date|time|year|month|day)\b|\bhow long ago\b|\bsince "
            r"when\b|\bdates?\b(?= of|\?|$| for)|\bdeadline\b|\bdue\b",
            _I,
        ),
    ),
    (
        "duration",
        re.compile(
            r"\bhow long\b|\bhow many (?:years|months|weeks|days|hours|minutes|seconds)\b|\bhow much time\b", _I
        ),
    ),
    (
        "money",
        re.compile(
            r"\bhow much (?:money|cash)\b|\bhow (?:much|expensive)\b.*\b(?:cost|pay|paid|spend|spent|charge|price"
            r"|worth|sell|sold|earn|owe|rent|save|bill|fee)\w*"
            r"|\bhow much (?:\w+ ){1,3}(?:want|ask|get|quote|charge|go|sell)(?:ing|ed|s)? for\b|\bwhat (?:did"
            r"|does|do) .*\b(?:go|sell) for\b"
            r"|\bwhat(?: (?:did|does|do|will|would|was|is|were|are)|'s|'re)\b.*\b(?:cost|price|pay|charge"
            r"|charging|earn|earning|paying|rent|salary|wage|fee"
            r"|bill)s?\b|\bhow much (?:was|is|were|are|did|does) (?:the|my|our|a|it)\b",
            _I,
        ),
    ),
    (
        "number",
        re.compile(
            r"\bhow (?:many|much|big|large|small|tall|wide|deep|heavy|far|high|often|fast|strong)\b|\b(?:what"
            r"|which) (?:percentage|amount|quantity|size|throughput|rate|speed|temperature|dose)\b|\bwhat(?:'s"
            r"| is| was) (?:the|my"
            r"|our) (?:\w+ )?(?:number|amount|count|total|score|percentage)\b",
            _I,
        ),
    ),
    ("color", re.compile(r"\b(?:what|which) colou?rs?\b|\bcolou?r (?:is|was|of)\b", _I)),
    (
        "profession",
        re.compile(
            r"\b(?:for (?:a living|work)|'s (?:job|role|position|title)\b|profession|occupation|job title"
            r"|what (?:is|was) \w+(?:'s)? (?:\w+'s )?job)\b",
            _I,
        ),
    ),
    (
        "person",
        re.compile(
            r"^(?:\w+,? )?(?:with |to |from |for |by )?(?:who|whom|whose)\b|\b(?:with|to|from|for|by) whom\b"
            r"|\bwhich (?:person|colleague|friend|doctor)\b",
            _I,
        ),
    ),
    (
        "place",
        re.compile(r"\bwhere\b|\b(?:what|which) (?:city|town|country|place|street|address|room|state|village)\b", _I),
    ),
    ("name", re.compile(r"\bnames?\b|\bcalled\b", _I)),
    (
        "steps",
        re.compile(
            r"\bhow (?:do|does|can|should|did|would|to|must) ?(?:i|we|you|one)?\b|\bwhat are the steps\b"
            r"|\b(?:steps|instructions|recipe|procedure) (?:to|for|of)\b",
            _I,
        ),
    ),
    (
        "yes-no",
        re.compile(
            r"^(?:(?:and|but|so|also|then),? )?(?:do|does|did|is|are|was|were|am|have|has|had|can|could|will"
            r"|would|should|isn't|aren't|don't|didn't|doesn't)\b",
            _I,
        ),
    ),
)
OPERATORS = {  # words that the expected kind already stands for
    "date": "date time year month day when ago deadline due happen take place",
    "weekday": "day week weekday days",
    "duration": "long year month week day hour minute time take last second",
    "number": "many much number amount count total often large big small high percentage quantity",
    "money": "much money expensive cost price pay spend charge worth buy total",
    "age": "old age",
    "name": "name call",
    "surname": "last name surname family full",
    "reason": "reason come",
    "person": "person",
    "place": "place",
    "color": "color colour",
    "profession": "living work profession occupation job title role position",
    "brand": "make brand model",
    "breed": "breed",
    "steps": "step instruction procedure recipe way",
}
LIST_WORDS = {
    "tasks": "task todo to-do list reminder open item action outstanding do left get done plate still need remind",
    "done": "task todo item finish complete done get so far tick accomplish",
    "decisions": "decision decide agree settle make choose far",
    "goals": "goal current open",
    "about": "know remember tell say mention note summarize list show everything anything",
    "events": "happen do go get tell say mention note write been",
}
