"""A person's vault of notes: does a question find the page that holds its answer, and is its value what is quoted?

    python benchmarks/vault.py benchmarks/data/vault/dev.json [--embedder auto]

A file holds the pages of a vault with links, people, projects and daily notes, and questions about single pages. Each
is searched for and asked, without a model. The figures are the share of questions whose own page comes first and among
the first ten of `search`, first and at all in the answer of `ask`; where the value asked for stands in the first
passage quoted; and where another page's passage is quoted first although that page answers nothing. The last line is
one line of JSON, by kind of question.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent)]
from brainiac.testing import World

FOLDER = "memory/long_term/concrete"
FOUND_IN = re.compile(r"\]\((?:<([^>]+)>|([^)\s]+))")


def unpack(file: Path, folder: Path) -> dict[str, Any]:
    """Write the pages of a vault below a folder, and return all that its file holds."""
    data: dict[str, Any] = json.loads(file.read_text("utf-8"))
    for path, text in data["pages"].items():
        page = folder / path
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, "utf-8")
    return data


def main() -> None:
    """Measure, and print one line of JSON: shares in percent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--show", action="store_true", help="name each question whose page is not first")
    arguments = parser.parse_args()
    met: dict[str, list[list[float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        world = World(Path(name))
        data = unpack(arguments.data, world.root / FOLDER)
        settings = world.root / "system/config.yaml"
        world.save("system/config.yaml", f"{settings.read_text('utf-8')}\nrecall: {{embedder: {arguments.embedder}}}\n")
        world.run()
        world.cli("reindex")
        for asked in data["questions"]:
            hits = world.cli("search", "--json", "--limit", "10", "--", asked["text"]).json
            hits = hits["hits"] if isinstance(hits, dict) else hits
            pages = list(dict.fromkeys(hit["path"].removeprefix(f"{FOLDER}/") for hit in hits))
            answer = world.cli("ask", "--json", "--off-record", "--", asked["text"]).json["text"]
            quoted = answer.split("\n— ")[0]
            own, value = asked["pages"][0], " ".join(asked["value"].split())
            is_first = pages[:1] == [own]
            shows = value.casefold() in " ".join(quoted.split()).casefold()
            met[asked["kind"]].append([is_first, own in pages, shows, value in " ".join(answer.split())])
            if arguments.show and not (is_first and shows):
                print(asked["text"], "|", own, value, "|", pages[:3], "|", quoted[:160].replace("\n", " / "))
    rows = {**met, "all": [row for rows in met.values() for row in rows]}
    names = ("first", "among_10", "value_first", "value_shown")
    print(
        json.dumps(
            {
                kind: dict(zip(names, (100 * np.mean(values, 0)).round(1).tolist(), strict=True))
                for kind, values in rows.items()
            }
        )
    )


if __name__ == "__main__":
    main()
