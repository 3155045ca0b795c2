"""Status: how the brain stands, what models did and cost, and what a model sees for the last prompt."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from brainiac.errors import BrainiacError
from brainiac.health.overview import overview
from brainiac.library import read_prompt
from brainiac.llm.catalog import cost_rows
from brainiac.tree import subfolders
from brainiac.verbs import briefing
from brainiac.window.frame import Page, Visit

DAYS = 30  # that the charts show unless a month is asked for, or all, which is shown by month
CHART_HEIGHT, BAR_WIDTH = 60, 10
_LAST = "SELECT prompt FROM exchanges WHERE is_kept ORDER BY at DESC, event DESC LIMIT 1"


def status(visit: Visit) -> Mapping[str, Any]:
    """Return the values of the page."""
    brain = visit.brain
    running = [answer for answer in visit.desk.answers.values() if not answer.done.is_set()]
    values = {"state": overview(brain), "running": [answer.prompt for answer in running], "costs": _costs(visit)}
    values |= {"freshness": brain.recall.status()["freshness"], "devices": list(_devices(visit))}
    return values | {"seen": _seen(visit) if visit.given.get("seen") else None}


def _devices(visit: Visit) -> Iterator[tuple[str, str]]:
    """Yield each device with the last day of which its journal has come here."""
    for folder in subfolders(visit.brain.tree.journal):
        if folder.name != "blobs":
            yield folder.name, max((file.stem for file in folder.glob("[0-9]*.jsonl")), default="")


def _costs(visit: Visit) -> Mapping[str, Any]:
    """Return what models did in the last days, a month or ever: by purpose, and the money of each day or month."""
    brain, month = visit.brain, visit.given.get("month", "")
    days = [brain.midnight(-ago).date().isoformat() for ago in reversed(range(DAYS))]
    span, is_month = f"{DAYS} days", bool(re.fullmatch(r"\d{4}-\d\d", month))
    if is_month or month == "all":
        days = [f"{month}-{day:02}" for day in range(1, 32)] if is_month else []
        span = month if is_month else "all that is known"
    purposes: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0.0])
    by_day = dict.fromkeys(days, 0.0)
    for row in cost_rows(brain, days[0] if days else "", of_all_devices=True):
        if days and row.day > days[-1]:
            continue
        sums = purposes[row.purpose]
        for place, number in enumerate((row.calls, row.input_tokens + row.output_tokens, row.cost_usd)):
            sums[place] += number
        day = row.day if days else row.day[:7]
        by_day[day] = by_day.get(day, 0.0) + row.cost_usd
    total = [sum(column) for column in zip(*purposes.values(), strict=True)]
    most = [max(column) or 1 for column in zip(*purposes.values(), strict=True)]
    table = [
        (purpose, [(number, round(100 * number / top)) for number, top in zip(sums, most, strict=True)])
        for purpose, sums in sorted(purposes.items(), key=lambda item: (-item[1][2], -item[1][1], item[0]))
    ]
    by_day = dict(sorted(by_day.items()))
    dearest = max(by_day.values(), default=0.0)
    bars = [
        {"day": day, "usd": usd, "x": number * BAR_WIDTH, "height": round(CHART_HEIGHT * usd / dearest, 1)}
        for number, (day, usd) in enumerate(by_day.items())
        if usd > 0
    ]
    values = {"table": table, "total": total, "bars": bars, "dearest": dearest, "span": span, "height": CHART_HEIGHT}
    return values | {"width": BAR_WIDTH * len(by_day), "month": month if is_month else ""}


def _seen(visit: Visit) -> Mapping[str, Any]:
    """Return what a model is shown for the last prompt, by block; it is assembled now, since nobody stores it."""
    brain, prompt = visit.brain, None
    if path := brain.projection.value(_LAST):
        with suppress(BrainiacError):
            prompt = read_prompt(brain, path)
    memory = briefing(brain, prompt.said if prompt else "").memory
    most = max(memory.block_tokens.values(), default=0) or 1
    blocks = [
        (block, tokens, round(100 * tokens / most), block.name in memory.cached)
        for block in memory.blocks
        if (tokens := memory.block_tokens[block.name])
    ]
    return {"prompt": prompt.said if prompt else "", "memory": memory, "blocks": blocks}


PAGES = (Page("/status", "Status", status, is_live=True),)
