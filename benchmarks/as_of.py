"""Memory as it stood: 200 questions put to real copies of a brain at several days, and to `--at` of the same days.

    python benchmarks/as_of.py [--days 40] [--pairs 200]
    python benchmarks/as_of.py --size FOLDER [--day 2019-06-01]

A brain of one person with two devices lives for some weeks: facts that are told, told again and changed, questions,
pages written by hand, a page that moves. At the end of some days its folder is copied. Towards the end words are
purged, a page is made private, and something is forgotten. Then each pair of a question and a day is asked of the copy
and of `--at`; of the copy what is hidden now is taken out before, by the same commands. Compared are the first eight
hits: paths, kinds, statements and exchanges with their scores, which may differ by 2 %, so that hits that are as near
may change places: of a page whose former versions a purge destroyed, the counts, sources and headings that it had then
are not known any more. Forty pairs are about what was purged, made private, moved, or written on the second device;
those about the private page are asked through a door.

With `--size` a brain that `look_back.py --folder` made is measured: the first question of a day, and the next ones.
Each ends with one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent)]
from brainiac import verbs
from brainiac.brain import Brain
from brainiac.clock import ManualClock
from brainiac.history.as_of import standing
from brainiac.search.embed import share
from brainiac.search.search import Recall
from brainiac.testing import World
from brainiac.verbs import PERSON, Caller

DAY = 86400.0
NAMES = "Mira Tom Ruth Omar Lena Sven Aiko Paul Ines Karl".split()
PLACES = "Leeds Porto Lyon Graz Turku Ghent Bergen Malaga Riga Cork".split()
PETS = "cat dog parrot rabbit tortoise hamster pony goldfish gecko canary".split()
HEALTH, GARDEN = "memory/long_term/concrete/health.md", "memory/long_term/concrete/garden.md"
MOVED = "memory/long_term/concrete/home/garden.md"
DOOR = Caller("api:benchmark")
COMPARED, NEAR = 8, 0.02


class Life:
    """A brain that lives, and its copies."""

    def __init__(self, folder: Path, days: int) -> None:
        self.folder, self.days, self.random = folder, days, random.Random(7)
        self.world = World(folder / "first")
        self.copies: dict[str, Path] = {}

    def live(self) -> None:
        """Live the days, and copy the folder at the end of some."""
        world, phone = self.world, World(self.folder / "second", name="phone", like=self.world)
        for day in range(self.days):
            name, place, pet = (self.random.choice(words) for words in (NAMES, PLACES, PETS))
            world.drop(f"{day}-a.md", self.random.choice(("/remember ", "")) + f"{name} lives in {place} now.")
            world.drop(f"{day}-b.md", f"{name} has a {pet}, {self.random.choice(PLACES)} is where it was born.")
            world.run()
            if day % 3 == 0:
                world.save(f"inbox/notes/{day}.md", f"The {pet} of {name} needs food number {day}.\n")
                world.drop(f"{day}-c.md", f"Where does {self.random.choice(NAMES)} live?")
                world.run()
            if day % 4 == 1:
                self.page(GARDEN if day < self.days // 2 else MOVED, "Garden", f"In bed {day} grow beans.")
            if day == self.days // 2:
                (world.root / MOVED).parent.mkdir()
                (world.root / GARDEN).rename(world.root / MOVED)
                world.run()
            if day in (6, 9, 14):
                self.page(HEALTH, "Health", f"My blood pressure was {120 + day} on visit {day}.")
            if day in (8, 12):
                world.drop(f"{day}-d.md", f"/remember The doctor said gastritis, visit {day}.")
                world.drop(f"{day}-e.md", f"/remember The bakery on street {day} opens at seven.")
                world.run()
            if day in (10, 16):
                world.drop(f"{day}-f.md", f"/remember The locker at pool {day} has the code 47{day}.")
                world.run()
            if day >= 5:
                phone.drop(f"phone-{day}.md", f"/remember {name} met me at the {pet} fair number {day}.")
                phone.run()
                world.sync(phone)
                world.run()
            if day % 3 == 2 or day in (8, 13):
                at = world.clock.now().astimezone(UTC).date().isoformat()
                self.copies[at] = self.folder / "copies" / at / "brain"
                world.run()
                shutil.copytree(world.root, self.copies[at])
            world.tick(DAY)
            phone.run()
            world.sync(phone)
            world.run()
        for words in (("forget", "gastritis", "--purge", "--yes"), ("forget", "locker pool 10", "--yes")):
            said = world.cli(*words)
            assert said.code == 0, said.err
        self.hide(world)
        world.run()

    def page(self, path: str, title: str, line: str) -> None:
        """Add a line to a page by hand."""
        file = self.world.root / path
        text = file.read_text("utf-8") if file.exists() else f"# {title}\n\n"
        self.world.save(path, f"{text.rstrip()}\n- {line}\n" if file.exists() else f"{text}- {line}\n")
        self.world.run()

    @staticmethod
    def hide(world: World) -> None:
        """Make the page on health private."""
        file = world.root / HEALTH
        text = file.read_text("utf-8") if file.exists() else ""
        if text and "private: true" not in text:
            head, body = ("---\n", text[4:]) if text.startswith("---\n") else ("---\n", f"---\n{text}")
            world.save(HEALTH, f"{head}private: true\n{body}")

    def questions(self) -> tuple[list[str], list[str]]:
        """Return questions about anything, and those about what is hidden, moved or from the second device."""
        common = [f"Where does {name} live?" for name in NAMES] + [f"Who has a {pet}?" for pet in PETS]
        common += [f"What did I say about {place}?" for place in PLACES] + [f"{name} pet food" for name in NAMES]
        special = [
            "What did the doctor say?",
            "When does the bakery open?",
            "What was my blood pressure?",
            "blood pressure visit",
        ]
        special += [
            "What grows in the garden?",
            "beans bed",
            "Whom did I meet at the fair?",
            "fair number",
            "locker code pool",
        ]
        return common, special


Row = tuple[str, str, str, str]


def hits_of(brain: Brain, question: str, caller: Caller) -> dict[Row, float]:
    """Return the first hits with their scores, twice as many as are compared."""
    found = verbs.search(brain, question, limit=2 * COMPARED, max_tokens=9000, caller=caller).matches
    return {(m.hit.path, m.hit.kind, m.hit.anchor.split("-")[0], m.hit.text): m.hit.score for m in found}


def differing(expected: dict[Row, float], got: dict[Row, float]) -> list[Row]:
    """Return the first hits of either side that the other one has not, or has with another score."""
    near = NEAR * max([abs(score) for score in (*expected.values(), *got.values())], default=0.0)
    first = dict.fromkeys((*list(expected)[:COMPARED], *list(got)[:COMPARED]))
    return [row for row in first if abs(expected.get(row, 1e9) - got.get(row, -1e9)) > near]


def opened_copy(life: Life, at: str, vectors: Path) -> World:
    """Return a copy of the folder on a machine like the first one, without what is hidden now."""
    world = World(life.copies[at].parent)
    shutil.copy(life.world.home / "state/brainiac/device_id", world.home / "state/brainiac/device_id")
    moment = datetime.fromisoformat(f"{at}T23:59:59+00:00")
    world.clock = ManualClock(moment)
    for words in ("gastritis", "locker pool 10"):
        world.cli("forget", words, "--yes")
    life.hide(world)
    with world.opened() as brain:
        brain.recall.flush()
        contents = [content for _, content in brain.recall._pages.index.contents()]
        brain.recall.close()
        share(vectors, brain.places.cache / "vectors", contents)
        brain.recall.flush(600)
    return world


def compare(folder: Path, days: int, pairs: int) -> dict[str, Any]:
    """Live, ask, compare."""
    life = Life(folder, days)
    life.live()
    common, special = life.questions()
    choose = random.Random(11)
    dates = sorted(life.copies)
    asked = [(choose.choice(special), choose.choice(dates), True) for _ in range(pairs // 5)]
    asked += [(choose.choice(common), choose.choice(dates), False) for _ in range(pairs - len(asked))]
    result: dict[str, Any] = {"pairs": 0, "equal": 0, "same order": 0, "special": 0, "special equal": 0}
    result["days"], result["empty"] = len(dates), 0
    with life.world.opened() as brain:
        brain.recall.flush(600)
        vectors = brain.places.cache / "vectors"
        for at in dates:
            copy = opened_copy(life, at, vectors)
            with copy.opened() as former, standing(brain, at) as then:
                former.recall.flush(600)
                then.recall.flush(600)
                for question, _, is_special in [each for each in asked if each[1] == at]:
                    caller = DOOR if "blood" in question else PERSON
                    expected, got = hits_of(former, question, caller), hits_of(then, question, caller)
                    result["pairs"] += 1
                    result["special"] += is_special
                    result["empty"] += not expected
                    result["same order"] += list(expected)[:COMPARED] == list(got)[:COMPARED]
                    if not (rows := differing(expected, got)):
                        result["equal"] += 1
                        result["special equal"] += is_special
                    for row in rows:
                        print(at, question, row, expected.get(row), got.get(row), sep="\n  ", file=sys.stderr)
    return result


def measure(folder: Path, day: str) -> dict[str, Any]:
    """Measure a large brain; texts of made-up words get made-up vectors, which takes no hour."""
    for variable in ("STATE", "CACHE", "CONFIG"):
        os.environ[f"XDG_{variable}_HOME"] = str(folder / variable.lower())
    brain, figures = Brain(folder / "brain", is_reading=True), dict[str, Any]()
    shutil.rmtree(brain.places.cache / "as_of", ignore_errors=True)
    brain.unsettled = list  # as beside a daemon that has handled all changes
    invent_vectors(brain.recall, brain.places.cache / "vectors")
    others = [f"{day[:5]}{month:02d}-15" for month in (2, 4, 8, 10)]
    for name, when in (("now", [""] * 20), ("first", [day]), ("then", [day] * 20), ("other days", others)):
        times = []
        for number, moment in enumerate(when):
            words = f"gori melu {number} tasi"
            began, cpu = time.perf_counter(), time.process_time()
            if moment:
                with standing(brain, moment) as then:
                    verbs.search(then, words)
            else:
                verbs.search(brain, words)
            times.append((time.perf_counter() - began, time.process_time() - cpu))
        figures[name] = {
            "s": round(float(np.median([s for s, _ in times])), 3),
            "cpu_s": round(float(np.median([c for _, c in times])), 3),
        }
    files = list((brain.places.cache / "as_of").rglob("*"))
    figures["MB"] = round(sum(file.stat().st_size for file in files if file.is_file()) / 1e6)
    brain.close()
    return figures


def invent_vectors(recall: Recall, folder: Path) -> None:
    """Give each text of the index a random vector, where there are none yet."""
    name = recall.status()["embedder"]["name"]
    recall.flush()
    keys = np.unique(np.frombuffer(b"".join(content for _, content in recall._pages.index.contents()), np.uint64))
    recall.close()
    rows = np.empty(len(keys), np.dtype([("key", np.uint64), ("vector", np.float16, (384,))]))
    parts = np.random.default_rng(1).standard_normal((len(keys), 384)).astype(np.float32)
    rows["key"], rows["vector"] = keys, parts / np.linalg.norm(parts, axis=1, keepdims=True)
    folder.mkdir(parents=True, exist_ok=True)
    safe = "".join(sign if sign.isalnum() or sign in "-." else "_" for sign in name)
    (folder / f"{safe}.f16").write_bytes(np.uint32(384).tobytes() + rows.tobytes())


def main() -> None:
    """Compare, or measure a large brain."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=40)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--size", type=Path)
    parser.add_argument("--day", default="2019-06-01")
    given = parser.parse_args()
    if given.size:
        print(json.dumps(measure(given.size, given.day)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        began = time.perf_counter()
        print(json.dumps(compare(Path(temporary), given.days, given.pairs) | {"s": round(time.perf_counter() - began)}))


if __name__ == "__main__":
    main()
