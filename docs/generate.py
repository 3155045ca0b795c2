"""Writes the reference pages from the code: settings, hooks, events, cli and verbs. A test fails when they are stale.

Run it as `python docs/generate.py`.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import typer
from pydantic import BaseModel

import brainiac
from brainiac import events
from brainiac.cli.app import new_app, register_all
from brainiac.formats.access_log import AccessEntry
from brainiac.formats.page import Memory, Statement
from brainiac.formats.prompt import Command, Exchange, Prompt, Response
from brainiac.host import hookspecs
from brainiac.llm.context.blocks import Block
from brainiac.records import Record
from brainiac.search.documents import Hit
from brainiac.settings import MachineSettings, Settings
from brainiac.verbs import VERBS
from docs import public

FOLDER = Path(__file__).parent
NOTE = "<!-- Written by docs/generate.py; change the code's own descriptions instead. -->\n"


def settings_page() -> str:
    """Return the reference of all settings."""
    lines = [
        "# Settings\n",
        NOTE,
        "`system/config.yaml` in the brain. Everything is optional. The file is read again when it changes, so",
        "a change counts on the next request; only `brainiac takeover` writes it. All mistakes in it are told at once,",
        "and while it is broken the last good settings hold (`brainiac status` says so): a daemon goes on with them,",
        "and commands that only read take them from what a daemon of this machine last knew, else the defaults. All",
        "other commands refuse until it is mended.\n",
        *_section(Settings, ""),
        "\n# This machine's own settings\n",
        "`config.yaml` in the user's config folder (`~/.config/brainiac/` on Linux), outside every brain: where",
        "requests go and which environment variable holds a key. A brain that was synced from elsewhere cannot change",
        "them.\n",
        *_section(MachineSettings, ""),
        "\n# Settings that no longer exist\n",
        "They are ignored; `brainiac status` and `brainiac doctor` name those that are still set.\n",
        "| setting | what replaced it |",
        "|---|---|",
        *(
            f"| `{name}` | {instead} |"
            for model in (Settings, MachineSettings)
            for name, instead in model.retired.items()
        ),
    ]
    return "\n".join(lines) + "\n"


def _section(model: type[BaseModel], prefix: str) -> Iterator[str]:
    fields = model.model_fields.items()
    types = get_type_hints(model)  # plain, without what narrows them
    plain = [(name, field) for name, field in fields if not _is_section(field.annotation)]
    if plain:
        yield "| setting | default | type | meaning |"
        yield "|---|---|---|---|"
    for name, field in plain:
        default = field.get_default(call_default_factory=True)
        bounds = ", ".join(_bound(each) for each in field.metadata if _bound(each))
        kind = _type_name(types[name]) + (f", {bounds}" if bounds else "")
        yield f"| `{prefix}{name}` | `{_shown(default)}` | {kind} | {field.description or ''} |"
    for name, field in fields:
        if _is_section(field.annotation):
            yield f"\n## `{name}`\n"
            yield f"{inspect.getdoc(field.annotation)}\n"
            yield from _section(field.annotation, f"{name}.")  # type: ignore[arg-type]


def _is_section(annotation: Any) -> bool:
    return inspect.isclass(annotation) and issubclass(annotation, BaseModel)


def _bound(constraint: Any) -> str:
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    found = (f"{sign} {getattr(constraint, name)}" for name, sign in signs.items() if hasattr(constraint, name))
    return next(found, "")


def _type_name(annotation: Any) -> str:
    if inspect.isclass(annotation) and not get_args(annotation):
        return str(annotation.__name__)
    return str(annotation).replace("typing.", "").replace("pathlib.", "").replace("|", "or")


def _shown(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    return "[]" if value == () else str(value)


def hooks_page() -> str:
    """Return the reference of all hooks."""
    lines = ["# Hooks\n", NOTE, f"{inspect.getdoc(hookspecs)}\n"]
    for name, function in hooks():
        lines += [f"## `{name}{_signature(function)}`\n", f"{inspect.getdoc(function)}\n"]
    lines += ["# What hooks hand over\n", "Values; nothing of them can be changed. All paths are relative, with `/`.\n"]
    for value in HANDED_OVER:
        lines += [f"## {value.__name__}\n", f"{_first_words(value)}\n", *_attributes(value), ""]
    return "\n".join(lines).rstrip() + "\n"


HANDED_OVER: tuple[type, ...] = (
    Prompt,
    Command,
    Exchange,
    Response,
    Memory,
    Statement,
    events.FileChange,
    events.Event,
    events.RecordedChange,
    AccessEntry,
    Hit,
    Block,
)


def _first_words(value: type) -> str:
    return (inspect.getdoc(value) or "").partition("\n\nAttributes:")[0].partition("\n\nArgs:")[0]


def _attributes(value: type) -> Iterator[str]:
    """Yield a table of a value's fields and properties, with what the docstrings say of them."""
    said = meanings_of(value)
    yield from ("| field | type | meaning |", "|---|---|---|")
    for field in dataclasses.fields(value):
        if not field.name.startswith("_"):
            kind = str(getattr(field.type, "__name__", field.type)).replace("|", "or")
            yield f"| `{field.name}` | {kind} | {said.get(field.name, '')} |"
    for name, found in vars(value).items():
        read = found.fget if isinstance(found, property) else getattr(found, "func", None)
        if read is not None and not name.startswith("_"):
            kind = str(read.__annotations__.get("return", "")).replace("|", "or")
            yield f"| `{name}` | {kind} | {' '.join((inspect.getdoc(read) or '').split())} |"


