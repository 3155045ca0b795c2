"""What is only supposed, wished or planned: it may come, it is not so, and it ends nothing that is."""

from __future__ import annotations

import re

_POLITE = r"(?! (?:rather|prefer)\b)"  # "would rather" tells what is preferred now
_SUPPOSED = re.compile(
    rf"\b(?:might|may(?! \d)|could|would{_POLITE}|'d (?:like|love)|will|'ll|shall"
    r"|(?:is|are|am|'s|'re|'m) (?:\w+ly )?going to"
    r"|(?:want|hope|intend|wish|aim|expect|dream|plan|consider|think|toy)(?:s|es|ed|ing|ning|ned)? "
    r"(?:to|of|about|on|with)(?= |$)"
    r"|(?:plan(?:ning|s)?|consider(?:ing|s)?) (?:an?\b|\w+ing\b)|maybe|perhaps)\b"
    r"|^(?:(?:but|and|so) )?(?:if|unless|in case|suppos(?:e|ing))\b"
)
_ASIDE = re.compile(r"(?<!^)\b(?:because|since|although|though|so that|which|who|whose|until|before|after)\b")


def is_supposed(text: str) -> bool:
    """Tell whether a clause says what may, would or will be rather than what is: `User might move to Berlin`."""
    main = _ASIDE.split(text.replace("’", "'"), maxsplit=1)[0]  # a reason may be a wish, what it is given for is not
    return bool(_SUPPOSED.search(main[:1].lower() + main[1:]))  # the month of May keeps its capital


def is_contrary(text: str) -> bool:
    """Tell whether a sentence tells what would be if something were: `If I lived in Paris I would paint`."""
    words = set(re.findall(r"[a-z']+", text.replace("’", "'").lower()))
    return "if" in words and not words.isdisjoint({"would", "could", "might", "i'd", "we'd", "he'd", "she'd", "they'd"})
