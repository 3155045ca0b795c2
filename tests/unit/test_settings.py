"""Settings: validated whole, read again when they change, never rewritten."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError, model_validator

from brainiac import Brain
from brainiac.errors import ConfinementError, SettingsError
from brainiac.llm.schemas import Purpose
from brainiac.settings import PURPOSES, MachineSettings, Settings, SettingsFile, load, retired_settings


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def test_what_is_not_set_has_its_default(config: Path) -> None:
    """No file, an empty one, and a section with everything below it commented out."""
    assert Settings() == load(config, Settings)
    config.write_text("# only a comment\n")
    assert Settings() == load(config, Settings)
    config.write_text("inbox:\n  # settle_ms: 100\nllm:\n  model: openai/gpt-5-mini\n")
    found = load(config, Settings)
    assert (Settings().inbox, "openai/gpt-5-mini") == (found.inbox, found.llm.model)


def test_every_problem_is_told_at_once(config: Path) -> None:
    """A file with four mistakes gives four sentences, each with file, key, what was found and what is allowed."""
    config.write_text("inbox:\n  settle_ms: soon\n  colour: blue\npromotion:\n  idle_seconds: -7\nmodle: offline\n")
    with pytest.raises(SettingsError) as caught:
        load(config, Settings)
    problems = caught.value.problems
    assert 4 == len(problems)
    assert all(problem.startswith(str(config)) for problem in problems)
    assert {"`inbox.settle_ms`", "`inbox.colour`", "`promotion.idle_seconds`", "`modle`"} == {
        problem.split(": ")[1].split(" is not")[0] for problem in problems
    }
    assert any("`modle` is not a setting; see docs/settings.md" in problem for problem in problems)
    assert any("found 'soon'" in problem for problem in problems)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("inbox: [", "cannot be read"),
        ("- a\n- b\n", "expected `key: value` lines, found list"),
        ("just words", "found str"),
        ("\x00", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("a: &a [*a]", "`a` is not a setting"),
        ("1: 2", "1"),
    ],
)
def test_what_is_no_settings_file_is_told(config: Path, text: str, told: str) -> None:
    """Broken YAML, other shapes and hostile nesting are a sentence, never a traceback."""
    config.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load(config, Settings)
    assert told in str(caught.value)


@pytest.mark.parametrize(("model", "name"), [(m, name) for m in (Settings, MachineSettings) for name in m.retired])
def test_a_setting_that_no_longer_exists_is_ignored(config: Path, model: type[Settings], name: str) -> None:
    """Whatever it was set to, the file validates as if it were not there, and what replaced it can be told."""
    *sections, key = name.split(".")
    text = f"{key}: [any, {{thing: 1}}]\n"
    for section in reversed(sections):
        text = f"{section}:\n" + "".join(f"  {line}\n" for line in text.splitlines())
    config.write_text(text)
    assert model() == load(config, model)
    assert {name: model.retired[name]} == retired_settings(config, model)
    assert model.retired[name]


@pytest.mark.parametrize("text", ["", "paths:\n", "paths: 3\n", "[", "- a\n", "paths: {sytem: x}\n"])
def test_nothing_is_called_retired_that_is_not(config: Path, text: str) -> None:
    """An empty, broken or mistyped file names no setting of old; a typing mistake is refused as ever."""
    config.write_text(text)
    assert {} == retired_settings(config, Settings)


@given(st.text(max_size=200))
def test_any_text_is_settings_or_a_sentence(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """Whatever the file holds, it either validates or raises SettingsError."""
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    problems: Sequence[str] = ("none",)
    try:
        load(path, Settings)
    except SettingsError as error:
        problems = error.problems
    assert problems


def test_a_late_reader_leaves_no_older_value_behind(config: Path) -> None:
    """A thread that read before a change and ends amid another's read does not make its value the one of now."""
    reading, go_on = threading.Event(), threading.Event()

    class Slow(Settings):
        @model_validator(mode="after")
        def _wait(self) -> Self:
            if threading.current_thread() is late:
                reading.set()
                go_on.wait(10)
            return self

    class File(SettingsFile[Slow]):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if reading.is_set() and threading.current_thread() is not late:
                go_on.set()
                late.join(10)

    config.write_text("llm: {daily_budget_usd: 5.0}\n")
    file = File(config, Slow)
    late = threading.Thread(target=file.read)
    late.start()
    assert reading.wait(10)
    config.write_text("llm: {daily_budget_usd: 0.25}\n")
    assert 0.25 == file.read().llm.daily_budget_usd
    assert 0.25 == file.read().llm.daily_budget_usd


