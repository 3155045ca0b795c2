"""Vectors by content: kept, never made twice, and no search without an answer when there are none."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from brainiac.recall import Recall
from brainiac.recall.embed import EmbedderError, Matrix, make_embedder, unit_norm
from brainiac.recall.units import Page, Unit
from brainiac.recall.vectors import VectorFile, Vectors
from brainiac.settings import RecallSettings, Settings
from brainiac.tree import LocalPlaces, Tree


class HashEmbedder:
    """A real embedder of little sense: one direction a word."""

    name = "hash/1"

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the sum of the words' directions."""
        self.embedded += texts
        return unit_norm(np.array([sum(map(self._direction, text.lower().split())) for text in texts]))

    @staticmethod
    def _direction(word: str) -> np.ndarray:
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
        return np.random.default_rng(seed).normal(size=32)


def test_a_vector_is_made_once(tmp_path: Path) -> None:
    """Neither a move, nor another page with the same words, nor a restart embeds a text again."""
    embedder = HashEmbedder()
    page = Page("a.md", "A", (Unit("green tea"), Unit("black tea")))
    Vectors(tmp_path, embedder).take_in(page)
    Vectors(tmp_path, embedder).take_in(Page("moved.md", "B", (*page.units, Unit("coffee"))))
    assert ["green tea", "black tea", "coffee"] == embedder.embedded


def test_nearest_page(tmp_path: Path) -> None:
    """The page with the words nearest in meaning comes first."""
    vectors = Vectors(tmp_path, HashEmbedder())
    for name, text in (("a", "green tea in the morning"), ("b", "boats on the lake")):
        vectors.take_in(Page(f"{name}.md", name, (Unit(text),)))
    assert "b.md" == vectors.nearest("boats")[0]


def test_a_torn_row_is_left_out(tmp_path: Path) -> None:
    """A file cut short keeps its whole rows and takes new ones."""
    file = VectorFile(tmp_path, "m")
    file.add([1, 2], unit_norm(np.eye(2, 4)))
    path = tmp_path / "m.f16"
    path.write_bytes(path.read_bytes()[:-3])
    file = VectorFile(tmp_path, "m")
    assert [2] == file.missing([1, 2])
    file.add([2], unit_norm(np.eye(1, 4)))
    assert [] == VectorFile(tmp_path, "m").missing([1, 2])


@pytest.mark.parametrize("setting", ["unheard-of", "./not-a-folder"])
def test_a_wrong_setting_is_explained(setting: str) -> None:
    """An embedder that is not to be had is an error that names the setting."""
    with pytest.raises(EmbedderError, match=r"recall\.embedder"):
        make_embedder(setting)


def test_a_broken_embedder_leaves_the_words(tmp_path: Path) -> None:
    """With a broken model the search answers by words, and status says why."""
    (tmp_path / "model").mkdir()
    page = tmp_path / "brain" / "memory" / "long_term" / "tea.md"
    page.parent.mkdir(parents=True)
    page.write_text("# Tea\n\n- User drinks oolong. ^a\n", "utf-8")
    settings = Settings(recall=RecallSettings(embedder=str(tmp_path / "model")))
    recall = Recall(Tree(tmp_path / "brain"), LocalPlaces.of(tmp_path / "brain", "t"), settings)
    assert ["User drinks oolong."] == [hit.text for hit in recall.search("oolong")]
    assert "model.onnx" in recall.status()["embedder"]["problem"]
    recall.close()
