"""How many hostile requests each door refuses: every attack that the tests know, sent to every endpoint.

    python benchmarks/attacks.py

A scratch brain served on a port of loopback. Prints a row for each attack: with which status it is refused, and at how
many endpoints of REST, MCP and OpenAI's API, of those that it was sent to. Exit 1 where one got through.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent)]
from tests.support.attacks import ATTACKS, ENDPOINTS, sent
from tests.support.served import served

DOORS = ("api", "mcp", "v1")


def main() -> None:
    refused, total = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for name in ("STATE", "CACHE", "CONFIG"):
            os.environ[f"XDG_{name}_HOME"] = str(Path(folder) / name.lower())
        with served(Path(folder) / "brain") as server:
            print(f"| attack | refused with | {' | '.join(f'/{door}' for door in DOORS)} |")
            print("|---" * (2 + len(DOORS)) + "|")
            for attack in ATTACKS:
                here, asked = Counter[str](), Counter[str]()
                for method, path in ENDPOINTS:
                    door = path.split("/")[1] or "api"
                    if (reply := sent(server, attack, method, path)) is not None:
                        asked[door] += 1
                        here[door] += reply.status == attack.status
                cells = " | ".join(f"{here[door]} of {asked[door]}" for door in DOORS)
                print(f"| {attack.name} | {attack.status} | {cells} |")
                refused, total = refused + here, total + asked
    print(f"{refused.total()} of {total.total()} hostile requests refused")
    sys.exit(refused.total() != total.total())


if __name__ == "__main__":
    main()
