"""SQLite FTS5 and tantivy on the same passages and questions: build, update, query, size, memory, installed size.

    python benchmarks/recall_engines.py [--memories 100000]

Each engine runs in a process of its own on what the product gives its index: passages of stems. Times are CPU time
of all threads, so that a busy machine changes them little. Ends with one line of JSON.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

import tantivy

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks.recall_scale import read_all, write_brain
from brainiac.search.pages import Unindexed, searched_files
from brainiac.search.text import Analyzer
from brainiac.tree import Tree

LIMIT = 128
UPDATES = 100
BATCH = 4000
ENOUGH_TERMS, RARE_SHARE = 4, 50  # as the product's engine chooses the words it asks for


class Engine(Protocol):
    """Passages by number."""

    def add(self, passages: Sequence[tuple[int, str]]) -> None:
        """Put passages in, each in place of what stood under its number, durably."""

    def frequency(self, term: str) -> int:
        """Return in how many passages a term stands."""

    def find(self, terms: Sequence[str]) -> list[int]:
        """Return the best passages that hold any of the terms."""


class Fts5:
    """As it comes, ordered by bm25; without its content it could not replace a passage (SQLite before 3.43)."""

    def __init__(self, folder: Path) -> None:
        self._db = sqlite3.connect(folder / "fts5.db", isolation_level=None)
        self._db.execute("pragma journal_mode = wal")
        self._db.execute("pragma synchronous = normal")
        options = "text, tokenize=\"unicode61 tokenchars '#@-'\""
        self._db.execute(f"create virtual table if not exists passages using fts5({options})")
        self._db.execute("create virtual table if not exists terms using fts5vocab(passages, row)")

    def add(self, passages: Sequence[tuple[int, str]]) -> None:
        """See `Engine`."""
        self._db.execute("begin")
        self._db.executemany("insert or replace into passages (rowid, text) values (?, ?)", passages)
        self._db.execute("commit")

    def frequency(self, term: str) -> int:
        """See `Engine`."""
        found = self._db.execute("select doc from terms where term = ?", (term,)).fetchone()
        return found[0] if found else 0

    def find(self, terms: Sequence[str]) -> list[int]:
        """See `Engine`."""
        asked = " OR ".join(f'"{term}"' for term in terms)
        found = self._db.execute(
            "select rowid from passages where passages match ? order by rank limit ?", (asked, LIMIT)
        )
        return [row[0] for row in found]


class Tantivy:
    """Scored by the idf of the words found, as in the product."""

    def __init__(self, folder: Path) -> None:
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
        schema.add_integer_field("number", indexed=True, fast=True)
        self._schema = schema.build()
        (folder / "tantivy").mkdir()
        self._index = tantivy.Index(self._schema, path=str(folder / "tantivy"))
        split = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
        self._index.register_tokenizer("whitespace", split)
        self._writer = self._index.writer(48_000_000, 1)
        self._is_filled = False

    def add(self, passages: Sequence[tuple[int, str]]) -> None:
        """See `Engine`."""
        for number, passage in passages:
            if self._is_filled:
                self._writer.delete_documents_by_term("number", number)
            document = tantivy.Document()
            document.add_text("text", passage)
            document.add_integer("number", number)
            self._writer.add_document(document)
        self._writer.commit()
        self._index.reload()

    def filled(self) -> None:
        """From now on a number may stand there already."""
        self._writer.wait_merging_threads()
        self._writer = self._index.writer(48_000_000, 1)
        self._is_filled = True

    def frequency(self, term: str) -> int:
        """See `Engine`."""
        return self._index.searcher().doc_freq("text", term)

    def find(self, terms: Sequence[str]) -> list[int]:
        """See `Engine`."""
        searcher, parts = self._index.searcher(), []
        for term in terms:
            idf = math.log(1 + searcher.num_docs / (searcher.doc_freq("text", term) + 0.5))
            plain = tantivy.Query.const_score_query(tantivy.Query.term_query(self._schema, "text", term, "freq"), 1.0)
            parts.append((tantivy.Occur.Should, tantivy.Query.boost_query(plain, idf)))
        found = searcher.search(tantivy.Query.boolean_query(parts), LIMIT, count=False).hits
        return [int(n) for n in searcher.fast_field_values("number", [address for _, address in found])]


def rarest(engine: Engine, terms: Sequence[str], total: int) -> list[str]:
    """Return the words that choose the candidates."""
    known = sorted((engine.frequency(term), term) for term in terms)
    return [term for place, (n, term) in enumerate(known) if place < ENOUGH_TERMS or n <= total / RARE_SHARE]


def cpu(action: object, *arguments: object) -> float:
    """Return the CPU seconds of all threads that a call takes."""
    start = time.process_time()
    action(*arguments)  # type: ignore[operator]
    return time.process_time() - start


def peak_mb() -> float:
    """Return the peak resident memory of this process since it started; `getrusage` would give the parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def quantiles(seconds: Sequence[float]) -> list[float]:
    """Return p50 and p95 in ms."""
    ordered = sorted(seconds)
    return [round(ordered[int(len(ordered) * share)] * 1000, 2) for share in (0.5, 0.95)]


