"""A summary that only uses the person's own statements: what was told, what was decided, what is open."""

from __future__ import annotations

from collections.abc import Sequence

from brainiac.clock import parse_iso
from brainiac.language.statements import Said, statements_of
from brainiac.language.times import format_date, with_dates
from brainiac.llm.schemas import SummarizeRequest, Summary
from brainiac.notes.short_term import StmEvent

MAX_SENTENCES = 8
_WEIGHT = {"high": 0, "medium": 1, "low": 2}


def summarize(request: SummarizeRequest) -> Summary:
    """Summarize the remaining events in one to three paragraphs; nothing where there is nothing."""
    said = [
        (with_dates(one.text, parse_iso(event.at), except_year=True), one)
        for event in sorted(request.remaining, key=lambda event: event.at)
        for one in statements_of(event.user, parse_iso(event.at))
    ]
    told = _most_important(
        [pair for pair in said if pair[1].kind in ("fact", "preference", "change", "done", "how-to")]
    )
    decided = _most_important([pair for pair in said if pair[1].kind == "decision"])
    tasks = _most_important([pair for pair in said if pair[1].kind == "task"])
    paragraphs = [_opening(request.remaining) + " " + _sentences(told) if told else ""]
    paragraphs.append("Decided: " + _sentences(decided) if decided else "")
    paragraphs.append("Still to do: " + _sentences(tasks) if tasks else "")
    return Summary(text="\n\n".join(paragraph for paragraph in paragraphs if paragraph)[:4000])


def _most_important(pairs: list[tuple[str, Said]]) -> list[str]:
    """Keep at most a few, the most important ones, in the order they were said."""
    chosen = sorted(range(len(pairs)), key=lambda index: (_WEIGHT[pairs[index][1].importance], -index))[:MAX_SENTENCES]
    return list(dict.fromkeys(pairs[index][0] for index in sorted(chosen)))


def _sentences(texts: Sequence[str]) -> str:
    return " ".join(text if text.endswith((".", "!", "?")) else text + "." for text in texts)


def _opening(events: Sequence[StmEvent]) -> str:
    days = sorted(parse_iso(event.at).date() for event in events)
    first, last = format_date(days[0]), format_date(days[-1])
    return f"On {first}:" if first == last else f"Between {first} and {last}:"
