"""What reaches a terminal: nothing that was read from a file, a model or a plugin has a control character in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import typer

from brainiac import Brain
from brainiac.cli.app import new_app, register_all
from brainiac.events import new_id
from brainiac.terminal import one_line
from brainiac.testing import install_plugin, make_brain, run_once
from tests.support.commands import do
from tests.support.openai_server import ChatServer, say
from tests.support.pipeline import eventually
from tests.support.program import Program, run_program
from tests.support.screen import BIDI, CONTROLS, Seen, on_terminal

# every control character but newline, tab and NUL, with sequences that terminals obey
EVIL = (
    "\x1b]0;owned\x07\x1b]52;c;ZXZpbA==\x1b\\\x1b[2J\x1b[3;7H\x1b[8;5;7mhidden\x1b(0\x9b31m\x9d0;x\x9c\x85\x8d"
    + "".join(map(chr, (*range(1, 9), 11, 12, *range(14, 32), *range(0x7F, 0xA0))))
    + "\u202eoverridden\u202c\u2066apart\u2069\u2028\u2029\rOVERWRITTEN"
)
NAME = "\x1b]0;owned\x07\x1b[2J\u202e\x9d\rOVERWRITTEN\nnext"  # what a file may be called
YAML = json.dumps(NAME)
VISIBLE = re.compile(r"\\u001b|\\x1b|&#27;")  # as we show it, as `repr` does, and as it stands in memory
STATEMENT = f"Mira lives in Porto {EVIL}."
WORDS = "Mira lives in Porto"

ANSWER = f"Mira lives in Porto. [link](https://x.example/a) entity &#8238; {EVIL}\n\n```py\n{EVIL}\n```\n"

PLUGIN = f"""\
import sys, warnings
import typer
import brainiac
EVIL = {EVIL!r}

@brainiac.hookimpl
def event_recorded(brain, event):
    raise RuntimeError(EVIL)

@brainiac.hookimpl
def register_commands(cli):
    @cli.command(help="Greets. " + EVIL)
    def greet(name: str = typer.Option("x", help=EVIL)):
        print(EVIL)
        print(EVIL, file=sys.stderr)
        warnings.warn(EVIL)
        typer.echo(EVIL)
        typer.secho(EVIL, fg="red", err=True)
        raise typer.BadParameter(EVIL)

    @cli.command()
    def crash():
        raise RuntimeError(EVIL)
