"""Exchanges that are not quoted: the page they led to was deleted, and nobody has said yet what is meant."""

from __future__ import annotations

from dataclasses import dataclass, field

from brainiac.events import Event, ForgettingProposed, ProposalEvent, kinds_of
from brainiac.storage.following import Following
from brainiac.storage.store import Store


@dataclass(slots=True)
class _Asked:
    """Which deleted pages are asked about: identity, former path and exchanges of each, by proposal."""

    pages: dict[str, str] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    exchanges: dict[str, tuple[str, ...]] = field(default_factory=dict)


def _take_asked(store: Store, asked: _Asked, event: Event, is_own: bool) -> None:
    for proposal in event.data.get("proposals", ()):
        if proposal.get("deleted"):
            asked.pages[proposal["id"]], asked.paths[proposal["id"]] = proposal["deleted"], proposal["path"]
            asked.exchanges[proposal["id"]] = tuple(proposal["exchanges"])
    asked.exchanges.pop(str(event.data.get("proposal")), None)


_ASKED = Following(
    lambda store: _Asked(),
    _take_asked,
    kinds_of(ForgettingProposed, ProposalEvent),
)


def pending(store: Store) -> dict[str, tuple[str, ...]]:
    asked = _ASKED.of(store)
    gone = {name: not store.tree.absolute(path).exists() for name, path in asked.paths.items()}  # it may be put back
    return {asked.pages[name]: exchanges for name, exchanges in asked.exchanges.items() if gone[name]}


def muted(store: Store) -> frozenset[str]:
    """Return the exchanges that are not to be quoted: the page they led to was deleted, and nobody has said yet."""
    return frozenset(exchange for exchanges in pending(store).values() for exchange in exchanges)
