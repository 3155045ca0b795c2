"""An index of a plugin: a small one held in memory does all that the embedded one does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from brainiac import hookimpl
from brainiac.brain import Brain
from brainiac.search.conformance import CHECKS
from brainiac.search.features import EncodedPage
from brainiac.search.index import Asked, Candidates, Index
from brainiac.search.links import LinkedPage
from brainiac.testing import make_brain

GARDEN = "memory/long_term/concrete/garden.md"


class MemoryIndex:
    """An index that a process keeps for itself; every passage is looked at."""

    def __init__(self) -> None:
        self._given: dict[str, EncodedPage | None] = {}
        self._pages: dict[str, EncodedPage] = {}
        self._words: dict[str, str] = {}

    def is_writable(self) -> bool:
        """Nobody else has it."""
        return True

    def replace(self, pages: Iterable[EncodedPage]) -> None:
        """Keep pages for the next commit."""
        self._given |= {page.page.path: page for page in pages}

    def remove(self, paths: Iterable[str]) -> None:
        """Leave paths out from the next commit on."""
        self._given |= dict.fromkeys(paths)

    def commit(self) -> None:
        """Show what was given."""
        merged = {**self._pages, **self._given}
        self._pages, self._given = {path: page for path, page in merged.items() if page}, {}

    def query(self, asked: Asked) -> Candidates:
        """Score passages by the idf of the terms in them."""
        pages = [page for page in self._pages.values() if asked.narrowing is None or asked.narrowing.allows(page)]
        passages = [(page, set(passage.split())) for page in pages for passage in page.passages]
        frequencies = {term: sum(term in words for _, words in passages) for term in asked.terms}
        weights = {term: math.log(1 + len(passages) / max(count, 1)) for term, count in frequencies.items()}
        weights |= {other: weights[term] * like for other, (term, like) in asked.variants.items() if term in weights}
        scored = [
            (sum(weight for term, weight in weights.items() if term in words), page)
            for page, words in passages
            if words.issuperset(asked.required) and (not asked.terms or asked.required or not words.isdisjoint(weights))
        ]
        newest_first = sorted(scored, key=lambda each: each[1].days[1], reverse=True)
        best = sorted(newest_first, key=lambda each: -each[0])[: asked.limit]
        return Candidates(list({page.page.path: page for _, page in best}.values()), frequencies, len(passages))

    def add_words(self, words: Iterable[tuple[str, str]]) -> None:
        """Keep words."""
        self._words |= dict(words)

    def words(self) -> Iterable[tuple[str, str]]:
        """Return the words."""
        return self._words.items()

    def pages(self, targets: Iterable[str]) -> list[EncodedPage]:
        """Look pages up."""
        wanted = set(targets)
        return [page for page in self._pages.values() if {page.page.path, page.page.uuid} & wanted]

    def stamps(self) -> Mapping[str, tuple[int, int]]:
        """Return when each page was read."""
        return {path: page.stamp for path, page in self._pages.items()}

    def contents(self) -> Iterable[tuple[str, bytes]]:
        """Yield content hashes."""
        return [(path, page.content) for path, page in self._pages.items()]

    def inbound(self, targets: Sequence[str]) -> Mapping[str, int]:
        """Count links."""
        linked = [{link.target for link in page.page.links} for page in self._pages.values()]
        return {target: sum(target in links for links in linked) for target in targets}

    def linked(self) -> Iterable[LinkedPage]:
        """Yield every page with its links."""
        for page in (encoded.page for encoded in self._pages.values()):
            yield LinkedPage(page.path, page.uuid, page.title, page.at, page.links)

    def status(self) -> dict[str, Any]:
        """Name the engine."""
        return {"engine": "in-memory", "pages": len(self._pages), "bytes": 0}

    def close(self) -> None:
        """Drop what was not committed."""
        self._given = {}


class Plugin:
    """What a person's plugin file would hold."""

    @hookimpl
    def register_indexes(self, register: Callable[[str, Callable[[Brain], Index]], None]) -> None:
        """Offer the index."""
        register("in-memory", lambda brain: MemoryIndex())


@pytest.fixture
def brain(tmp_path: Path) -> Iterator[Brain]:
    """Give a brain with one memory that asks for the plugin's index."""
    opened = make_brain(tmp_path / "brain")
    with open(opened.tree.config, "a", encoding="utf-8") as config:
        config.write("\nrecall:\n  index: in-memory\n  embedder: none\n")
    (opened.root / GARDEN).parent.mkdir(parents=True, exist_ok=True)
    (opened.root / GARDEN).write_text("# Garden\n\n- User grows tomatoes. ^a1\n", "utf-8")
    yield opened
    opened.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conformance(check: Callable[[Index], None]) -> None:
    """The suite asks for nothing that only the embedded index could do."""
    check(MemoryIndex())


def test_registered_index_serves_by_its_name(brain: Brain) -> None:
    """The index that `register_indexes` adds under the name in `recall.index` takes the pages in and answers."""
    brain.plugins.register(Plugin(), "memorizing")
    count = brain.recall.reindex()
    status = brain.recall.status()
    assert ("in-memory", count, "", 0) == tuple(
        status[key] for key in ("engine", "pages", "problem", "not_yet_indexed")
    )
    assert [(GARDEN, "a1")] == [(hit.path, hit.anchor) for hit in brain.recall.search("tomatoes")]


def test_reindexing_leaves_out_what_is_gone(brain: Brain) -> None:
    """A page of another engine whose file is gone does not outlast a rebuild."""
    kept = MemoryIndex()

    class Keeping:
        @hookimpl
        def register_indexes(self, register: Callable[[str, Callable[[Brain], Index]], None]) -> None:
            register("in-memory", lambda brain: kept)

    brain.plugins.register(Keeping(), "keeping")
    brain.recall.reindex()
    (brain.root / GARDEN).unlink()
    brain.recall.reindex()
    assert GARDEN not in kept.stamps()


def test_without_its_plugin_files_are_scanned(brain: Brain) -> None:
    """Where no plugin registers the name nothing is missed, and status says what to do."""
    assert [(GARDEN, "a1")] == [(hit.path, hit.anchor) for hit in brain.recall.search("tomatoes")]
    assert "no plugin registers `in-memory`" in brain.recall.status()["problem"]
