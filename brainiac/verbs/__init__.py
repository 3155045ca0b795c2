"""The eight verbs that commands and doors share: search, fetch, briefing, list, why, remember, ask and suggest.

A door is a program that reaches the memory for somebody: an assistant's tools, a browser, another program. It gets
nothing that is private or off the record, not in a result, an error or a count. What it gets is quoted as data,
limited in tokens, and continued by a cursor. No verb deletes or moves a file; the only file that one changes is a
prompt which its own client words anew.
"""

from brainiac.verbs.reading import (
    MAX_RESULT_TOKENS,
    PERSON,
    RESULT_TOKENS,
    SCHEME,
    Briefing,
    Caller,
    Entry,
    Listing,
    Match,
    Matches,
    Page,
    Reason,
    briefing,
    fetch,
    list_folder,
    search,
    why,
)
from brainiac.verbs.writing import Asked, Change, Remembered, Suggested, answer, ask, remember, save_prompt, suggest

__all__ = [
    "MAX_RESULT_TOKENS",
    "PERSON",
    "RESULT_TOKENS",
    "SCHEME",
    "Asked",
    "Briefing",
    "Caller",
    "Change",
    "Entry",
    "Listing",
    "Match",
    "Matches",
    "Page",
    "Reason",
    "Remembered",
    "Suggested",
    "answer",
    "ask",
    "briefing",
    "fetch",
    "list_folder",
    "remember",
    "save_prompt",
    "search",
    "suggest",
    "why",
]
