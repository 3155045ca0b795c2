"""Keeps a daily note: a line for every question that was answered, with links to both files.

Copy it to the `plugins/` folder of a brain and run `brainiac plugins trust daily_note`.
"""

from datetime import datetime

from brainiac import Brain, Exchange, create, hookimpl, update

FOLDER = "daily"  # beside inbox/ and memory/, where an editor such as Obsidian can be told to look


@hookimpl
def response_arrived(brain: Brain, exchange: Exchange) -> None:
    """Add the line, or replace that of the exchange which this one revises; a second call changes nothing."""
    if exchange.response is None or not exchange.prompt.remember:
        return
    moment = datetime.fromisoformat(exchange.at).astimezone()
    path = f"{FOLDER}/{moment:%Y-%m-%d}.md"
    before = brain.read_text(path)
    lines = (before or f"# {moment:%A, %d %B %Y}\n\n").splitlines(keepends=True)
    if any(exchange.id in line for line in lines):
        return
    question = " ".join(exchange.prompt.text.split())[:80].replace("[", "(").replace("]", ")")
    links = f"[{question}](<../{exchange.prompt.path}>) → [answer](<../{exchange.response.path}>)"
    kept = [line for line in lines if not exchange.supersedes or exchange.supersedes not in line]
    after = "".join(kept) + f"- {moment:%H:%M} {links} <!-- {exchange.id} -->\n"
    change = create(path, after) if before is None else update(path, before, after)
    brain.commit("daily-note-written", by="daily_note", changes=[change], cause=exchange.id)
