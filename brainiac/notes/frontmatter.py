"""Front matter: read fast, written without touching what is not changed (docs/format.md, F-FM)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml


def split(text: str, path: str = "") -> tuple[dict[str, Any], int]:
    """Return the front matter and the offset where the body begins."""
    found = re.match(r"\ufeff?---[ \t]*\r?\n((?:.*\n)*?)---[ \t]*(?:\r?\n|\Z)", text)
    if not found:
        return {}, 0
    return yaml.load(found[1], Loader=yaml.CSafeLoader) or {}, found.end()


def render_meta(meta: Mapping[str, Any]) -> str:
    """Return front matter with its fences."""
    return "---\n" + "".join(f"{k}: {json.dumps(v)}\n" for k, v in meta.items()) + "---\n"