def hooks() -> list[tuple[str, Any]]:
    """Return name and function of every hook, in the order of the file."""
    return [(name, each) for name, each in vars(hookspecs).items() if hasattr(each, "brainiac_spec")]


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    arguments = ", ".join(f"{each.name}: {each.annotation}" for each in signature.parameters.values())
    result = "" if signature.return_annotation == "None" else f" -> {signature.return_annotation}"
    return f"({arguments}){result}"


def events_page() -> str:
    """Return the reference of all events."""
    lines = [
        "# Events\n",
        NOTE,
        "Every commit is one line of JSON in `logs/journal/DEVICE/DAY.jsonl` ([format.md](format.md) describes it).",
        "Here is what `data` holds for each kind of ours. `brainiac log` lists events; a plugin reads `event.kind` and",
        "`event.data`, or `event.what`, which is a value of the class named here (`from brainiac import events`). A",
        "field with a default is left out while it holds that, and older journals may lack any field. To any kind,",
        "plugins' kinds included, a commit may add:\n",
        "| field | type | meaning |",
        "|---|---|---|",
        "| `off_record` | list of text | hashes of contents that are off the record: the journal has no text of them |",
        "| `displaced` | list of text | paths where a person's save came between; it is merged |",
        "| `left` | list of text | paths that a person changed in the moment of writing; they were not written |",
        "| `left_texts` | map of text | hashes of what was to be written there, by path |",
        "\nKinds that plugins or a later version record are kept as they are.\n",
    ]
    committers = committers_of_events()
    for kind, event in sorted(events.KINDS.items()):
        lines += [f"## `{kind}`\n", f"`{event.__name__}`. {_described(event)}\n"]
        if packages := committers[event.__name__]:
            lines.append(f"Recorded by {', '.join(f'`{package}`' for package in packages)}.\n")
        lines += _fields_table(event)
    lines += ["# Parts of events\n", "Objects within the fields above.\n"]
    for record in records():
        lines += [f"## {record.__name__}\n", f"{_described(record)}\n", *_fields_table(record)]
    return "\n".join(lines).rstrip() + "\n"


def records() -> list[type[Record]]:
    """Return the classes of what stands within events, in the order of the file."""
    classes = (each for each in vars(events).values() if inspect.isclass(each) and issubclass(each, Record))
    return [each for each in classes if each is not Record and not issubclass(each, events.EventData)]


