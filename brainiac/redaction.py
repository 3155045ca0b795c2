"""Secrets are taken out before anything goes beyond the inbox; what is one is decided by detect-secrets."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brainiac.brain import Brain

MASK = "[redacted {kind}]"
_TAKEN = "\ue000"  # stands for what is redacted already: no secret holds it
_MASKED = re.compile(rf"\[redacted [a-z0-9 ()/-]+\]|{_TAKEN}", re.IGNORECASE)

# detect-secrets takes 0.25 s to import and 1 ms a line: only a line that could hold a key is shown to it
_MARKED = re.compile(r"-----BEGIN|://[^\s/:@]*:[^\s/@]+@")
# each run of letters or digits is begun at its start alone, or a long word would be looked at once from each letter
_MIXED = re.compile(r"(?<![A-Za-z])[A-Za-z]+\d+[A-Za-z]|(?<!\d)\d+[A-Za-z]+\d")
_LONG = re.compile(r"[\w+/=.:-]{20,}")
_PLAIN_WORD = re.compile(
    r"[A-Za-z]+(?:[-'/][A-Za-z]+)*|[0-9a-f]{7,64}|(?:uuid:)?[0-9a-f-]{36}|sha\d+:[0-9a-f]+"
    r"|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-][\d:]+)?|[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{0,4})+"
)
_PIECE = re.compile(r"(?s).{1,4000}(?:(?<=\s)|\Z)|.{1,4000}")  # the detector is quadratic in a line's length
_TOKEN = re.compile(r"[^\s\"'`<>()\[\],;]+")
_REMEMBERED_LENGTH = 8192  # so that the cache stays small whatever people paste
_ENTROPY_LIMIT, _ENTROPY_LENGTH, _RUN_LENGTH = 4.2, 20, 12

_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)", re.DOTALL
)
_PASSWORD = r"passw(?:or)?[dt]|pwd|pw\b|passphrase|passcode|kennwort|contraseña|mot de passe"
_DOOR = r"access|alarm|door|entry|garage|gate|key ?pad|lock|safe|security|unlock|(?:haus)?tür|tor|zugangs|porte|portail"
_PIN = (
    rf"pin(?:[ -]?code)?|puk|(?:{_DOOR})[ -]?code|building code(?=\s*[:=]\s*\d+#?\W*$)"
    rf"|code\s+(?:for|to|of|de|du|für|zu[mr]?)\s+(?:[^\W\d_]+\s+){{0,3}}?(?:{_DOOR}|building)\b"
)
_KEY = r"(?:api|access|secret|private|auth|account|wi-?fi|wlan|network)[ _-]?(?:access[ _-]?)?key|secret|token"
_IS = r"(?:is|was|lautet|ist|war|est|es)\b(?:\s+(?:always|still|now|jetzt)\b)?\s*:?"
_LINK = rf"\b(?:(?:(?:was|got|wurde)\s+)?changed\s+to\b|to\b|{_IS})|:(?!/)|=|→|->|(?P<weak>['’]s\b|[-–—](?=\s)|\()"
_VALUE = r"(?P<quote>[\"'])(?P<quoted>[^\"'\n]{3,})(?P=quote)(?!\w)|[\"'`]?(?P<secret>[^\s\"'`,;&}]*[^\s\"'`,;&}.!?])"
_TOLD = re.compile(
    rf"(?i)(?<![a-z])(?:(?P<password>{_PASSWORD})|(?P<pin>{_PIN})|(?P<slang>pass(?=\s*[:=]))|{_KEY})"
    r"(?:\s+(?:for|of|to|für|de)\s+[^:=\n]{1,40}?)?"
    rf"[\"']?\s*(?P<link>{_LINK})\s*(?:{_VALUE})"
)
# without a word between: only what can be nothing else, or the end of "user NAME, password WORD"
_BARE = re.compile(
    rf"(?i)(?<![a-z])(?:(?:(?P<password>{_PASSWORD})|pass)\s+(?P<word>[^\s\"'`,;&{{}}()]*[^\s\"'`,;&{{}}().!?:])"
    rf"|(?:(?-i:PIN|PUK)|(?:{_DOOR})[ -]?code)\s+(?P<digits>\d{{4,8}}#?))(?=\W*$|[.,;!?)])"
)
_USER = re.compile(r"(?i)\b(?:user(?:name)?|login|benutzer(?:name)?)\b:?\s+[^\s,;]+(?:[,;]\s*|\s+)$")
_BEFORE = re.compile(
    rf"(?i)(?<![^\s\"'`])(?P<word>[^\s\"'`]{{6,100}})[\"'`]?\s+(?:is|was|as|ist|als)\s+(?:my|our|the|mein|das)\s+(?:[\w-]+\s+){{0,2}}?"
    rf"(?:{_PASSWORD})(?=\W*$|[.,;!?)]|\s+(?:for|to|of|für)\b)"
)
_CHANGED = re.compile(
    rf"(?i)(?<![a-z])(?:{_PASSWORD}|pin)\s+(?:[a-z]+\s+){{0,3}}?from\s+(?P<old>\S+)\s+to\s+(?P<new>\S+)"
)
_CARD = re.compile(
    r"(?<![\w.])(?<!\d[ -])[2-6](?:\d{14,15}|\d{3}([ -])\d{4}\1\d{4}\1\d{1,4}(?:\1\d{1,3})?|\d{3}([ -])\d{6}\2\d{5})"
    r"(?![ -]?\d)(?![\w])"
)
_SENT = re.compile(
    r"(?i)\b(?:authorization:\s*(?:basic|bearer|token)|bearer)\s+(?P<secret>(?=\S*\d)[\w+/=.~-]{12,})"
    r"|authorization:\s*basic\s+(?P<basic>[\w+/=-]{6,})|(?<!\S)(?:-u|--user)[ =]\S+?:(?P<user>[^\s\"']+)"
    r"|://[^\s/:@]*:(?P<address>[^\s/@]+)@"
    r"|\b(?:sshpass\s+-p\s*|(?:mysql|mariadb)\w*\s(?:[^\n]*\s)?(?-i:-p))(?P<option>[^\s\"'-][^\s\"']*)"
    r"|\b(?:log-?in|credentials)\b[^:/\n]{0,40}?(?:\bis|\bare|:)\s+[^\s/]+ / "
    r"(?P<pair>(?=\S*\d)[^\s\"',;]*[^\s\"',;.!?])"
)
_CLAUSE_END = re.compile(r"[\"'`]?\s*(?:[.,;!?)}]|$)")
# what is said of a password rather than being one; another lower-case word is one when its clause ends with it
_SAID_OF_PASSWORDS = frozenset(
    "wrong right weak strong short long old new required expired correct incorrect invalid valid missing empty secret "
    "private known unknown safe unsafe secure insecure lost gone hard easy simple fine good bad ok okay due needed "
    "stored saved hidden changed reset blocked locked hashed encrypted important broken terrible stolen leaked shared "
    "optional none null true false yes no here there this that it me you them us him her one ones again "
    "falsch richtig geheim sicher unsicher schwach stark neu alt lang kurz weg vergessen gesperrt abgelaufen ungültig "
    "gültig nötig verloren sha256 sha512 base64 oauth2".split()
)


def redact(brain: Brain, text: str) -> str:
    """Return a text without the secrets in it, each named by its kind.

    Plugins' `redact` hooks are asked in turn, each with what the last one left.
    """
    if not text:
        return text
    if brain.settings.reflection.redact_secrets:
        text = (_remembered if len(text) <= _REMEMBERED_LENGTH else redact_secrets)(text)
    return str(brain.plugins.chain("redact", "text", text, brain=brain))


def kinds_of(brain: Brain, text: str) -> list[str]:
    """Return the kinds of the secrets that are taken out of a text."""
    known = set(_MASKED.findall(text))
    return [mask[len("[redacted ") : -1] for mask in _MASKED.findall(redact(brain, text)) if mask not in known]


def redact_secrets(text: str) -> str:
    """Return a text in which every secret that is recognized stands as `[redacted KIND]`; what stands so, stays so."""
    known = _MASKED.findall(text)
    text = _KEY_BLOCK.sub(MASK.format(kind="private key"), _MASKED.sub(_TAKEN, text))
    lines = (piece for line in text.splitlines(keepends=True) for piece in _PIECE.findall(line))
    pieces = "".join(map(_redact_line, lines)).split(_TAKEN)
    return "".join(piece + mask for piece, mask in zip_longest(pieces, known, fillvalue=""))


# the turns of a conversation are shown with each of its prompts
_remembered = lru_cache(maxsize=512)(redact_secrets)


def _redact_line(line: str) -> str:
    secrets = _told(line)
    if _MARKED.search(line) or any(_could_be_key(word) for word in _LONG.findall(line)):
        for kind, value in dict.fromkeys(_detected(line)):
            # some detectors report only a part: the whole word that holds it goes
            for word in _TOKEN.findall(line):
                if value in word and not _PLAIN_WORD.fullmatch(word):
                    secrets[value if "://" in word else word] = kind
    for value in sorted((value for value in secrets if _TAKEN not in value), key=len, reverse=True):
        line = line.replace(value, MASK.format(kind=secrets[value]))
    return line


def _told(line: str) -> dict[str, str]:
    """Return what a line itself says is a secret, each with its kind."""
    found = [next(filter(None, match.groups())) for match in _SENT.finditer(line)]
    found += [secret for match in _TOLD.finditer(line) if (secret := _told_secret(match, line))]
    found += [secret for match in _BARE.finditer(line) if (secret := _bare_secret(match, line))]
    found += [match["word"] for match in _BEFORE.finditer(line) if _is_mixed(match["word"])]
    changed = (word.rstrip(".,;!?") for match in _CHANGED.finditer(line) for word in match.group("old", "new"))
    found += [word for word in changed if len(word) >= 4 and not word.isalpha()]
    cards = {match.group(): "card number" for match in _CARD.finditer(line) if _is_card(match.group())}
    return dict.fromkeys(found, "secret") | cards


def _told_secret(match: re.Match[str], line: str) -> str | None:
    """Tell a told secret (`hunter2`) from the next words of a sentence (`the password is wrong`)."""
    if match["quoted"]:
        return match["quoted"]
    word, link = match["secret"], match["link"].lower()
    if link == "(":
        word = word.rstrip(")")
    if word.isdigit():
        is_owned = line[match.end() : match.end() + 1] in ("'", "’")  # 2019's best novel
        return word if len(word) >= 4 and (match["password"] or match["pin"]) and not is_owned else None
    if match["weak"] or match["slang"]:
        return word if _is_mixed(word) and not match["pin"] else None
    if not word.isalpha():
        return word if len(word) >= 4 else None
    if not match["password"] or link.endswith("to") or word.lower() in _SAID_OF_PASSWORDS:
        return None
    return word if not word.islower() or link == "=" or _CLAUSE_END.match(line, match.end()) else None


def _bare_secret(match: re.Match[str], line: str) -> str | None:
    if match["digits"]:
        return match["digits"]
    word, is_user_named = match["word"], _USER.search(line, 0, match.start()) is not None
    if word.lower() in _SAID_OF_PASSWORDS:
        return None
    if is_user_named and match["password"]:
        return word
    return word if _is_mixed(word) and (match["password"] or is_user_named) else None


def _is_mixed(word: str) -> bool:
    """Tell whether a word is of letters and digits, as few words but passwords are; `12-character` is none."""
    has_both = re.search(r"[a-z]", word) and re.search(r"\d", word)
    return len(word) >= 6 and bool(has_both) and not re.fullmatch(r"\d+-?[A-Za-z]+|sha-?\d+", word)


def _is_card(number: str) -> bool:
    """Tell by its check digit (Luhn's) whether a number can be a card's."""
    digits = [int(sign) for sign in reversed(number) if sign.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


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


def _could_be_key(word: str) -> bool:
    """Tell whether letters and digits are mixed as no path, date, version, identifier or plain hash mixes them."""
    word = word.strip(".,:!?")
    if not _MIXED.search(word) or _PLAIN_WORD.fullmatch(word):
        return False
    return any(_MIXED.search(part) for part in re.split(r"[/.:+=_-]", word))


def _is_random(word: str) -> bool:
    """Tell whether a word is long and random enough to be a key."""
    from detect_secrets.plugins.high_entropy_strings import Base64HighEntropyString

    core = word.strip(".,:!?")
    if len(core) < _ENTROPY_LENGTH or not _could_be_key(core) or _is_path(core):
        return False
    if re.fullmatch(r"[A-Za-z]\w*_[0-9a-f]{32,}", core):
        return True
    if core.islower() and max(map(len, re.split(r"[^a-z0-9]", core))) < _RUN_LENGTH:
        return False  # a name with counters and checksums in it
    return Base64HighEntropyString().calculate_shannon_entropy(core) >= _ENTROPY_LIMIT


def _is_path(word: str) -> bool:
    """Tell a path or address from a key that happens to hold slashes."""
    parts = re.split(r"[/\\]", word)
    return "://" in word or (len(parts) > 1 and any(re.fullmatch(r"[A-Za-z_]{3,}(?:[-.].*)?", part) for part in parts))