def measure(name: str, folder: Path) -> dict[str, object]:
    """Measure one engine on the prepared passages."""
    queries = json.loads((folder / "queries.json").read_text("utf-8"))
    before = peak_mb()
    engine: Engine = Tantivy(folder) if name == "tantivy" else Fts5(folder)
    started, wall = time.process_time(), time.perf_counter()
    total, sample = 0, []
    with open(folder / "passages.txt", encoding="utf-8") as file:
        numbered = enumerate(line.rstrip("\n") for line in file)
        while batch := list(islice(numbered, BATCH)):
            engine.add(batch)
            total += len(batch)
            sample += batch[:1]
    if isinstance(engine, Tantivy):
        engine.filled()
    result: dict[str, object] = {"build_cpu_s": round(time.process_time() - started, 2)}
    result |= {"build_wall_s": round(time.perf_counter() - wall, 2)}
    result["bytes_mb"] = round(
        sum(f.stat().st_size for f in folder.rglob("*") if f.is_file() and name in str(f)) / 1e6, 1
    )
    for label, choose in (("all", lambda terms: terms), ("rarest", lambda terms: rarest(engine, terms, total))):
        chosen = [choose(terms) for terms in queries]
        result[f"query_{label}_ms"] = quantiles([cpu(engine.find, terms) for terms in chosen])
    sample = sample[:UPDATES]
    result["update_ms"] = quantiles([cpu(engine.add, [(number, f"{text} zzz{number}")]) for number, text in sample])
    assert all([number] == engine.find([f"zzz{number}"]) for number, _ in sample)
    return result | {"peak_mb_more": round(peak_mb() - before), "installed_mb": _installed_mb(name)}


def _installed_mb(name: str) -> float:
    """Return the size of what an engine adds to an installation; SQLite comes with Python."""
    if name != "tantivy":
        return 0.0
    files = importlib.metadata.files("tantivy") or ()
    return round(sum(Path(str(file.locate())).stat().st_size for file in files) / 1e6, 1)


def main() -> None:
    """Prepare passages, then measure each engine in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one[0], Path(arguments.one[1]))))
        return
    results: dict[str, object] = {"memories": arguments.memories, "sqlite": sqlite3.sqlite_version}
    with tempfile.TemporaryDirectory() as name:
        root, analyzer = Path(name) / "brain", Analyzer("english")
        queries = [analyzer.terms(query) for query in write_brain(root, arguments.memories)]
        unindexed = Unindexed(Tree(root), analyzer, lambda path: None)
        pages = (unindexed.encoded(path) for path in searched_files(Tree(root)))
        passages = [passage for page in pages if page for passage in page.passages]
        (Path(name) / "passages.txt").write_text("\n".join(passages), "utf-8")
        (Path(name) / "queries.json").write_text(json.dumps(queries), "utf-8")
        results |= {"passages": len(passages), "text_mb": round(sum(map(len, passages)) / 1e6, 1)}
        results["read_files_cpu_s"] = round(min(cpu(read_all, root) for _ in range(3)), 2)
        for engine in ("fts5", "tantivy"):
            command = [sys.executable, __file__, "--one", engine, name]
            output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            results[engine] = json.loads(output.splitlines()[-1])
            print(engine, results[engine], file=sys.stderr, flush=True)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
