"""Files of the state folder that cannot be read: set aside, so that the brain goes on and nothing is destroyed.

What is derived is made anew without a word; what is not is named by `status` and `doctor` until a person removes it.
"""

from __future__ import annotations

import os
import sqlite3
from itertools import count
from pathlib import Path

SUFFIX = ".damaged"
_CORRUPT, _NO_DATABASE, _ERROR = 11, 26, 1  # sqlite3.h; the last: a table or a column is missing


def free_name(path: Path) -> Path:
    """Return the name under which what stands at a path is set aside."""
    names = (path.with_name(f"{path.name}{SUFFIX}{f'-{number}' if number else ''}") for number in count())
    return next(name for name in names if not os.path.lexists(name))


def make_way(path: Path) -> None:
    """Set aside what is no file where a file is to be."""
    if os.path.lexists(path) and not path.is_file():
        os.rename(path, free_name(path))


def were_set_aside(folder: Path) -> list[Path]:
    """Return what was set aside in a folder."""
    return sorted(folder.glob(f"*{SUFFIX}*"))


def is_damage(error: Exception) -> bool:
    """Return whether an error of SQLite tells of a damaged file rather than of trouble that passes."""
    if not isinstance(error, sqlite3.Error):
        return isinstance(error, ValueError | TypeError)  # a value of another kind than was written
    code = getattr(error, "sqlite_errorcode", None)
    is_undecodable = isinstance(error, sqlite3.OperationalError) and "decode" in str(error)
    return is_undecodable or (code is not None and code & 0xFF in (_CORRUPT, _NO_DATABASE, _ERROR))