"""


# What commands are given and whether some of what is evil must be seen, made harmless. One that is not named here gets
# a word for each argument. What changes memory is last.
CASES: dict[str, list[tuple[tuple[str, ...], bool]]] = {
    "search": [(("Mira",), True), (("Mira", "--explain"), True), (("nothingofthiskind",), False)],
    "context": [(("Where does Mira live?",), False), (("Where does Mira live?", "--copy"), False)],
    "why": [((WORDS,), True), (("memory/long_term/concrete/mira.md",), True), (("no-such-thing" + EVIL,), True)],
    "log": [(("-n", "500"), True), (("--follow",), True)],
    "ask": [(("Where does Mira live?",), True), (("--model", "openai/m", "Where does Mira live?"), True)],
    "hooks": [((), False)],
    "hooks log": [((), False)],
    "hooks install": [(("emacs" + EVIL,), True)],
    "hooks test": [(("emacs" + EVIL,), True)],
    "hooks off": [(("emacs" + EVIL,), True)],
    "plugins": [((), True)],
    "plugins list": [((), True)],
    "plugins trust": [(("--yes", "friendly"), False), ((NAME,), True), (("greedy",), False)],
    "init": [(("{new}" + NAME,), True), (("{root}",), False)],
    "status": [((), True)],
    "doctor": [((), True), (("--fix",), True)],
    "costs": [((), True)],
    "digest": [((), False), (("--since", EVIL), True)],
    "diff": [((), False), (("--since", EVIL), True)],
    "show": [(("mira",), True), ((EVIL, "--at", "0"), True), (("mira", "--at", EVIL), True)],
    "backup": [(("{new}",), False), (("{root}/inbox/" + NAME,), True)],
    "restore": [(("{new}" + NAME,), True)],
    "correct": [((WORDS, "--to", "Mira moved."), True)],
    "greet": [((), True)],
    "crash": [((), True)],
    "promote": [((), False), (("--past",), False), (("--past", "--from", EVIL), True)],
    "rebuild": [(("--into", "{root}/inbox/" + NAME), True)],
    "import": [(("{root}/export.json", "--dry-run"), True), ((EVIL,), True)],
    "adopt": [(("--yes", "memory/long_term/concrete/mira.md"), True)],
    "run": [(("--once",), False), ((), True)],
    "undo": [(("--last",), False), ((EVIL,), True)],
    "forget": [(("memory/long_term/concrete/mira.md",), False), ((EVIL,), True), (("--yes", "Mira " + EVIL), True)],
    "plugins distrust": [((NAME,), True), (("greedy",), False)],
    "service install": [],  # these two would tell this machine's own service manager
    "service uninstall": [],
}
LAST = (
    "chat",
    "correct",
    "adopt",
    "promote",
    "rebuild",
    "organize",
    "run",
    "undo",
    "forget",
    "takeover",
    "plugins distrust",
)
OF_THE_PLUGIN = ("greet", "crash")
ENDLESS = {"run": 6.0, "open": 6.0, "log": 3.0, "chat": 4.0}


def commands() -> dict[str, Any]:
    """Return every command there is, by full name, from the command line itself."""
    app = new_app()
    register_all(app)
    found = {**dict(_walk(typer.main.get_command(app), "")), **dict.fromkeys(OF_THE_PLUGIN)}
    del found["mcp"]  # speaks its protocol to a program, and ends its own process
    return dict(sorted(found.items(), key=lambda each: LAST.index(each[0]) if each[0] in LAST else -1))


def _walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    for key, each in getattr(command, "commands", {}).items():
        yield from _walk(each, f"{name} {key}".strip())
    if name:
        yield name, command


def cases_of(name: str) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield what to run of a command: what it is given above, also as JSON, its help, and a mistake."""
    parameters = getattr(COMMANDS[name], "params", ())
    words = tuple(EVIL for each in parameters if each.param_type_name == "argument" and each.required)
    has_json = any("--json" in each.opts for each in parameters)
    for given, is_telling in CASES.get(name, [(words, False)]):
        yield given, is_telling
        if has_json and "--copy" not in given:
            yield (*given, "--json"), False
    yield ("--help",), name == "greet"
    yield ("--no-such-option" + NAME,), True


COMMANDS = commands()


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """A brain in which everything that can be is poisoned, and the environment of a machine of its own."""
    home = tmp_path_factory.mktemp("poisoned")
    with pytest.MonkeyPatch.context() as patch, ChatServer() as server:
        machine = {f"XDG_{each}_HOME": str(home / each) for each in ("STATE", "CACHE", "CONFIG")}
        machine |= {"HOME": str(home), "OPENAI_API_KEY": "k"}
        for variable, value in machine.items():
            patch.setenv(variable, value)
        none = say('{"queries": []}')
        server.default = lambda asked: (none if "sister Mara" in asked.request.text else say(ANSWER))(asked)
        yield poison(home / "brain", server.url), machine