def test_while_the_file_is_broken_the_last_valid_settings_hold(config: Path) -> None:
    """A mistake made while the daemon runs stops nothing, and is told to whoever asks."""
    file = SettingsFile(config, Settings)
    assert Settings() == file.last
    config.write_text("inbox:\n  settle_ms: 7\n")
    file.read()
    config.write_text("inbox:\n  settle_ms: [\n")
    with pytest.raises(SettingsError):
        file.read()
    assert 7 == file.last.inbox.settle_ms
    config.write_text("inbox:\n  settle_ms: 8\n")
    assert 8 == file.read().inbox.settle_ms


def test_reading_touches_nothing(config: Path) -> None:
    """Comments, order and unknown spacing stay byte for byte: the file is never written by reading it."""
    text = "# mine\r\n\r\ninbox:   {settle_ms:   5}  # why\r\n"
    config.write_bytes(text.encode())
    before = os.stat(config)
    assert 5 == SettingsFile(config, Settings).read().inbox.settle_ms
    assert (text.encode(), before.st_mtime_ns) == (config.read_bytes(), os.stat(config).st_mtime_ns)


@pytest.mark.parametrize(
    "folder", ["..", "/tmp", "a/../../b", ".", "", "system", "system/inbox", "memory/in", "memory"]
)
def test_places_outside_or_inside_one_another_are_refused(config: Path, folder: str) -> None:
    """A directory outside the brain, the root itself, or one that holds another is refused by name.

    Seeds: P7.
    """
    config.write_text(f"paths:\n  inbox: {folder!r}\n")
    with pytest.raises(SettingsError, match="inbox"):
        load(config, Settings)


def test_a_brain_with_a_place_that_links_outside_does_not_open(tmp_path: Path) -> None:
    """Validation sees words; the tree sees links, and refuses those that lead out."""
    (tmp_path / "brain/system").mkdir(parents=True)
    (tmp_path / "brain/system/config.yaml").write_text("paths:\n  inbox: drop\n")
    os.symlink(tmp_path, tmp_path / "brain/drop")
    with pytest.raises(ConfinementError):
        Brain(tmp_path / "brain")


@pytest.mark.parametrize("brain_id", ["../../.ssh", "a/b", "", "x" * 37, "a b"])
def test_a_brain_id_names_no_other_folder(config: Path, brain_id: str) -> None:
    """A synced config cannot point this machine's state folder elsewhere."""
    config.write_text(f"brain_id: {brain_id!r}\n")
    with pytest.raises(SettingsError, match="brain_id"):
        load(config, Settings)


def test_a_brain_reads_its_settings_anew(tmp_path: Path) -> None:
    """`brain.settings` follows the file; `check_settings` tells what is wrong with it.

    Seeds: R11, P7.
    """
    config = tmp_path / "system/config.yaml"
    config.parent.mkdir()
    config.write_text("context:\n  background: true\n")
    brain = Brain(tmp_path)
    assert brain.settings.context.background
    config.write_text("context:\n  background: false \n")
    assert not brain.settings.context.background
    config.write_text("context:\n  background: perhaps\n")
    assert not brain.settings.context.background
    with pytest.raises(SettingsError, match="perhaps"):
        brain.check_settings()


