"""Settings: `system/config.yaml` of the brain and, for what must not be synced, this machine's own file.

A file is read again whenever its stat changes, so a change counts from the next request on.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pydantic
import yaml
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from brainiac.errors import SettingsError
from brainiac.formats.frontmatter import UniqueKeys
from brainiac.places import DEFAULT_ID
from brainiac.storage.files import read_bytes
from brainiac.tree import Layout


class _Section(BaseModel):
    # strict: to YAML `yes` is a truth value, and to Python a truth value is a number
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    # settings that no longer exist, by full name, and what replaced each; they are ignored
    retired: ClassVar[dict[str, str]] = {}


T = TypeVar("T", bound=_Section)

PURPOSES = ("queries", "answer", "reflect", "consolidate", "verify", "synthesize", "summarize", "organize")

DAY_SECONDS = 86_400  # no wait is longer: the system's timers have an end
MIN_BUDGET_TOKENS = 256  # core identity and a prompt need at least this

_Usd = Annotated[float, Field(ge=0)]
_Prices = Annotated[tuple[_Usd, _Usd], pydantic.Strict(False)]  # YAML has lists only


class PathSettings(_Section):
    """Directories within the brain, apart from each other. `system/` stays: the settings are found there."""

    inbox: str = Field("inbox", description="prompts and their answers")
    memory: str = Field("memory", description="short-term and long-term memory")
    plugins: str = Field("plugins", description="the brain's own plugins")
    logs: str = Field("logs", description="access log and journal")

    @model_validator(mode="after")
    def _refuse_overlap(self) -> PathSettings:
        """Refuse folders outside the brain, and folders of which one is within another."""
        paths = {"system": PurePosixPath("system")}
        for name, folder in self:
            path = PurePosixPath(folder)
            if path.is_absolute() or ".." in path.parts or not path.parts:
                raise ValueError(f"`{name}: {folder}` must be a folder within the brain, such as `{name}`")
            for other, other_path in paths.items():
                if path == other_path or other_path in path.parents or path in other_path.parents:
                    raise ValueError(f"`{name}: {folder}` and `{other}: {other_path}` must not hold one another")
            paths[name] = path
        return self


class InboxSettings(_Section):
    """When a prompt file counts as finished, and how many wait at start-up."""

    settle_ms: int = Field(
        100, ge=0, le=1000 * DAY_SECONDS, description="a file that arrived whole is taken after this rest"
    )
    typing_seconds: float = Field(
        20, ge=0, le=DAY_SECONDS, description="a file that grew as one typed is taken after this rest"
    )
    backlog_limit: int = Field(
        20,
        ge=0,
        description="more unanswered prompts than this at start-up wait; the free offline engine answers all",
    )
    keep_days: int | None = Field(
        None,
        ge=0,
        description="an answered prompt of `inbox/` itself leaves it after so many days, once the page of its day has "
        "it word for word; empty: it stays",
    )
    max_bytes: int = Field(1_000_000, ge=1, description="a larger prompt is refused with an error file")


class WatchSettings(_Section):
    """How the tree is watched."""

    polling: bool = Field(False, description="for network drives, where the system reports no changes")
    polling_seconds: float = Field(2, gt=0, le=DAY_SECONDS, description="how often a polled tree is looked at")
    rescan_seconds: float = Field(
        60, gt=0, le=DAY_SECONDS, description="how often everything is looked over, events or not"
    )


class ModelSettings(_Section):
    """Which model serves; endpoints and keys come from the environment or this machine's own config."""

    model: str = Field("offline", description="`offline`, or a litellm name such as `anthropic/claude-sonnet-4-5`")
    models: dict[str, str] = Field(
        default_factory=dict, description=f"another model for one purpose: {', '.join(PURPOSES)}"
    )
    timeout_seconds: float = Field(
        120, gt=0, le=DAY_SECONDS, description="a call that takes longer has failed and is tried again"
    )
    max_output_tokens: int = Field(4096, ge=1, description="the longest answer")
    daily_budget_usd: float = Field(1.00, ge=0, description="no call is made that may pass this in a day")
    background_budget_usd: float | None = Field(None, ge=0, description="cap for background work; empty: none apart")
    prices: dict[str, _Prices] = Field(
        default_factory=dict, description="USD per million tokens in and out, for a model of unknown price"
    )

    @field_validator("models")
    @classmethod
    def _refuse_unknown_purposes(cls, models: dict[str, str]) -> dict[str, str]:
        """Refuse a model for a purpose that there is not."""
        if unknown := [name for name in models if name not in PURPOSES]:
            raise ValueError(f"no purpose is called `{unknown[0]}`; there are {', '.join(PURPOSES)}")
        return models


