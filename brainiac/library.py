"""`Library`: a store with search and with queries on answered prompts, as models, context and gate need it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from brainiac.clock import iso
from brainiac.errors import FormatError
from brainiac.formats.prompt import Prompt, parse_prompt, response_path
from brainiac.storage.said import MAX_RESPONSES, Answered
from brainiac.storage.store import Store
from brainiac.tree import MAX_NAME_BYTES, is_too_long

# with it comes numpy, and few commands search
if TYPE_CHECKING:
    from brainiac.search.search import Recall

RECENT_DAYS = 7  # a device that answered nothing for so long does not keep another from answering
ELDER_SECONDS = 2.0


class Library(Store, ABC):
    """A store with its index of exchanges and its search."""

    _elder, _elder_found_at = "", float("-inf")  # the last result of `_find_elder`, and when (monotonic)

    @cached_property
    def answered(self) -> Answered:
        """Which prompts have been answered, and by which file."""
        return Answered(self)

    @property
    @abstractmethod
    def recall(self) -> Recall:
        """Search."""

    def _elder_device(self) -> str:
        """Return the device that is to run the processes where several do and no setting names one; "" for this one."""
        now = self.clock.monotonic()
        if now - self._elder_found_at >= ELDER_SECONDS:
            self._elder = self._find_elder() if self.journal.foreign_sizes() else ""
            self._elder_found_at = now
        return self._elder

    def _find_elder(self) -> str:
        """Return the device whose first answer is the oldest, which all devices see alike in the journals; "" for this.

        Others count only if they answered lately, and in the same period as this one: a device that ended before this
        one began was replaced by it.
        """
        self.projection.follow()
        rows = self.projection.query("SELECT device, min(event), max(event), max(at) FROM exchanges GROUP BY device")
        answers = {device: (first, last, last_at) for device, first, last, last_at in rows}
        first, last, _ = answers.pop(self.journal.device, ("", "", ""))
        if not first:
            return ""
        since = iso(self.clock.now() - timedelta(days=RECENT_DAYS))
        this_device = ""
        candidates = [(first, this_device)]
        for device, (other_first, other_last, other_last_at) in answers.items():
            is_same_period = other_last > first and last > other_first
            if other_last_at >= since and is_same_period:
                candidates.append((other_first, device))
        _, elder = min(candidates)
        return elder


def read_prompt(library: Library, path: str) -> Prompt | None:
    """Return the prompt or note at a path; None when it is deleted, blank or a draft.

    Raises:
        FormatError: It is too large, unreadable, not UTF-8, its front matter is broken, or its name is so long that
            its response could have none.
    """
    if is_too_long(response_path(path, MAX_RESPONSES)):
        most = MAX_NAME_BYTES - len(response_path(path, MAX_RESPONSES)) + len(path)
        raise FormatError(path, f"its name leaves no room for the response's; shorten it to {most} bytes")
    limit = library.settings.inbox.max_bytes
    try:
        # looked at before it is read: a file of gigabytes must not fill memory
        if os.lstat(library.tree.absolute(path)).st_size > limit:
            raise FormatError(path, f"larger than {limit:,} bytes (inbox.max_bytes); split it, or raise the limit")
        raw = library.read(path)
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise FormatError(path, f"cannot be read ({error.strerror}); check its permissions") from error
    if raw is None:
        return None
    prompt = parse_prompt(path, raw, at=iso(library.clock.now()), inbox=library.tree.layout.inbox)
    if (former := library.answered.of(path)) is not None:  # a file may lower its origin, never raise it
        prompt = prompt.of_author(former.origin, former.author)
    return None if prompt.is_draft or not prompt.text.strip() else prompt