def committers_of_events() -> dict[str, list[str]]:
    """Return the packages whose code makes an event of each class, by the class' name."""
    committers: dict[str, dict[str, None]] = {event.__name__: {} for event in events.KINDS.values()}
    root = FOLDER.parent
    for path in sorted((*root.glob("brainiac/**/*.py"), *root.glob("plugins/**/*.py"))):
        calls = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call)]
        # a class is called, or handed to what calls it
        makers = [call.func for call in calls] + [call.args[0] for call in calls if _name_of(call.func) in _MAKERS]
        names = set(map(_name_of, makers))
        for name in names & committers.keys():
            package = path.parent if len(path.relative_to(root).parts) > 2 else path.with_suffix("")
            committers[name][package.relative_to(root).as_posix()] = None
    return {name: list(packages) for name, packages in committers.items()}


_MAKERS = frozenset({"_record_exchange"})


def _name_of(expression: ast.expr) -> str:
    return str(getattr(expression, "attr", getattr(expression, "id", "")))


def meanings_of(record: type) -> dict[str, str]:
    """Return what the fields of an event, or of a part of one, mean, as its docstring and those of its bases say."""
    meanings: dict[str, str] = {}
    for base in reversed(record.__mro__):
        _, _, attributes = inspect.cleandoc(base.__doc__ or "").partition("Attributes:\n")
        joined = re.sub(r"\n {8}", " ", attributes)
        meanings |= dict(re.findall(r"^ {4}(\w+): (.*)$", joined, re.MULTILINE))
    return meanings


def _described(record: type[Record]) -> str:
    return inspect.getdoc(record).partition("\n\nAttributes:")[0]  # type: ignore[union-attr]


def _fields_table(record: type[Record]) -> Iterator[str]:
    meanings, types = meanings_of(record), get_type_hints(record)
    names = [each.name for each in dataclasses.fields(record) if each.name != "stored"]
    if names:
        yield "| field | type | meaning |"
        yield "|---|---|---|"
    for name in names:
        yield f"| `{name.rstrip('_')}` | {_json_type(types[name])} | {meanings[name]} |"
    if names:
        yield ""


def _json_type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if type(None) in arguments:
        return f"{_json_type(arguments[0])} or null"
    if origin is tuple and arguments[-1] is Ellipsis:
        return f"list of {_json_type(arguments[0])}"
    if origin is tuple:
        return f"[{', '.join(map(_json_type, arguments))}]"
    if origin is Mapping:
        return f"map of {_json_type(arguments[1])}"
    return {str: "text", int: "number", float: "number", bool: "true or false"}.get(annotation, annotation.__name__)


def cli_page() -> str:
    """Return the reference of all commands."""
    lines = [
        "# Command line\n",
        NOTE,
        "`--brain DIR` may stand anywhere; without it `BRAINIAC_HOME` counts, else the brain at or above the current",
        "folder. `--json` prints what scripts read. Exit codes: 0 done, 1 what was asked for failed, 2 wrong use.\n",
        "Nothing that was read from a file, a model or a plugin reaches the terminal with a control character in it:",
        "each is shown as its escape, such as `\\u001b`, in a pipe too; JSON reads it back as it was.\n",
        "`python -m brainiac` does what `brainiac` does, but not in a folder that holds a `brainiac.py`: Python runs",
        "that one. Use the `brainiac` command there, or `python -P -m brainiac`.\n",
    ]
    for name, command in commands():
        lines += [f"## `brainiac {name}{_arguments(command)}`\n", f"{inspect.cleandoc(command.help or '')}\n"]
        lines += [*_options(command), ""]
    return "\n".join(lines).rstrip() + "\n"


def commands() -> list[tuple[str, Any]]:
    """Return full name and click command of every command."""
    return sorted(_walk(root(), ""))


def root() -> Any:
    """Return the click command that all others are below."""
    app = new_app()
    register_all(app)
    return typer.main.get_command(app)


def _walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    for key, each in getattr(command, "commands", {}).items():
        yield from _walk(each, f"{name} {key}".strip())
    if name:
        yield name, command


def _arguments(command: Any) -> str:
    return "".join(f" {_name(each)}" for each in command.params if _is_argument(each))


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _options(command: Any) -> Iterator[str]:
    for each in command.params:
        name = f"`{_name(each)}`" if _is_argument(each) else ", ".join(f"`{opt}`" for opt in each.opts)
        if each.name != "help":
            yield f"- {name}: {each.help or ''}"