class ContextSettings(_Section):
    """Working memory."""

    budget_tokens: int | None = Field(
        None, ge=MIN_BUDGET_TOKENS, description="empty: what the model's window allows, at most 32,000"
    )
    background: bool = Field(False, description="list the ten most connected memories")
    memory_tokens: int = Field(2000, ge=0, description="at most so many tokens of found memories; 0: none")
    tool_rounds: int = Field(4, ge=0, description="how often a model may look further before it answers")


class ReflectionSettings(_Section):
    """Near-background."""

    redact_secrets: bool = Field(
        True,
        description="what has the form of a key, password, card or account number does not go beyond the inbox, "
        "but a prompt is sent to its model as written",
    )
    redact_codes: bool = Field(False, description="nor does the number in `code: 1234`, of a door or a bicycle lock")


class PromotionSettings(_Section):
    """From short-term to long-term memory."""

    idle_seconds: float = Field(300, ge=0, description="quiet for so long: consolidate")
    min_events: int = Field(8, ge=1, description="with at least so many exchanges,")
    max_age_hours: float = Field(36, gt=0, description="or one older than this,")
    max_tokens: int = Field(
        4096,
        ge=1,
        description="or short-term memory larger than this; above twice this its oldest exchanges are filed at once",
    )
    carry_open_items: bool = Field(
        True, description="open goals and tasks and pinned facts stay; false: the lists are emptied"
    )


class OrganizationSettings(_Section):
    """The evolution of long-term memory."""

    idle_seconds: float = Field(
        1800, ge=0, description="quiet for so long: organize; so it is every four hours in a shorter quiet"
    )
    min_entries: int = Field(50, ge=1, description="with at least so many new lines in the access log")
    max_entries: int = Field(200, ge=2, description="a folder with more pages is split")
    unused_days: int = Field(180, ge=1, description="what was not used for so long may be archived")


class ReviewSettings(_Section):
    """What a person is asked in `memory/review.md`."""

    max_new: int = Field(5, ge=1, description="so many undecided lines in any seven days; further ones wait")


class RecallSettings(_Section):
    """Search."""

    language: str = Field("english", description="stemming and stop words, by Snowball's name; or none")
    embedder: str = Field("auto", description="`auto`: the one that comes with brainiac; `none`, or a litellm name")

    @field_validator("language")
    @classmethod
    def _refuse_unknown_language(cls, language: str) -> str:
        """Refuse a language without a stemmer."""
        import Stemmer  # most brains leave the default, which is not looked at

        languages = ["none", *Stemmer.algorithms()]
        if language not in languages:
            raise ValueError(f"there is no stemmer for `{language}`; there are {', '.join(languages)}")
        return language


