"""Whether each thing that an answer cites stands in its receipts, and whether `wrong` changes that very thing alone.

    python benchmarks/receipts.py BRAIN QUESTIONS.json --folder DIR

BRAIN is a brain with a life in it, as `consolidation.py --keep` leaves one; it is copied, never written. QUESTIONS.json
is a list of texts. Each question is asked of the same copy by the command line, with a model that a reader plays: the
first run writes `NNN.request.md`, to be answered, as the model would, in `NNN.answer.md`, for each; the second one asks
again with these answers and counts:

- cited: what the answer links to, a page or a statement, and how many of these its receipts have as cited;
- wrong: for the first cited receipt of each answer, `brainiac wrong ID TEXT`, and whether nothing in memory but that
  statement (its former wording under History), or what was made of that sentence, differs after it.

Before each question the copy is put back as it was. Ends with one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

sys.path[:0] = [str(Path(__file__).parent.parent)]
from tests.support.openai_server import Behaviour, Captured, ChatServer, by_request, say

KINDS = ("STATE", "CACHE", "CONFIG")
TEXT = "What stood here was not so: it is put right by hand (seal 4711)."


class Copy:
    """A copy of a brain with machine-local folders of its own, which can be put back as it was.

    Args:
        source: The brain.
        folder: For the copy.
        url: Of the server of its model.
    """

    def __init__(self, source: Path, folder: Path, url: str) -> None:
        self.live, self._kept = folder / "live", folder / "kept"
        self.root = self.live / "brain"
        shutil.copytree(source, self.root)
        (self.live / "config").mkdir()
        folders = {f"XDG_{kind}_HOME": str(self.live / kind.lower()) for kind in KINDS}
        self.environment = {**os.environ, **folders, "OPENAI_API_KEY": "none"}
        config = self.root / "system/config.yaml"
        models = {"model": "openai/answer", "models": {"queries": "offline", "verify": "offline"}}
        config.write_text(yaml.safe_dump({**yaml.safe_load(config.read_text("utf-8")), "llm": models}), "utf-8")
        place = self.live / "config/brainiac/config.yaml"
        place.parent.mkdir()
        place.write_text(f"api_bases: {{openai: {url}}}\n")
        self.run("search", "anything")  # the index is there
        shutil.copytree(self.live, self._kept, symlinks=True)

    def run(self, *arguments: str) -> str:
        """Run a command and return what it printed.

        Raises:
            RuntimeError: It failed.
        """
        command = [sys.executable, "-m", "brainiac", "--brain", str(self.root), *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(arguments)}: {done.stderr[-500:]}")
        return done.stdout

    def put_back(self) -> None:
        """Make the copy what it was at first, times of files included."""
        shutil.rmtree(self.live)
        shutil.copytree(self._kept, self.live, symlinks=True)

    def memory(self) -> dict[str, str]:
        """Return each line of memory's statements, lists and exchanges: by page and line without its block id."""
        lines: dict[str, str] = {}
        for path in sorted((self.root / "memory").rglob("*.md")):
            name = path.relative_to(self.root).as_posix()
            for line in path.read_text("utf-8").partition("\n# ")[2].splitlines()[1:]:
                if line.strip() and not line.startswith("#"):
                    lines[f"{name}: {line.strip()}"] = line
        return lines


def ask(copy: Copy, question: str) -> dict[str, Any]:
    """Return the JSON of an answer."""
    return dict(json.loads(copy.run("ask", "--json", question)))


def links_of(answer: dict[str, Any]) -> set[str]:
    """Return what an answer links to, as paths from the root with the statement's id where it has one."""
    folder = posixpath.dirname(answer["response"])
    targets = re.findall(r"\]\(<?([^)> ]+)>?[^)]*\)", answer["text"])
    return {posixpath.normpath(posixpath.join(folder, target)) for target in targets if "://" not in target}


def name_of(receipt: dict[str, Any]) -> str:
    """Return what a receipt names, as a link would."""
    return f"{receipt['path']}#^{receipt['block']}" if receipt["block"] else str(receipt["path"])


def judge(copy: Copy, number: int, answer: dict[str, Any]) -> Counter[str]:
    """Put one cited receipt right, and count what else of memory differs."""
    cited = [row for row in answer["receipts"] if row["use"] == "cited"]
    links = links_of(answer)
    # a page's link cites what was shown of that page
    rested = {name_of(row) for row in cited} | {row["path"] for row in cited}
    counted = Counter(answers=1, with_receipt=bool(cited), cited=len(links), cited_in_receipts=len(links & rested))
    if links - rested:
        print(f"{number:03d}: no receipt for {sorted(links - rested)}", file=sys.stderr)
    if not cited:
        return counted
    before, receipt = copy.memory(), cited[0]
    try:
        copy.run("wrong", receipt["id"], TEXT)
    except RuntimeError as error:  # of an exchange of several sentences, or a whole page, it asks which words
        sentence = re.search(r"^error: 1\. (.+?)(?:  \(.*\))?$", str(error), re.MULTILINE)
        counted["asked which"] += 1
        if sentence is None:
            print(f"{number:03d}: {error}", file=sys.stderr)
            return counted
        copy.run("correct", sentence[1], "--to", TEXT)
    after = copy.memory()
    gone = [line for key, line in before.items() if key not in after]
    added = [key for key in after if key not in before]
    right = [key for key in added if TEXT in key]
    counted["put right"] += bool(right)
    # its former wording stands under History, with or without its days; index pages and the digest retell it
    told = [key for key in added if key not in right and not re.match(r"memory/(digest|.*_index)\.md", key)]
    is_alone = len([line for line in gone if not line.lstrip().startswith("|")]) <= 1 and len(told) <= 1
    counted["that alone"] += bool(right) and is_alone
    if not (right and is_alone):
        print(f"{number:03d}: {receipt}\n  gone: {gone}\n  added: {added}", file=sys.stderr)
    return counted


def main() -> int:
    """Write the requests, or ask with the readers' answers and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("brain", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--folder", type=Path, required=True)
    given = parser.parse_args()
    questions = json.loads(given.questions.read_text("utf-8"))
    given.folder.mkdir(parents=True, exist_ok=True)
    counted = Counter[str]()
    shutil.rmtree(given.folder / "copy", ignore_errors=True)
    with ChatServer() as server:
        copy = Copy(given.brain, given.folder / "copy", server.url)
        for number, question in enumerate(questions, 1):
            request, reply = (given.folder / f"{number:03d}.{kind}.md" for kind in ("request", "answer"))
            if request.exists() and not reply.exists():
                continue  # it waits for its reader
            sent: list[Captured] = []

            def serve(captured: Captured, reply: Path = reply, sent: list[Captured] = sent) -> Behaviour:
                sent.append(captured)
                return say(reply.read_text("utf-8").strip() if reply.exists() else "Noted.")

            server.default = by_request(serve)
            answer = ask(copy, question)
            if not reply.exists():
                request.write_text(sent[0].text + "\n", "utf-8")
            else:
                counted += judge(copy, number, answer)
            copy.put_back()
    print(json.dumps(counted))
    return 0


if __name__ == "__main__":
    sys.exit(main())