def poison(root: Path, url: str) -> Path:
    """Make the brain."""
    brain = make_brain(root)
    brain_id = brain.settings.brain_id
    (brain.tree.inbox / "told.md").write_text(f"{STATEMENT}\nWe decided to paint the house {EVIL}.\n")
    run_once(brain)
    brain.close()
    brain = Brain(root)
    do(brain, "promote")
    (brain.tree.inbox / "asked.md").write_text(f"I like tea {EVIL}. Mira likes tea.\n")
    run_once(brain)
    brain.record("poisoned" + NAME, by="plugin" + NAME, data={"what": EVIL, EVIL: [EVIL]})
    costs = {"purpose": NAME, "model": NAME, "cost_usd": 0.1, "tokens_in": 1, "tokens_out": 1, "process": NAME}
    brain.record("model-called", by=NAME, data=costs)
    brain.record("plugin-failed", by=NAME, data={"hook": NAME, "error": EVIL})
    brain.close()
    page = root / "memory/long_term/concrete/mira.md"
    page.write_text(
        f"---\ntitle: {YAML}\ntags: [{YAML}]\nuuid: {YAML}\n---\n# Mira {EVIL}\n\n- {STATEMENT} ^mira\n"
        f'- See [{EVIL}](../nowhere{NAME}.md "uuid:{EVIL}").\n'
    )
    (root / "memory/long_term/concrete/broken.md").write_text(f"---\na: [{EVIL}\n---\n")
    write(root / f"memory/long_term/concrete/{NAME}.md", f"# {EVIL}\n")
    write(root / f"memory/long_term/{NAME}/x.md", "# x\n")
    write(root / f"inbox/{NAME}.pdf", "x")
    write(root / f"inbox/{NAME}.md", "Hello?\n")
    os.makedirs(os.fsencode(root / "inbox") + b"/\x9b31m\xff")
    write(root / "inbox/\udc9b31m\udcff/q.md", "Hello?\n")
    (root / "inbox/refused.md").write_text(f"---\nfocus: {YAML}\nmodel: {YAML}\n---\nHello?\n")
    with (root / "logs/access.log").open("a") as log:
        log.write(EVIL + "\n")
    write(root / f"plugins/{NAME.replace('/', '')}.py", "x = 1\n")
    (root / "plugins/friendly.py").write_text("x = 1\n")
    (root / "greedy.py").write_text(PLUGIN)
    (root / "export.json").write_text(json.dumps([{"id": EVIL, "title": EVIL, "mapping": {}}]))
    write(root / f"logs/journal/{NAME}/2999-01-01.jsonl", "no event " + EVIL + "\n")
    with next((root / "logs/journal").glob("[a-z]*-*/2*.jsonl")).open("ab") as journal:
        journal.write(b'{"kind": "' + EVIL.encode() + b'"}\n')
        line = {"seq": 10_000, "id": new_id(), "at": "2999-01-01T00:00:00Z", "kind": "note-edited" + NAME, "by": NAME}
        line |= {"cause": NAME, "data": {"x": EVIL}, "changes": []}
        journal.write(json.dumps(line).encode() + b"\n")
    config = root / "system/config.yaml"
    config.write_text(
        f"brain_id: {brain_id}\nrecall: {{embedder: {YAML}}}\nplugins: {{disabled: [{YAML}]}}\n"
        f"llm: {{models: {{answer: offline}}, prices: {{{YAML}: [1, 2]}}}}\n"
    )
    brain = Brain(root)
    install_plugin(brain, root / "greedy.py")
    brain.places.config.parent.mkdir(parents=True, exist_ok=True)
    brain.places.config.write_text(f"api_bases: {{openai: {url}, {YAML}: {YAML}}}\n")
    brain.close()
    return root


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("words", [[NAME], ["--brain", "/no/such" + NAME, "status"], ["crash"]])
def test_mistakes_and_tracebacks_are_cleaned(poisoned: tuple[Path, dict[str, str]], words: list[str]) -> None:
    """A command that is none, a brain that is none, and the traceback of a bug that somebody asked for."""
    root, machine = poisoned
    line = words if "--brain" in words else ["--brain", str(root), *words]
    (seen,) = on_terminal([(line, 30.0)], env={**machine, "BRAINIAC_TRACEBACK": "1"})
    check(seen)
    assert VISIBLE.search(seen.text), seen.text


def test_a_pipe_gets_clean_text_and_json_that_reads_back(poisoned: tuple[Path, dict[str, str]]) -> None:
    """What is piped (to `less`, which shows it on the terminal) is clean too; JSON holds the very characters."""
    root, machine = poisoned
    for words in (["search", "Mira"], ["why", WORDS], ["log", "-n", "500"], ["doctor"]):
        done = run_piped(root, machine, *words)
        assert not (CONTROLS | BIDI) & set(done.stdout + done.stderr), words
        assert VISIBLE.search(done.stdout), words
    found = json.loads(run_piped(root, machine, "search", "Mira", "--json").stdout)
    assert any(NAME == hit["title"] for hit in found["hits"])


