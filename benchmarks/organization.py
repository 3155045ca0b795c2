"""Organization measured: the constructed history, every crash point of it, a racing editor, and 10,000 pages.

Run `python benchmarks/organization.py`; `--crashes 1` takes every disk operation, `--crashes 10` (the default) a tenth;
`--pages` sets the size of the large brain. Prints a table and, as the last line, JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]
from brainiac.host.trust import open_namespace

open_namespace()  # `brainiac_plugins`

Figures = dict[str, Any]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    result = work()
    return result, round(time.perf_counter() - started, 2)


def constructed(folder: Path) -> Figures:
    """Three memories cited 30 times, a pair co-cited 10 times, 20 unused for 180 days, a folder of 260."""
    from brainiac_plugins.organization.run import organize
    from brainiac_plugins.organization.upkeep import Upkeep

    from brainiac.health.doctor import examine
    from tests.support.organized import construct, expected_places, make_scene

    scene = make_scene(folder / "brain")
    made = construct(scene)
    Upkeep(scene.brain).tend()
    outcome, seconds = timed(lambda: organize(scene.brain))
    places, expected = scene.pages(), expected_places(made)
    links = {path for action in outcome.done if action.kind == "link" for path in action.paths}
    before = scene.tree()
    again = organize(scene.brain)
    figures = {
        "pages": len(places),
        "right_places": sum(places[path] == where for path, where in expected.items()),
        "moved_up": sum(places[path] == expected[path] != path for path in made.frequent),
        "archived": sum(places[path] == expected[path] for path in made.unused),
        "split": sum(places[path] == expected[path] for path in made.crowd),
        "moved_but_should_not": sum(places[path] != path for path in (*made.pair, *made.others)),
        "linked_pairs": int(links == set(made.pair)),
        "problems_by_doctor": len(list(examine(scene.brain))),
        "log_lines_left": before["logs/access.log"].count(b"\n"),
        "files_changed_by_second_run": sum(before.get(path) != text for path, text in scene.tree().items()),
        "done_by_second_run": len(again.done),
        "seconds": seconds,
    }
    scene.brain.close()
    return figures


def crashes(folder: Path, step: int) -> Figures:
    """Crash at disk operations of a whole organization; each must recover to all or nothing and then end well."""
    from tests.crash.test_organization_crash import Rounds

    rounds = Rounds(folder)
    total = rounds.count()
    numbers = [(number, how) for how in ("before", "torn", "after") for number in range(1, total + 1, step)]
    finished, seconds = timed(lambda: [rounds.crash(number, how) for number, how in numbers])
    return {
        "operations": total,
        "crashes": len(finished),
        "rolled_forward": sum(finished),
        "as_before": len(finished) - sum(finished),
        "violations": 0,  # `Rounds.crash` raises at the first
        "seconds": seconds,
    }


def races(folder: Path, rounds: int) -> Figures:
    """A person keeps saving pages that are moved, split, archived and relinked."""
    from brainiac_plugins.organization.upkeep import Upkeep

    from tests.crash.test_organization_crash import by_rename, in_place, race
    from tests.support.organized import SMALL, construct, make_scene

    saves = lost = 0
    for number in range(rounds):
        scene = make_scene(folder / f"race-{number}", config=SMALL)
        made = construct(scene, crowd=24, unused=2)
        Upkeep(scene.brain).tend()
        paths = [*made.frequent, *made.pair, *made.unused, *made.crowd[:4], *made.others[:2]]
        saved = race(scene, paths, (in_place, by_rename)[number % 2], seed=number)
        scene.advance(20)
        scene.brain.observed.adopt()
        scene.brain.committer.check_displaced()
        standing = b"\n".join(scene.tree().values()).decode()
        saves += len(saved)
        lost += sum(line not in standing for line in saved.values())
        scene.brain.close()
    return {"rounds": rounds, "last_saves": saves, "lost": lost}


def large(folder: Path, pages: int) -> Figures:
    """Organize a large brain, and move one of its pages by hand."""
    from brainiac_plugins.organization.run import organize
    from brainiac_plugins.organization.upkeep import Upkeep

    from brainiac.events import FileChange, PathKind
    from tests.support.organized import NOW, make_scene

    scene = make_scene(folder / "large", config="\nrecall: {embedder: none}\n")
    target = scene.page("concrete/people/mira")
    for number in range(pages):
        links = (target,) if number % 100 == 0 else ()
        scene.page(f"concrete/topic-{number % 100}/page-{number}", links=links)
    for number in range(1000):
        scene.log("CITE", f"memory/long_term/concrete/topic-{number % 50}/page-{number % 50}.md", at=NOW)
    brain = scene.brain
    brain.observed.adopt()
    upkeep = Upkeep(brain)
    _, first = timed(upkeep.tend)
    _, run = timed(lambda: organize(brain))
    _, again = timed(lambda: organize(brain))
    brain.recall.reindex()
    moved = f"{target.rpartition('/')[0]}/mira-moved.md"
    brain.tree.absolute(target).rename(brain.tree.absolute(moved))
    brain.observed.adopt()
    brain.recall.rescan()
    _, heal = timed(lambda: upkeep.note_change(FileChange("moved", moved, PathKind.MEMORY, target)))
    brain.close()
    return {
        "pages": pages,
        "first_upkeep_s": first,
        "organize_1000_lines_s": run,
        "second_run_s": again,
        "heal_one_move_of_100_links_s": heal,
    }


def main() -> None:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crashes", type=int, default=10)
    parser.add_argument("--races", type=int, default=10)
    parser.add_argument("--pages", type=int, default=10_000)
    chosen = parser.parse_args()
    parts: dict[str, Callable[[Path], Figures]] = {
        "constructed": constructed,
        "crashes": lambda folder: crashes(folder, chosen.crashes),
        "races": lambda folder: races(folder, chosen.races),
        "large": lambda folder: large(folder, chosen.pages),
    }
    figures: dict[str, Figures] = {}
    for name, part in parts.items():
        with tempfile.TemporaryDirectory() as scratch:
            for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
                os.environ[variable] = str(Path(scratch) / variable.lower())
            (Path(scratch) / "part").mkdir()
            figures[name] = part(Path(scratch) / "part")
        for key, value in figures[name].items():
            print(f"{name:12} {key:32} {value}", flush=True)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
