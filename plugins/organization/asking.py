"""Putting before a person what a process may not do by itself: each once, for as long as its pages are as they were."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from brainiac.events import ProposalExpired, content_hash
from brainiac.formats.discretion import is_private_note
from brainiac.storage.review import Proposal

from .catalog import Catalog
from .judging import Action
from .past import Past

_SHOWN = 5
_WORDS = {"archive": "Archive", "compress": "Archive, with a digest in {target},", "move": "Move to {target}"}


def new_proposals(catalog: Catalog, past: Past, actions: Iterable[Action]) -> list[Proposal]:
    """Return proposals for actions; a page that was put before the person as it stands is not put there again.

    Args:
        catalog: The pages.
        past: What was proposed before.
        actions: What needs a person's word.
    """
    asked = {
        (proposal["action"], uuid, digest)
        for name, proposal in past.proposals.items()
        if "action" in proposal and past.decided.get(name) != ProposalExpired.kind
        for uuid, _, digest in proposal["pages"]
    }
    return [proposal for action in actions for proposal in _proposal(catalog, action, asked)]


def _proposal(catalog: Catalog, action: Action, asked: set[tuple[str, str, str]]) -> Iterator[Proposal]:
    pages = [(catalog.uuids[path], path, _digest(catalog.texts[path])) for path in action.paths]
    pages = [page for page in pages if (action.kind, page[0], page[2]) not in asked]
    if not pages:
        return
    identity = hashlib.sha256(repr((action.kind, action.target, sorted(pages))).encode("utf-8", "surrogatepass"))
    verb = _WORDS.get(action.kind, "Move to {target}").format(target=f"`{action.target}`")
    names = ", ".join(f"`{path}`" for _, path, _ in pages[:_SHOWN])
    more = f" and {len(pages) - _SHOWN} more" if len(pages) > _SHOWN else ""
    what = f"{verb} {names}{more}" + (f" ({action.reason})" if action.reason else "")
    data = {"action": action.kind, "pages": [list(page) for page in pages], "target": action.target}
    is_hidden = any(is_private_note(catalog.texts.get(path, "")) for path in action.paths)
    yield Proposal(identity.hexdigest()[:16], what, data, is_hidden)


def _digest(text: str) -> str:
    return content_hash(text.encode("utf-8", "surrogateescape"))