def verbs_page() -> str:
    """Return the reference of the verbs that all doors offer."""
    lines = [
        "# Verbs\n",
        NOTE,
        "What REST (`POST /api/VERB`) and MCP offer; [doors.md](doors.md) tells how to reach them.\n",
    ]
    for name, verb in VERBS.items():
        lines += [f"## `{name}`\n", f"{verb.help}\n", "| argument | what it is | without it |", "|---|---|---|"]
        needed = verb.schema.get("required", ())
        for key, field in verb.schema["properties"].items():
            default = "refused" if key in needed else f"`{json.dumps(field['default'])}`"
            lines.append(f"| `{key}` | {field['description']} | {default} |")
        lines.append(f"\nIt returns {', '.join(f'`{key}`' for key in verb.result.split())}.\n")
    return "\n".join(lines).rstrip() + "\n"


def modules_page() -> str:
    """Return the list of all modules with what each is for."""
    lines = [
        "# Modules\n",
        NOTE,
        "Every module and what it is for; [architecture.md](architecture.md) tells how they stand on each other.",
    ]
    root = FOLDER.parent
    for folder in sorted({path.parent for top in ("brainiac", "plugins") for path in (root / top).rglob("*.py")}):
        modules = [(path.name, _purpose(path)) for path in sorted(folder.glob("*.py"))]
        rows = [f"| `{name}` | {purpose} |" for name, purpose in modules if purpose]
        if rows:
            lines += [
                f"\n## `{folder.relative_to(root).as_posix()}/`\n",
                "| module | what it is for |",
                "|---|---|",
                *rows,
            ]
    return "\n".join(lines) + "\n"


def _purpose(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(docstring.split("\n\n")[0].split())


def api_page() -> str:
    """Return the reference of what plugins may import."""
    lines = ["# What plugins may import\n", NOTE, f"{inspect.getdoc(public)}\n"]
    rows = [f"| `{name}` | {_first_sentence(_exported(name))} |" for name in brainiac.__all__]
    lines += ["## From `brainiac` itself\n", "| name | what it is |", "|---|---|", *rows, ""]
    for reason, modules in public.NAMES.items():
        lines += [f"## {reason}\n", "| name | module | what it is |", "|---|---|---|"]
        for module, names in modules.items():
            source = (FOLDER.parent / f"{module.replace('.', '/')}.py").read_text("utf-8")
            rows = {signature.partition("(")[0]: (signature, about) for signature, about in public_names(source)}
            for signature, about in map(rows.__getitem__, names.split()):
                lines.append(f"| `{signature}` | `{module}` | {about} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _exported(name: str) -> str:
    return inspect.getdoc(getattr(brainiac, name)) or ""


def _first_sentence(docstring: str) -> str:
    """Return the first sentence of a docstring, as a cell of a table."""
    text = " ".join(docstring.split("\n\n")[0].split())
    return re.split(r"(?<=[.:;])\s+(?=[A-Z`])", text)[0].replace("|", "\\|")


def public_names(source: str) -> Iterator[tuple[str, str]]:
    """Yield signature and first sentence of each function and class that a module defines, in its order."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            arguments = ", ".join(_parameters(node)) if isinstance(node, ast.FunctionDef) else None
            signature = node.name if arguments is None else f"{node.name}({arguments})"
            yield signature, _first_sentence(ast.get_docstring(node) or "")


def _parameters(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the names of a function's parameters, those with a default with `=…`, after `*` those by name alone."""
    positional = [*function.args.posonlyargs, *function.args.args]
    required = len(positional) - len(function.args.defaults)
    yield from (each.arg + ("=…" if number >= required else "") for number, each in enumerate(positional))
    if function.args.vararg or function.args.kwonlyargs:
        yield f"*{function.args.vararg.arg if function.args.vararg else ''}"
    for each, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        yield each.arg + ("=…" if default else "")


PAGES = {
    "api.md": api_page,
    "modules.md": modules_page,
    "settings.md": settings_page,
    "hooks.md": hooks_page,
    "events.md": events_page,
    "cli.md": cli_page,
    "verbs.md": verbs_page,
}

if __name__ == "__main__":
    for page, render in PAGES.items():
        (FOLDER / page).write_text(render(), encoding="utf-8")
