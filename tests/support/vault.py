"""Makes a vault of foreign notes: `python -m tests.support.vault FOLDER [NOTES]`.

Front matter of many shapes (none, broken, odd dates, nested, Windows line ends), wiki links with aliases, headings and
blocks, embeds, tags, canvases, attachments, templates, hidden folders. The same number gives the same bytes.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

FRONT_MATTER = (
    "",
    "---\ncreated: {day}\ntags: [garden, plan/{n}]\naliases: [Alias {n}]\n---\n",
    "---\ndate: {day}\ntags: garden, plan\ncssclasses:\n  - wide\n---\n",
    '---\ncreated: {day} 14:30\nup: "[[Note {other}]]"\nrating: 4.5\ndone: false\n---\n',
    "---\nmodified: {day}T08:00:00+02:00\nauthor: {{name: Ann, mail: a@b.c}}\n---\n",
    "---\nuuid: {n}\ncreated_at: yesterday\nreinforcement_count: many\n---\n",
    "---\ntitle: 'Colon: and # hash'\ntags:\n---\n",
    "---\nbroken: [never closed\n---\n",
    "---\r\ntags: [windows]\r\n---\r\n",
    "\ufeff---\ntype: person\n---\n",
    "---\nprivate: true\n---\n",
)
PLANTS = ("quince", "medlar", "damson", "mulberry", "gooseberry", "rhubarb", "sorrel", "lovage", "borage", "fennel")
PLACES = ("by the well", "behind the shed", "along the wall", "near the gate", "under the oak", "at the pond")


def make_vault(folder: Path, notes: int = 2000) -> list[Path]:
    """Write a vault and return its notes; the words `marker N` stand in note N alone."""
    made = []
    for number in range(notes):
        rng = random.Random(number)
        day = f"20{rng.randrange(10, 25)}-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"
        name = f"{day} Walk {number}.md" if number % 10 == 9 else f"Note {number}.md"
        path = folder / ("Daily" if number % 10 == 9 else f"Area {number % 7}/Topic {number % 23}") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_note(number, notes, day, rng).encode())
        os.utime(path, (1_300_000_000 + number * 86_400,) * 2)
        made.append(path)
    _others(folder)
    return made


def _note(number: int, notes: int, day: str, rng: random.Random) -> str:
    """Return a note's text: properties, prose with links, a list, code with what looks like links."""
    other = (number * 7 + 1) % notes
    meta = FRONT_MATTER[number % len(FRONT_MATTER)].format(day=day, n=number, other=other)
    lines = [
        f"# Heading {number}" if number % 3 else "No heading here",
        f"The {rng.choice(PLANTS)} stands {rng.choice(PLACES)}, marker{number}x says. #garden/row{number % 5}",
        f"See [[Note {other}]], [[Note {(number + 3) % notes}|the other]] and [[Note {other}#Heading {other}]].",
        f"![[picture {number % 9}.png|200]] ![[Note {(number + 5) % notes}#^block1]]",
        f"- [ ] water the {rng.choice(PLANTS)} 📅 {day}\n- [x] done ^block1\n    - nested [[Missing {number}]]",
        "```dataview\nLIST FROM [[Not a link]]\n```",
        "> [!note] Callout\n> with %%a comment%% and ==a mark== and $x^2$",
    ]
    text = "\n\n".join(lines) + ("\n" if number % 4 else "")
    return meta + (text.replace("\n", "\r\n") if "\r\n" in meta else text)


def _others(folder: Path) -> None:
    """Write what is no note: Obsidian's settings, its trash, attachments, a canvas, a template, odd files."""
    others = {
        ".obsidian/app.json": b'{"userIgnoreFilters": null}',
        ".obsidian/plugins/x/README.md": b"marker of a plugin",
        ".trash/Old.md": b"marker of the trash",
        "Board.canvas": b'{"nodes": [{"id": "1", "type": "file", "file": "Note 1.md"}], "edges": []}',
        "Templates/Daily.md": b"---\ncreated: <% tp.date.now() %>\n---\n# {{title}}\n",
        "Empty.md": b"",
        "Latin.md": "caf\u00e9 au lait".encode("latin-1"),
        "table.csv": b"a,b\n1,2\n",
        **{f"Attachments/picture {number}.png": bytes(range(256)) * 8 for number in range(9)},
    }
    for path, content in others.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


if __name__ == "__main__":
    make_vault(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2000)
