"""Read the answers of small models as they come, and count the valid operations that are kept.

    python benchmarks/small_answers.py [FILE] [--show]

FILE (benchmarks/data/small_answers.json is ours) has cases by somebody who has not seen how they are read: what a
request showed, the text that a small model answered, and the valid operations in it. The program asks by litellm, a
server on loopback answers with that text whatever it is asked. An operation is kept if one with its action, ids, text
and first quote is read, and invented if no valid one is like it. The last line printed is one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent)]
from brainiac.host.trust import open_namespace

open_namespace()  # `brainiac_plugins`
from brainiac_plugins.promotion.checks import Sources, evidence_problems

from brainiac.errors import ModelError
from brainiac.formats.short_term import ShortTermMemory, StmEvent
from brainiac.llm.schemas import ConsolidateRequest, Consolidation, Existing, Operation, Said
from tests.support.models import NOW, model_brain
from tests.support.openai_server import ChatServer, say

OURS = Path(__file__).parent / "data/small_answers.json"
Case = Mapping[str, Any]


def request_of(case: Case) -> ConsolidateRequest:
    """Return the request that a case was an answer to."""
    return ConsolidateRequest(
        now=NOW,
        said=[Said(row["id"], StmEvent(row["id"], row["at"], row["user"], row["ai"])) for row in case["said"]],
        short_term=ShortTermMemory(),
        existing=[Existing(row["id"], row["text"], since=row.get("since", "")) for row in case["existing"]],
    )


def read(case: Case, folder: Path) -> tuple[list[Operation], int, int]:
    """Return the operations that the program reads, how many it would ask about by name, and its calls."""
    with ChatServer() as server:
        server.default = say(case["answer"], finish=case.get("finish", "stop"))
        brain = model_brain(folder, server)
        try:
            result = brain.models.run(request_of(case))
        except ModelError:
            return [], 0, len(server.requests)
        finally:
            brain.close()
        assert isinstance(result, Consolidation)
        events = {row["id"]: StmEvent(row["id"], row["at"], row["user"], row["ai"]) for row in case["said"]}
        sources = Sources(events, lambda name: "person", lambda at: at[:10])
        # what quotes nothing that was said is asked about too
        sound = [row for row in result.operations if not any(p.is_hard for p in evidence_problems(row, sources))]
        return sound, len(result.unread) + len(result.operations) - len(sound), len(server.requests)


def key_of(operation: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what an operation is told by."""
    quotes = [row.get("quote", "").casefold() for row in operation.get("evidence") or ()]
    return (
        operation["action"],
        tuple(name.strip("[]") for name in operation.get("ids") or ()),
        operation.get("text") or "",
        *quotes[:1],
    )


def main() -> int:
    """Read the arguments, read all answers, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=OURS)
    parser.add_argument("--show", action="store_true", help="print what was lost and what was invented")
    given = parser.parse_args()
    kept = wanted = invented = asked = calls = 0
    cases = json.loads(given.file.read_text("utf-8"))["cases"]
    with tempfile.TemporaryDirectory() as scratch:
        for number, case in enumerate(cases):
            operations, n_asked, n_calls = read(case, Path(scratch) / str(number))
            valid, got = [key_of(row) for row in case["valid"]], [key_of(row.model_dump()) for row in operations]
            lost, others = [key for key in valid if key not in got], [key for key in got if key not in valid]
            wanted, kept, invented = wanted + len(valid), kept + len(valid) - len(lost), invented + len(others)
            asked, calls = asked + n_asked, calls + n_calls
            if given.show and (lost or others):
                print(f"{case['id']} {case.get('kind', '')}", *(f"  lost {key}" for key in lost), sep="\n")
                print(*(f"  invented {key}" for key in others), sep="\n", flush=True)
    figures = {"cases": len(cases), "valid": wanted, "kept": kept, "invented": invented}
    print(json.dumps({**figures, "asked about by name": asked, "calls": calls}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
