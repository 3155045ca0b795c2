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


def is_supposed(text: str) -> bool:
    """Tell whether a clause says what may, would or will be rather than what is: `User might move to Berlin`."""
    opening = text[:1].lower() + text[1:]  # the month of May is written with a capital wherever it stands
    return bool(_SUPPOSED.search(opening.replace("’", "'")))
