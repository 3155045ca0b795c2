"""`Record`: a JSON object as a dataclass, for what is stored for years and read by other versions and devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from types import NoneType
from typing import Any, ClassVar, NamedTuple, Never, Self, dataclass_transform, get_args, get_origin, get_type_hints


class _Field(NamedTuple):
    """A field of a record and its key in JSON."""

    name: str
    key: str
    type: Any
    default: Any  # MISSING where there is none


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class _Dataclass:
    """Makes each class that is made of it a dataclass."""

    def __init_subclass__(cls) -> None:
        # no code is generated: each command would wait until that is done for sixty classes
        dataclass(init=False, repr=False, eq=False, match_args=False, kw_only=True)(cls)


class Record(_Dataclass):
    """A dataclass whose fields are the keys of a JSON object; so is each class made of it, by keywords.

    A field with its default value is left out of the JSON. A field that is missing or has a value of the wrong type is
    read as its default, or as the empty value of its type, since other versions and devices write journals too.
    Unchanged fields and unknown keys are written back as they were read.

    Attributes:
        stored: The JSON object that it was read from; None where it was not read.
    """

    stored: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    # made at the first use of a class, for that class alone
    _cached_fields: ClassVar[tuple[_Field, ...]]
    _defaults: ClassVar[dict[str, Any]]  # of every field, `MISSING` where it has to be given

    def __init__(self, **values: Any) -> None:
        """Set the fields by name.

        Raises:
            TypeError: A field without a default is missing, or there is no such field.
        """
        if "_defaults" not in type(self).__dict__:  # not those of the class that it inherits from
            type(self)._defaults = {item.name: _default_of(item) for item in fields(self)}
        state = self._defaults | values
        has_unknown_field = len(state) > len(self._defaults)
        if has_unknown_field or MISSING in state.values():
            expected = ", ".join(self._defaults)
            raise TypeError(f"{type(self).__name__} takes {expected}; it was given {', '.join(values)}")
        self.__dict__.update(state)

    def __setattr__(self, name: str, value: object) -> Never:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> Never:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __repr__(self) -> str:
        values = ", ".join(f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr)
        return f"{type(self).__name__}({values})"

    def __eq__(self, other: object) -> bool:
        return self._compared() == other._compared() if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._compared())

    def _compared(self) -> tuple[Any, ...]:
        return tuple(getattr(self, item.name) for item in fields(self) if item.compare)

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Return the record of a JSON object, however old or damaged that is."""
        stored = data if isinstance(data, Mapping) else {}
        return cls(**{item.name: _read_field(item, stored) for item in cls._fields()}, stored=stored)

    @classmethod
    def _fields(cls) -> tuple[_Field, ...]:
        """Return the fields that have a key in JSON; the key of `from_`, whose name Python reserves, is `from`."""
        if "_cached_fields" not in cls.__dict__:  # getting the types takes a hundred times as long as reading a record
            types = get_type_hints(cls)
            cls._cached_fields = tuple(
                _Field(item.name, item.name.rstrip("_"), types[item.name], _default_of(item))
                for item in fields(cls)
                if item.name != "stored"  # the JSON object itself
            )
        return cls._cached_fields

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON values; defaults are left out.

        Of a record that was read from JSON, keys without a field and fields with the value they were read with stay as
        they were stored: another version of the program may have written them otherwise.
        """
        data = dict(self.stored or {})
        as_read = None if self.stored is None else type(self).from_json(self.stored)
        for item in self._fields():
            value = getattr(self, item.name)
            if as_read is not None and value == getattr(as_read, item.name):
                continue
            if value == item.default:
                data.pop(item.key, None)
            else:
                data[item.key] = _plain(value)
        return data


def _default_of(item: Field[Any]) -> Any:
    """Return the default of a field, or `MISSING`; records share a default that is a mapping, since none is changed."""
    return item.default if item.default_factory is MISSING else item.default_factory()


def _read_field(item: _Field, stored: Mapping[str, Any]) -> Any:
    """Return a field's value from a JSON object; the default where it is missing or of the wrong type."""
    if item.key in stored:
        try:
            return _typed(item.type, stored[item.key])
        except (TypeError, ValueError):
            pass
    return _empty(item.type) if item.default is MISSING else item.default


def _typed(kind: Any, value: Any) -> Any:
    """Return a JSON value converted to a field's type.

    Args:
        kind: The type, such as `str | None`, `tuple[str, ...]` or a class of records.
        value: The JSON value.

    Raises:
        TypeError: It is not of that type.
        ValueError: It has too many parts, or too few.
    """
    if type(value) is kind:
        return value  # the common case first: `get_origin` below takes ten times as long, for millions of values
    origin, arguments = get_origin(kind), get_args(kind)
    if NoneType in arguments:  # `str | None`: in each such type None is last
        return None if value is None else _typed(arguments[0], value)
    if origin is tuple and isinstance(value, (list, tuple)):
        if arguments[-1] is Ellipsis:  # `tuple[str, ...]`
            return tuple(_typed(arguments[0], part) for part in value)
        parts = zip(arguments, value, strict=True)
        return tuple(part if type(part) is kind else _typed(kind, part) for kind, part in parts)
    if origin is Mapping and isinstance(value, Mapping):
        return {key: _typed(arguments[1], part) for key, part in value.items()}
    if origin is None and issubclass(kind, Record) and isinstance(value, Mapping):
        return kind.from_json(value)
    if origin is None and isinstance(value, (int, float) if kind is float else kind):
        return value  # JSON may have a float as `1`
    raise TypeError(f"{value!r} is no {kind}")


def _empty(kind: Any) -> Any:
    """Return the empty value of a type: None where it allows that, else `""`, `0`, `()` and so on."""
    if NoneType in get_args(kind):
        return None
    origin = get_origin(kind) or kind
    return {} if origin is Mapping else origin()


def _plain(value: Any) -> Any:
    """Return a value as JSON values: records as objects, tuples as lists, also within lists and mappings."""
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return value
