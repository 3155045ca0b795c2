"""What a person asks every day, put to the program as they would: files dropped into an inbox, the answers read.

    python benchmarks/everyday.py [--show] [--only together yesno sure lists days]

- `together`: a fact and the question that it answers arrive in the same moment, in either order of their names, in a
  brain of their own; is the fact quoted?
- `yesno`: of forty facts, does the first quotation of each question hold its own, with and without its mark?
- `sure`: sixty questions that nothing answers (each has a near miss in memory), and a hundred and twenty that something
  does: how many of each are marked `Perhaps:` or `Nothing`, and how many of the answered have their fact quoted first?
- `lists`: forty questions for several things, in one brain: how many of these does the answer hold?
- `days`: sixty questions for a day, in a brain with a message on each day: is what comes first of that day? And three
  hundred questions without a day: how many are read as if they named one?

The sets in `data/everyday` were written by somebody who had not seen the program. Ends with one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks import questions
from brainiac.clock import iso
from brainiac.formats.markdown import StmEvent
from brainiac.llm.offline import FOUND, NOTHING, PERHAPS
from brainiac.search.query import parse_query, searches
from brainiac.search.text import Analyzer
from brainiac.testing import World

DATA = Path(__file__).parent / "data" / "everyday"
QUIET = "/off\n"  # a question that leaves no trace, so that the next one is asked of the same brain
DAYS_BACK = 1000
is_shown = False


def read(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))


def answers(folder: Path, told: Iterable[str], asked: Iterable[str]) -> list[str]:
    """Tell a new brain some messages, ask it, and return the answers."""
    world = World(folder)
    for number, text in enumerate(told):
        world.drop(f"told-{number:03d}.md", text)
    world.run()
    world.cli("reindex")  # so much told at once gets its vectors in the background, a little later
    prompts = [world.drop(f"asked-{number:03d}.md", QUIET + text) for number, text in enumerate(asked)]
    world.run()
    return [prompt.answer or "" for prompt in prompts]


def first_quoted(answer: str) -> str:
    """Return the first quotation of an answer as one line, "" for none."""
    lines = answer.split("\n")
    start = next((n for n, line in enumerate(lines) if line.startswith("> ")), len(lines))
    end = next((n for n in range(start, len(lines)) if not lines[n].startswith(">")), len(lines))
    return " ".join(" ".join(line.lstrip("> ") for line in lines[start:end]).split())


def mark_of(answer: str) -> str:
    """Return by which of its lines an answer says how sure it is."""
    return next((line for line in answer.split("\n") if line in (FOUND, PERHAPS, NOTHING)), "")


def missed(kind: str, *what: str) -> None:
    if is_shown:
        print(kind, *what, sep=" | ")


def together(folder: Path) -> dict[str, Any]:
    found = 0
    for number, row in enumerate(read("batch")):
        world, names = World(folder / str(number)), ("a.md", "b.md")
        texts = dict(zip(names, (row["question_message"], row["fact_message"])[:: 1 - 2 * (number % 2)], strict=True))
        fact_at, question_at = names[1 - number % 2], names[number % 2]
        for name in names if number % 3 else names[::-1]:
            world.drop(name, texts[name])
        world.run()
        answer = (world.root / "inbox" / question_at.replace(".md", ".response.md")).read_text("utf-8")
        is_found = f"]({fact_at}" in answer or " ".join(row["fact_message"].split()) in " ".join(answer.split())
        found += is_found
        if not is_found:
            missed("together", row["fact_message"], row["question_message"])
    return {"together": found}


def yesno(folder: Path) -> dict[str, Any]:
    rows = read("yesno")
    asked = [row["question"].rstrip("?？¿ ") for row in rows] + [row["question"] for row in rows]
    result = {"without_mark": 0, "with_mark": 0}
    replies = answers(folder, (row["said"] for row in rows), [f"{text}" for text in asked[: len(rows)]])
    replies += answers(folder / "marked", (row["said"] for row in rows), (f"{text}?" for text in asked[: len(rows)]))
    for number, reply in enumerate(replies):
        row, way = rows[number % len(rows)], ("without_mark", "with_mark")[number // len(rows)]
        is_first = first_quoted(reply) == " ".join(row["said"].split())
        result[way] += is_first
        if not is_first:
            missed(way, row["question"], row["said"], first_quoted(reply))
    return {f"yesno_{way}": count for way, count in result.items()}


def sure(folder: Path) -> dict[str, Any]:
    nothing, something, right = read("unanswerable"), read("answerable"), 0
    between = json.loads((DATA.parent / "newest" / "dev.json").read_text("utf-8"))["between"]
    replies = answers(folder / "nothing", [*between, *(row["near"] for row in nothing)], questions_of(nothing))
    n_marked = {"unanswerable_marked": sum(mark_of(reply) != FOUND for reply in replies)}
    for row, reply in zip(nothing, replies, strict=True):
        if mark_of(reply) == FOUND:
            missed("too sure", row["question"], first_quoted(reply))
    replies = answers(folder / "something", [*between, *(row["said"] for row in something)], questions_of(something))
    n_marked["answerable_marked"] = sum(mark_of(reply) != FOUND for reply in replies)
    for row, reply in zip(something, replies, strict=True):
        is_first = first_quoted(reply) == " ".join(row["said"].split())
        right += is_first
        if not is_first or mark_of(reply) != FOUND:
            missed("not sure", row["question"], row["said"], mark_of(reply), first_quoted(reply))
    return {**n_marked, "answerable_first": right}


def questions_of(rows: Iterable[dict[str, Any]]) -> list[str]:
    return [row["question"] for row in rows]


def lists(folder: Path) -> dict[str, Any]:
    rows = read("lists")
    replies = answers(folder, (text for row in rows for text in row["said"]), (row["question"] for row in rows))
    found = n_whole = 0
    for row, reply in zip(rows, replies, strict=True):
        lacking = [thing for thing in row["must"] if thing.casefold() not in reply.casefold()]
        found += len(row["must"]) - len(lacking)
        n_whole += not lacking
        if lacking:
            missed("lists", row["question"], *lacking)
    return {"listed": found, "listed_of": sum(len(row["must"]) for row in rows), "lists_whole": n_whole}


def days(folder: Path) -> dict[str, Any]:
    data = read("days")
    today = date.fromisoformat(data["today"])
    now = datetime(today.year, today.month, today.day, 12, tzinfo=UTC)
    between = json.loads((DATA.parent / "newest" / "dev.json").read_text("utf-8"))["between"]
    told = [
        StmEvent(f"x{back:04d}", iso(now - timedelta(days=back, hours=2)), between[back % len(between)])
        for back in range(DAYS_BACK, 0, -1)
    ]
    questions.build_brain(told, folder / "brain")
    found = n_past = n_right = 0
    recalls = dict[str, Any]()
    for row in data["items"]:
        language = row["lang"]
        if language not in recalls:
            recalls[language] = questions.open_recall(folder / "brain", folder / language, language, "local")
            recalls[language].reindex()
        wanted = tuple(date.fromisoformat(row[end]).toordinal() for end in ("day_from", "day_to"))
        analyzer = Analyzer(questions.SNOWBALL.get(language, "none"))
        n_right += parse_query(row["question"], analyzer, now, "memory/long_term").days == wanted
        if row["day_from"] >= data["today"]:
            continue  # nobody said anything yet
        n_past += 1
        hits = recalls[language].search(searches(row["question"], ())[0], limit=8, now=now)
        is_first = bool(hits) and row["day_from"] <= hits[0].at[:10] <= row["day_to"]
        found += is_first
        if not is_first:
            missed("days", row["question"], row["day_from"], hits[0].at[:10] if hits else "-")
    for recall in recalls.values():
        recall.close()
    n_read = 0
    for text in read("nodays"):
        if parse_query(text, Analyzer("english"), now, "memory/long_term").days:
            n_read += 1
            missed("no day", text)
    return {
        "days_first": found,
        "days_past": n_past,
        "days_read": n_right,
        "days_of": len(data["items"]),
        "without_day_read_as_one": n_read,
    }


TASKS = {"together": together, "yesno": yesno, "sure": sure, "lists": lists, "days": days}


def main() -> None:
    global is_shown
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="name what went wrong")
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS))
    arguments = parser.parse_args()
    is_shown, result = arguments.show, dict[str, Any]()
    for name in arguments.only:
        with tempfile.TemporaryDirectory() as folder:
            result |= TASKS[name](Path(folder))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
