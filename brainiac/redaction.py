"""Secrets are taken out before anything goes beyond the inbox; what is one is decided by detect-secrets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brainiac.brain import Brain

MASK = "[redacted {kind}]"

# detect-secrets takes 0.25 s to import and 1 ms a line: only text that could hold a secret is shown to it
_SUSPECT = re.compile(
    r"(?i)passw|passphrase|secret|token|api.?key|credential|-----BEGIN|://[^\s/]+:[^\s/]+@|\bpin\b"
    # anchored where a word begins: a long word is looked at once, not once from each of its letters
    r"|(?<![\w+/=.-])(?=[\w+/=.-]{16,})(?=[^\d\s]*\d)(?=[^a-z\s]*[a-z])[\w+/=.-]{16}"
)
_TOLD = re.compile(
    r"(?i)\b(?:passw(?:or)?d|passphrase|passcode|pin(?:\s+code)?|api[ _-]?key|secret|(?:access\s+)?token)"
    r"(?:\s+(?:for|of|to)\s+[^:=\n]{1,40}?)?\s*(?:\bis\b|:|=)\s*[\"'`]?(?P<secret>[^\s\"'`,;]*[^\s\"'`,;.!?])"
)
_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_PLAIN_WORD = re.compile(r"[A-Za-z]+(?:[-'/][A-Za-z]+)*|[0-9a-f]{7,64}|[0-9a-f-]{36}")
_TOKEN = re.compile(r"[^\s\"'`<>()\[\],;]+")
_ENTROPY_LIMIT, _ENTROPY_LENGTH = 4.2, 20


def redact(brain: Brain, text: str) -> str:
    """Return a text without the secrets in it, each named by its kind.

    Plugins' `redact` hooks are asked in turn, each with what the last one left.
    """
    if not text:
        return text
    if brain.settings.reflection.redact_secrets:
        text = redact_secrets(text)
    return str(brain.plugins.chain("redact", "text", text, brain=brain))


def redact_secrets(text: str) -> str:
    """Return a text in which every secret that is recognized stands as `[redacted KIND]`."""
    if not _SUSPECT.search(text):
        return text
    text = _KEY_BLOCK.sub(MASK.format(kind="private key"), text)
    return "".join(_redact_line(line) for line in text.splitlines(keepends=True))


def _redact_line(line: str) -> str:
    if not _SUSPECT.search(line):
        return line
    secrets = {found["secret"]: "secret" for found in _TOLD.finditer(line) if _is_secret_word(found["secret"])}
    for kind, value in _detected(line):
        # some detectors report only a part: the whole word that holds it goes
        for word in _TOKEN.findall(line):
            if value in word and not _PLAIN_WORD.fullmatch(word):
                secrets[value if "://" in word else word] = kind
    for value in sorted(secrets, key=len, reverse=True):
        line = line.replace(value, MASK.format(kind=secrets[value]))
    return line


def _is_secret_word(word: str) -> bool:
    """Tell a told secret (`hunter2`) from the next word of a sentence (`the password is wrong`)."""
    return not word.isalpha() or len(word) > 11 or not word.islower()


def _detected(line: str) -> list[tuple[str, str]]:
    from detect_secrets.core.scan import scan_line
    from detect_secrets.settings import transient_settings

    with transient_settings({"plugins_used": [{"name": name} for name in _detectors()]}):
        found = [(secret.type.lower(), secret.secret_value or "") for secret in scan_line(line)]
    return [(kind, value) for kind, value in found if value] + [
        ("key", word) for word in _TOKEN.findall(line) if _is_random(word)
    ]


def _detectors() -> list[str]:
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    # the entropy detectors flag plain words outside quotes, the keyword one whole sentences
    loose = {"Base64HighEntropyString", "HexHighEntropyString", "KeywordDetector", "IPPublicDetector"}
    classes: Any = get_mapping_from_secret_type_to_class().values()
    return sorted({plugin.__name__ for plugin in classes} - loose)


def _is_random(word: str) -> bool:
    """Tell whether a word is long and random enough to be a key."""
    from detect_secrets.plugins.high_entropy_strings import Base64HighEntropyString

    core = word.strip(".,:!?")
    if len(core) < _ENTROPY_LENGTH or _PLAIN_WORD.fullmatch(core) or _is_path(core):
        return False
    has_both = any(c.isdigit() for c in core) and any(c.isalpha() for c in core)
    return has_both and Base64HighEntropyString().calculate_shannon_entropy(core) >= _ENTROPY_LIMIT


def _is_path(word: str) -> bool:
    """Tell a path or address from a key that happens to hold slashes."""
    parts = word.split("/")
    return "://" in word or (len(parts) > 1 and any(re.fullmatch(r"[a-z_]{3,}(?:[-.].*)?", part) for part in parts))