class ServerSettings(_Section):
    """What programs on this machine reach: REST, MCP, OpenAI's API. `brainiac mcp` needs none of it."""

    port: int = Field(0, ge=0, le=65535, description="which port is opened where a machine opens one; 0: 4747")
    host: str = Field(
        "127.0.0.1",
        description="another than this machine alone also needs a token of yours in BRAINIAC_SERVER_TOKEN",
    )
    hosts: tuple[str, ...] = Field((), strict=False, description="further names under which it is reached")
    origins: tuple[str, ...] = Field(
        (), strict=False, description="pages of other places that may call, such as `http://localhost:3000`"
    )

    @field_validator("origins")
    @classmethod
    def _refuse_other_than_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse what is no origin, and a wildcard, which would let in every page that the person opens."""
        for origin in origins:
            if "*" in origin or "://" not in origin or origin.endswith("/"):
                raise ValueError(f"`{origin}` is no origin; name one such as `http://localhost:3000`, never a wildcard")
        return origins


class PluginSettings(_Section):
    """Which plugins stay out."""

    disabled: tuple[str, ...] = Field((), strict=False, description="names of plugins, the four processes included")
    hang_seconds: float = Field(
        300, gt=0, le=DAY_SECONDS, description="a call of a foreign plugin that takes longer is left behind"
    )


class Settings(_Section):
    """Everything in `system/config.yaml`."""

    retired = {
        "paths.system": "`system/` stays where it is",
        "context.max_memories": "`context.memory_tokens`: found memories are limited by their tokens",
        "promotion.max_retired_share": "a run that would retire more than a fifth of memory asks first",
        "organization.every_hours": "when it is quiet, memory is organized every four hours",
        "recall.index": "search has one index, and plugins add none",
    }

    brain_id: str = Field(
        DEFAULT_ID, pattern=r"^[A-Za-z0-9-]{1,36}$", description="made by `brainiac init`; names this machine's folders"
    )
    time_zone: str = Field(
        "UTC",
        description="IANA name such as Europe/Lisbon, written by `brainiac init`: times shown, what is today and the "
        "folders of `events/` go by it; stamps in files stay UTC",
    )
    active_device: str | None = Field(None, description="the device that runs the processes; empty: whichever runs")
    paths: PathSettings = PathSettings()
    sources: tuple[str, ...] = Field(
        (),
        strict=False,
        description="folders of your own notes to search and cite, never written: within the brain (`.` for all of "
        "them beside its own), or `~/vault` and `/path/vault`, which each machine must allow (`brainiac sources`)",
    )
    inbox: InboxSettings = InboxSettings()
    watch: WatchSettings = WatchSettings()
    llm: ModelSettings = ModelSettings()
    context: ContextSettings = ContextSettings()
    reflection: ReflectionSettings = ReflectionSettings()
    promotion: PromotionSettings = PromotionSettings()
    organization: OrganizationSettings = OrganizationSettings()
    review: ReviewSettings = ReviewSettings()
    today: bool = Field(
        False,
        description="`memory/Today.md` says what is due, what waits for you, as boxes to tick, and what changed lately",
    )
    recall: RecallSettings = RecallSettings()
    server: ServerSettings = ServerSettings()
    plugins: PluginSettings = PluginSettings()

    @field_validator("time_zone")
    @classmethod
    def _refuse_unknown_zone(cls, name: str) -> str:
        """Refuse a name that is no time zone on this machine."""
        try:
            ZoneInfo(name)
        except (ValueError, OSError, ZoneInfoNotFoundError) as error:
            raise ValueError(f"there is no time zone `{name}`; name one such as Europe/Lisbon or UTC") from error
        return name

    @field_validator("sources")
    @classmethod
    def _refuse_folders_of_brain(cls, sources: tuple[str, ...], info: pydantic.ValidationInfo) -> tuple[str, ...]:
        """Refuse sources that are no folder, or one that is the brain's own."""
        own = {"system": "system", **dict(info.data.get("paths", PathSettings()))}
        for source in sources:
            path = PurePosixPath(source)
            if not source.strip() or "\0" in source or ".." in path.parts:
                raise ValueError("each must be a folder such as `Notes`, `~/vault` or `/path/vault`, without `..`")
            for name, folder in own.items():
                if PurePosixPath(folder) in (path, *path.parents):
                    raise ValueError(f"`{source}` lies in `paths.{name}`, which is the brain's own")
        return sources

    def layout(self) -> Layout:
        """Return the folders of `paths` as `Tree` takes them."""
        return Layout(**self.paths.model_dump())


PushKind = Literal["related", "waiting", "again"]


class CaptureSettings(_Section):
    """What becomes of what you and an assistant say in a folder."""

    brain: str = Field("", description="the brain to which it comes; empty: to none")
    private: bool = Field(False, description="it must not leave this machine")


class MachineSettings(_Section):
    """This machine's own config, outside every tree."""

    retired = {"semantic_model": "`recall.embedder` in system/config.yaml"}

    api_bases: dict[str, str] = Field(
        default_factory=dict, description="endpoint by litellm provider name or model name"
    )
    api_key_variables: dict[str, str] = Field(
        default_factory=dict, description="name of the environment variable that holds a key, likewise"
    )
    capture: dict[str, CaptureSettings] = Field(
        default_factory=dict,
        description="folders in which what you say to an assistant, and its answers, come into memory, each with "
        "`brain` and `private`; the nearest counts, and one without a `brain` keeps out (`brainiac hooks capture`)",
    )
    push: list[PushKind] = Field(
        default_factory=lambda: list(get_args(PushKind)),
        description="what memory says unasked through an assistant's hooks: `related` at a prompt, `waiting` at a "
        "session's start, `again` after a compaction; an empty list for nothing",
    )
    serve: bool = Field(False, description="`brainiac run` opens the port of `server.port`, as `run --serve` does")
    window: bool = Field(True, description="`brainiac run` serves the window that `brainiac open` shows in a browser")

    def captured(self, place: str) -> tuple[str, CaptureSettings]:
        """Return the nearest folder of `capture` that a place is in, and what becomes of what is said there."""
        real = os.path.realpath(place) if os.path.isabs(place) else ""
        folders = {os.path.realpath(os.path.expanduser(folder)): folder for folder in self.capture}
        inside = [each for each in folders if real and Path(real).is_relative_to(each)]
        nearest = max(inside, key=len, default="")
        return nearest, self.capture[folders[nearest]] if nearest else CaptureSettings()