def run_piped(root: Path, machine: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return run_program("--brain", str(root), *words, env={**os.environ, **machine})


def test_an_answer_that_a_daemon_wrote_is_shown_clean(poisoned: tuple[Path, dict[str, str]]) -> None:
    """Markdown as it stands: entities of control characters, code and links, none of which steers the terminal."""
    root, machine = poisoned
    log = root.parent / "daemon.log"
    with log.open("wb") as out:
        daemon = Program("--brain", str(root), "run", out=out, env={**os.environ, **machine})
    try:
        eventually(lambda: "\nWatching" in log.read_text(), "the daemon watches", 60)
        line = ["--brain", str(root), "ask", "--model", "openai/m", "Tell me of Mira."]
        seen, empty = on_terminal([(line, 60.0), (["--brain", str(root), "ask"], 60.0)], env=machine)
    finally:
        daemon.terminate()
        daemon.wait()
    check(seen)
    assert "Mira lives in Porto. link (https://x.example/a) entity" in seen.text
    assert "entity &#8238;" in seen.text
    assert "waiting" not in empty.text  # nothing was asked


def test_each_receipt_is_told_by_its_words(tmp_path: Path) -> None:
    """Two statements of one page, said on one day, are told apart below the answer, each on one line."""
    root, home = tmp_path / "brain", tmp_path / "home"
    machine = {f"XDG_{each}_HOME": str(home / each) for each in ("STATE", "CACHE", "CONFIG")} | {"HOME": str(home)}
    make_brain(root).close()
    flat = "My flat in Graz has a rent of 640 euros"
    other = f"{flat} more than the one in Linz, {'which was small, ' * 9}so I moved."
    (root / "memory/long_term/concrete/home.md").write_text(f"# Home\n\n- {flat}. ^ab12\n- {other} ^cd34\n")
    line = ["--brain", str(root), "ask", "How much is the rent of my flat in Graz?"]
    (seen,) = on_terminal([(line, 60.0)], env=machine)
    lines = seen.text.partition("It rests on")[2].splitlines()
    assert any(f"{flat}." in line for line in lines), lines
    assert any(f"{flat} more" in line for line in lines), lines
    assert not any("so I moved" in line for line in lines), lines


@pytest.fixture(scope="module")
def outputs(poisoned: tuple[Path, dict[str, str]]) -> dict[str, list[Seen]]:
    """What each command wrote, case by case: a process for each that is endless, one for all that stand between two."""
    root, machine = poisoned
    outputs: dict[str, list[Seen]] = {}
    for _, group in groupby(COMMANDS, lambda name: name if name in ENDLESS else ""):
        names = list(group)
        lines = [(line, ENDLESS.get(name, 60.0)) for name in names for line in lines_of(name, root)]
        seen = iter(on_terminal(lines, typed=b"y\n" * 9 * len(names), env=machine))
        outputs |= {name: [next(seen) for _ in cases_of(name)] for name in names}
    return outputs


def lines_of(name: str, root: Path) -> Iterator[list[str]]:
    """Yield the command lines of a command's cases."""
    places = {"{new}": str(root.parent / name), "{root}": str(root)}
    for words, _ in cases_of(name):
        given = [re.sub(r"\{\w+\}", lambda place: places[place[0]], word) for word in words]
        yield ["--brain", str(root), *name.split(), *given]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_lets_a_control_character_through(outputs: dict[str, list[Seen]], name: str) -> None:
    """Every command, on a real terminal, over a brain whose every text, name and message is poisoned."""
    for (words, is_telling), seen in zip(cases_of(name), outputs[name], strict=True):
        check(seen)
        assert not is_telling or VISIBLE.search(seen.text), f"{words}: {seen.text}"


_LINK = re.compile(r"\x1b\]8;;(file:///[!-~]+)\x1b\\(.*?)\x1b\]8;;\x1b\\")


def check(seen: Seen) -> None:
    assert set() == seen.controls, seen.text[-3000:]
    assert "\rOVERWRITTEN" not in seen.text
    assert b"\x1b[8;5;7m" not in seen.raw
    links = _LINK.findall(seen.raw.decode("utf-8", "replace"))
    assert 2 * len(links) == seen.raw.count(b"\x1b]8;")
    for uri, shown in links:  # no text hides where it leads: it is the end of that path
        assert one_line(unquote(uri)).endswith(shown.partition("#^")[0])
