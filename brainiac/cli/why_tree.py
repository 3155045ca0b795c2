"""What `brainiac why` shows: a page's statements, what led to each, and the words that were typed, as a tree."""

from __future__ import annotations

from rich.text import Text
from rich.tree import Tree

from brainiac.cli.session import local_time
from brainiac.history.why import Chain, Said, Step, Why
from brainiac.terminal import clean


def tree_of(why: Why) -> Tree:
    """Return the tree of an explanation."""
    top = Tree(_text(f"{why.title}  ({why.path})", style="bold"), guide_style="dim")
    for chain in why.chains:
        branch = top.add(_text(_statement_line(chain)))
        for step in chain.steps:
            _add_step(branch.add(_text(_step_line(step))), step)
        if not chain.steps:
            branch.add("stood there when this device first saw the brain, or its history is not readable here")
    for said in why.said:
        _add_said(top, said, said.user)
    return top


def _text(text: str, style: str = "") -> Text:
    """Return a text for rich, cleaned of control characters."""
    return Text(clean(text), style)


def _statement_line(chain: Chain) -> str:
    """Return the line of a statement, struck through where it no longer holds."""
    text = f"~~{chain.text}~~" if chain.is_history else chain.text
    return f"{text} ^{chain.block}" if chain.block else text


def _step_line(step: Step) -> str:
    """Return the line of one change: when, what, by whom and which model."""
    who = f"{step.by} on {step.device}" if step.device else step.by
    models = [f"decided by {step.model}" if step.model else "", f"found by {step.found_by}" if step.found_by else ""]
    if step.model and step.run_cost_usd:
        models.append(f"its run cost ${step.run_cost_usd:.4f}")
    details = ", ".join(filter(None, models))
    return f"{local_time(step.at)}  {step.operation} by {who}{f' ({details})' if details else ''}, event {step.event}"


def _add_step(branch: Tree, step: Step) -> None:
    """Add the wordings, the reason and the sources of a change below its line."""
    if step.before:
        branch.add(_text(f"from: {step.before}"))
    if step.after:
        branch.add(_text(f"to:   {step.after}" if step.before else step.after))
    if step.reasoning:
        branch.add(_text(f"because: {step.reasoning}"))
    for said in step.sources:
        _add_said(branch, said, said.sentence_for(step.after or step.before))


def _add_said(branch: Tree, said: Said, words: str) -> None:
    """Add an exchange that a change rests on, with the typed words that count."""
    where = f" in {said.prompt}" if said.prompt else ""
    quoted = f": “{words}”" if words else "; its words are not kept any more"
    leaf = branch.add(_text(f"you typed{f' {local_time(said.at)}' if said.at else ''}{where}{quoted}"))
    leaf.add(_text(f"exchange {said.exchange}{f', read from {said.read_from}' if said.read_from else ''}"))
    if said.model:
        leaf.add(_text(f"answered by {said.model} (${said.cost_usd:.4f}){f' on {said.device}' if said.device else ''}"))