class SettingsFile(Generic[T]):
    """A settings file that is read again when its stat changes.

    Args:
        path: The file; a missing one means the defaults.
        model: What it must validate as.
    """

    def __init__(self, path: Path, model: type[T]) -> None:
        self.path, self._model = path, model
        # stamp and value in one assignment, so that of two threads none leaves its stamp with the other's value
        self._read: tuple[tuple[int, int, int] | None, T] | None = None

    def read(self) -> T:
        """Return the present settings.

        Raises:
            SettingsError: The file does not validate; every problem is named at once. The last valid settings stay
                available as `last`.
        """
        try:
            status = os.stat(self.path)
            stamp = status.st_ino, status.st_size, status.st_mtime_ns
        except OSError:
            stamp = None
        if self._read:
            former_stamp, former_value = self._read
            # without its folder the disk is not mounted, and the defaults would be wrong
            is_unmounted = stamp is None and not self.path.parent.is_dir()
            if stamp == former_stamp or is_unmounted:
                return former_value
        value = load(self.path, self._model)
        self._read = stamp, value
        return value

    def fall_back(self, value: T) -> None:
        """Use a value as the last valid settings until the file validates."""
        self._read = (0, 0, 0), value  # no file has this stamp

    @property
    def last(self) -> T:
        """The last value that validated, or the defaults."""
        return self._read[1] if self._read else self._model()


class _Loader(UniqueKeys, yaml.SafeLoader):
    """Reads settings; the C loader would crash at deep nesting, this one raises an error."""


def load(path: Path, model: type[T]) -> T:
    """Read and validate a settings file; a missing or empty one gives the defaults.

    Raises:
        SettingsError: With one sentence for every problem.
    """
    entries = _entries_of(path)
    take_retired(entries, model)
    try:
        return model.model_validate(entries)
    except pydantic.ValidationError as error:
        problems = []
        for problem in error.errors():
            where, what = ".".join(map(str, problem["loc"])), problem["msg"].removeprefix("Value error, ")
            if problem["type"] == "extra_forbidden":
                problems.append(f"{path}: `{where}` is not a setting; see docs/settings.md for those there are")
            else:
                problems.append(f"{path}: `{where}`: {what}; found {problem['input']!r}")
        raise SettingsError(*problems) from error


def take_retired(entries: dict[str, Any], model: type[_Section]) -> dict[str, str]:
    """Remove, in place, the settings that no longer exist from a file's entries; return each with its replacement."""
    taken = {}
    for name, replacement in model.retired.items():
        *sections, key = name.split(".")
        section: Any = entries
        for part in sections:
            section = section.get(part) if isinstance(section, dict) else None
        if isinstance(section, dict) and key in section:
            del section[key]
            taken[name] = replacement
    return taken


def retired_settings(path: Path, model: type[_Section]) -> dict[str, str]:
    """Return the settings in a file that no longer exist, each with its replacement; {} for a broken file."""
    try:
        return take_retired(_entries_of(path), model)
    except SettingsError:
        return {}


def _entries_of(path: Path) -> dict[str, Any]:
    """Return the entries of a settings file; {} for a missing or empty one.

    Raises:
        SettingsError: It is no YAML mapping, or cannot be read.
    """
    try:
        content = read_bytes(path)
        raw: Any = None if content is None else yaml.load(content, Loader=_Loader)
    except FileNotFoundError:
        raw = None
    except (OSError, yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or " ".join(str(error).split())
        if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
            reason = f"line {error.problem_mark.line + 1}: {error.problem}"
        raise SettingsError(f"{path}: cannot be read: {reason}; mend it") from error
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise SettingsError(f"{path}: expected `key: value` lines, found {type(raw).__name__}")
    # `section:` with everything commented out below it means its defaults
    return {key: value for key, value in raw.items() if value is not None}