def test_endpoints_and_keys_have_no_place_in_the_tree(config: Path) -> None:
    """A synced config.yaml cannot send a key to a stranger: where requests go is this machine's own setting."""
    for section in ("api_bases: {openai: 'http://stranger'}", "llm: {api_base: 'http://stranger'}"):
        config.write_text(section)
        with pytest.raises(SettingsError, match="is not a setting"):
            load(config, Settings)
        assert not {"api_base", "api_bases", "api_key"} & set(type(Settings().llm).model_fields)
    config.write_text("api_bases: {openai: 'http://localhost:8080'}")
    assert {"openai": "http://localhost:8080"} == load(config, MachineSettings).api_bases


def test_the_shipped_file_validates_and_shows_true_defaults() -> None:
    """The shipped config.yaml sets nothing but defaults, and what it shows commented out are settings that exist."""
    path = Path(__file__).parent.parent.parent / "system/config.yaml"
    assert Settings() == load(path, Settings).model_copy(update={"brain_id": "default"})
    text = path.read_text()
    assert "brain_id: default" in text
    for section, key, value in re.findall(r"^(\w+):\n(?:  .*\n)*?  # (\w+): ([\d.]+|true|false)\b", text, re.MULTILINE):
        assert yaml.safe_load(value) == Settings().model_dump()[section][key]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("llm: {model: a/b}\nllm:\n  model: c/d\n", "line 2: `llm` stands twice; mend it"),
        ("inbox:\n  settle_ms: 1\n  settle_ms: 2\n", "line 3: `settle_ms` stands twice"),
        ("inbox:\n\tsettle_ms: 1\n", "line 2: found character"),
        ("recall: {language: klingon}", "`recall.language`: there is no stemmer for `klingon`; there are none, "),
        ("llm: {models: {qeries: a/b}}", "`llm.models`: no purpose is called `qeries`; there are queries, answer, "),
        ("context: {budget_tokens: -5}", "`context.budget_tokens`: Input should be greater than or equal to 256"),
        ("inbox: {settle_ms: yes}", "`inbox.settle_ms`: Input should be a valid integer; found True"),
        ("promotion: {max_age_hours: true}", "`promotion.max_age_hours`: Input should be a valid number; found True"),
        ("watch: {rescan_seconds: .inf}", "`watch.rescan_seconds`: Input should be a finite number"),
        ("watch: {rescan_seconds: 1.0e+300}", "`watch.rescan_seconds`: Input should be less than or equal to 86400"),
        ("llm: {prices: {a/b: [-1, 2]}}", "`llm.prices.a/b.0`: Input should be greater than or equal to 0"),
        ("watch: {polling: !!bool x}", "cannot be read"),
    ],
)
def test_no_wrong_value_passes_in_silence(config: Path, text: str, told: str) -> None:
    """A key that stands twice, an unknown name, a truth value for a number, and what is out of bounds are told."""
    config.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load(config, Settings)
    assert told in str(caught.value)


def test_what_stands_for_a_number_or_a_list_is_taken() -> None:
    """Whole numbers serve as decimals, lists as pairs; other stemmers and every purpose may be named."""
    assert list(PURPOSES) == [each.value for each in Purpose]
    models = dict.fromkeys(PURPOSES, "a/b")
    llm = {"timeout_seconds": 5, "prices": {"a/b": [1, 0.5]}, "models": models}
    found = Settings.model_validate(
        {"llm": llm, "recall": {"language": "none"}, "plugins": {"disabled": ["promotion"]}}
    )
    assert (5.0, {"a/b": (1.0, 0.5)}, models) == (found.llm.timeout_seconds, found.llm.prices, found.llm.models)
    assert ("none", ("promotion",)) == (found.recall.language, found.plugins.disabled)


@pytest.mark.parametrize(
    "name",
    [each for each, _ in Settings() if each not in ("brain_id", "time_zone", "active_device", "sources", "today")],
)
def test_every_number_has_a_least_value(name: str) -> None:
    """No number among the settings may be below zero."""
    section = Settings.model_fields[name].annotation
    assert section is not None
    numbers = [
        key for key, field in section.model_fields.items() if re.search(r"\b(int|float)\b", str(field.annotation))
    ]
    taken = []
    for key in numbers:
        try:
            section.model_validate({key: -1})
            taken.append(key)
        except ValidationError:
            pass
    assert [] == taken
