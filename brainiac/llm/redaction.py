"""Redaction: secrets are taken out of a text before it is kept or sent, by their form alone.

Keys and tokens are found by detect-secrets, other secrets by the patterns below. A secret that is only described in
words is not found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from itertools import zip_longest
from typing import Any, NamedTuple

from brainiac.formats.markdown import decode_text
from brainiac.library import Library


class Span(NamedTuple):
    """A secret in a text, by its offsets and its kind."""

    start: int
    end: int
    kind: str


_MASKED = re.compile(r"\[redacted [A-Za-z0-9 ()/-]+\]")
_CACHED_LENGTH = 8192  # longer texts are not cached, so that the cache stays small

_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)", re.DOTALL
)
_ADDRESS = re.compile(r"://[^\s/:@]*:(?P<secret>[^\s/@]+)@")
_AUTHORIZATION = re.compile(
    r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?(?:basic|(?:bearer|token)(?=\s+\S*\d))\s+(?P<secret>[\w+/=.~-]{6,})"
)
_BEARER = re.compile(r"(?i)\bbearer\s+(?P<secret>(?=\S*\d)[\w+/=.~-]{12,})")
# keys that are known by how they begin, though they may be letters alone
_PREFIXES = ("aiza", "akia", "asia", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "k_live_", "xox")
_PREFIXED = re.compile(
    r"(?a)\b(?:AIza[\w-]{35}|A[KS]IA[A-Z0-9]{16}\b|gh[oprsu]_\w{36}|github_pat_\w{60,}|[rs]k_live_\w{16,}|xox[a-z]-[\w-]{20,})"
)
# Visa, Mastercard and similar cards in groups of four or in one, American Express in 4-6-5. The pattern begins with the
# first digit, and checks only then what may not stand before it, which is faster.
_CARD = re.compile(
    r"(?a)[2-6](?<![\w./].)(?<!\d[ -].)(?:(?:(?<=[46])\d|(?<=5)[1-5]|(?<=2)[2-7]|(?<=3)5)\d\d([ -]?)\d{4}\1\d{4}\1\d{4}"
    r"|(?<=3)[47]\d\d([ -]?)\d{6}\2\d{5})(?![ -]?\d)(?!\w)"
)
# beside a card's number: the month and year of its end, and its code, of four digits on an American Express, else three
_END_OF_CARD = r"(?P<expiry>(?<![\d/.-])(?:0[1-9]|1[0-2]) ?[/-] ?(?:20)?[2-9]\d(?!\w)(?![/.-]\d))"
_CARD_CODE = r"(?P<code>(?<![\w/.,-])\d{3,4}(?!\w)(?![/.,:-]\d))"
_BESIDE_CARD = re.compile(rf"(?a){_END_OF_CARD}|{_CARD_CODE}")
_BEHIND_CARD = re.compile(rf"(?a)[^\d\n]{{0,24}}\n?[^\d\n]{{0,24}}(?:{_END_OF_CARD}|{_CARD_CODE})")
_BEFORE_CARD = 60  # characters of the line
_SSN = re.compile(r"(?a)\d{3}-(?<![\w.-]....)(?<!000-)(?<!666-)(?<!9..-)(?!00)\d\d-(?!0000)\d{4}(?![\w-])(?!\.\d)")
# countries by the number of characters of their IBANs (the registry of ISO 13616)
_IBANS = {
    15: "NO", 16: "BE", 18: "DK|FI|FK|FO|GL|NL|SD", 19: "MK|SI", 20: "AT|BA|EE|KZ|LT|LU|MN|XK", 21: "CH|HR|LI|LV",
    22: "BG|BH|CR|DE|GB|GE|IE|ME|RS|VA", 23: "AE|GI|IL|IQ|OM|SO|TL", 24: "AD|CZ|ES|MD|PK|RO|SA|SE|SK|TN|VG",
    25: "LY|PT|ST", 26: "IS|TR", 27: "BI|DJ|FR|GR|IT|MC|MR|SM", 28: "AL|AZ|BY|CY|DO|GT|HN|HU|LB|NI|PL|SV",
    29: "BR|EG|PS|QA|UA", 30: "JO|KW|MU|YE", 31: "MT|SC", 32: "LC", 33: "RU",
}  # fmt: skip
_IBAN = re.compile(
    r"(?ai)(?<![\w-])(?:"
    + "|".join(
        rf"(?:{countries})\d\d(?:[ \u00a0]?[A-Z0-9]{{4}}){{{length // 4 - 1}}}"
        + (rf"[ \u00a0]?[A-Z0-9]{{{length % 4}}}" if length % 4 else "")
        for length, countries in _IBANS.items()
    )
    + r")(?![\w-])"
)
# the check digits of an IBAN with the groups of four behind them: searched first, which is faster
_CHECK_DIGITS = re.compile(r"\d\d(?<=[A-Za-z]..)(?=(?:[ \u00a0]?[A-Za-z0-9]{4}){2})")
# `key: value`, also `"key": "value"`, `**Key:** value`, `--key=value`, `Key (of what): value`; not `==`, `:=`, `://`
_IS = r"[\"'`*_]*(?:[ \t]*\((?!str|bool|int|bytes|opt)[^()\n]{1,40}\))?[ \t]*[:=：＝](?![=:/])[*_ \t]*"
_PASSWORD = re.compile(rf"([Pp][Aa][Ss][Ss](?:[Ww][Oo][Rr][Dd]|[Pp][Hh][Rr][Aa][Ss][Ee])){_IS}")
# before `password` on a line that holds it alone: a list mark, up to three words
_LABEL = re.compile(r"[^\w\n]*(?:[\w'’-]+[ \t]+){0,3}\w*")
_END = r"(?=[.,;!)}\]]{0,4}(?:\s*$|\s+[(|#])|[.,;!]\s)"
_QUOTED = r"([\"'`])(?P<quoted>[^\n]+?)\1"
_ON_LINE = re.compile(  # may be several words, but no question
    rf"(?m){_QUOTED}|(?P<word>[^\s\"'`]\S*?)(?=[.,;!?)}}\]]{{0,4}}\s*$)|(?P<words>[^\s\"'`](?:[^\n]*?[^\s?])??){_END}"
)
_WITHIN = re.compile(
    rf"(?m){_QUOTED}|(?P<word>[^\W\d_]{{3,}}){_END}"
    r"|(?P<mixed>(?=[^\W\d_]*[\W\d_]\S)[^\s\"'`]{4,}?)(?=[.,;!?)}\]]*(?:\s|$))"
)
# values that are no secret, in code and in forms to fill in: a blank, a variable, a call, a type
_NO_VALUE = re.compile(
    r"(?i)[\W_x]*|\(.*|[a-z_.]*pass(?:word|phrase)[a-z_.]*(?:\W.*)?|<.*>"
    r"|\$\W*\w+\W*|\{+.*\}+|%\w+%|[a-z_.]+[(\[].*|(?:self|this|process|os)\.\w.*"
    r"|(?:str|string|bytes|int|bool|none|null|nil|undefined|true|false)(?:\s*[|=,;)].*)?"
)
_NO_MORE = r"(?![.:/-]?\d)(?!\w)"
_PIN = re.compile(rf"(?a)[Pp][Ii][Nn](?<![A-Za-z]...){_IS}[\"'`]?(?P<secret>\d{{3,12}}#?){_NO_MORE}")
_CODE = re.compile(rf"(?a)[Cc][Oo][Dd][Ee]{_IS}[\"'`]?(?P<secret>\d{{3,8}}#?){_NO_MORE}")
# maps ASCII letters to lower case and every other byte to a space
_LETTERS = bytes(ord(chr(sign).lower()) if chr(sign).isalpha() and sign < 128 else 32 for sign in range(256))
_WORD = re.compile(r"[A-Za-z]+")
_SHORT_WORDS = re.compile(rb"[\x03-\x08]{12}")  # in lengths of words: those on the list have three to eight letters
_LISTED_WORDS = re.compile(rb"\x01{12,}")
_PHRASE_LENGTHS = (24, 12)

# detect-secrets takes 0.25 s to import and 1 ms a line: it gets only lines that could hold a key. The lookbehinds let
# each run of letters or digits match from its start alone, or a long word would be tried from each of its letters.
_MIXED = re.compile(r"(?<![A-Za-z])[A-Za-z]+\d+[A-Za-z]|(?<!\d)\d+[A-Za-z]+\d")
_DIGIT_BESIDE_LETTER = re.compile(r"\d(?:(?<=[A-Za-z].)|(?=[A-Za-z]))")  # every mixed word has one
_LINE = re.compile(r"[^\n]+")
_LONG_WORD = re.compile(r"[A-Za-z0-9_+/=.:-]{20,}")
# a word, a hash, a uuid, a moment, an IPv6 address
_PLAIN_WORD = re.compile(
    r"[A-Za-z]+(?:[-'/][A-Za-z]+)*|[0-9a-f]{7,64}|(?:uuid:)?[0-9a-f-]{36}|sha\d+:[0-9a-f]+"
    r"|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-][\d:]+)?|[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{0,4})+"
)
_PIECE = re.compile(r"(?s).{1,4000}(?:(?<=\s)|\Z)|.{1,4000}")  # the detector is quadratic in a line's length
_TOKEN = re.compile(r"[^\s\"'`<>()\[\],;\u0080-\U0010ffff]+")
# the name of a folder: three letters or more, not at random
_FOLDER_NAME = re.compile(r"(?=[A-Za-z_]{3})(?:(?:[A-Z]?[a-z_]{2,}+)++|[A-Z_]{3,})(?:[-.].*)?")
_SPELLED = re.compile(r"[A-Z]?[a-z]{3,}")
_ENTROPY_LIMIT, _ENTROPY_LENGTH, _RUN_LENGTH = 4.2, 20, 12
# detectors of detect-secrets that are not used: those that flag plain words outside of quotes and whole sentences, and
# those whose secrets the patterns above find
_TOO_LOOSE = {"Base64HighEntropyString", "HexHighEntropyString", "KeywordDetector", "IPPublicDetector"}
_REPLACED = {"BasicAuthDetector", "PrivateKeyDetector"}


def redact(library: Library, text: str) -> str:
    """Return a text with `[redacted KIND]` in place of each secret, after the `redact` hooks of plugins too."""
    return str(library.chain_hook("redact", "text", without_secrets(library, text), brain=library)) if text else text


def without_secrets(library: Library, text: str) -> str:
    """Return a text with `[redacted KIND]` in place of each secret, by the settings alone; no plugin is called."""
    settings = library.settings.reflection
    if not settings.redact_secrets:
        return text
    return (_redact_cached if len(text) <= _CACHED_LENGTH else redact_secrets)(text, settings.redact_codes)


def without_masks(text: str) -> str:
    """Return a redacted text without the `[redacted KIND]` in it, which nobody wrote."""
    return _MASKED.sub(" ", text)


def kinds_of(library: Library, text: str) -> list[str]:
    """Return the kinds of the secrets in a text, each once: "password", "IBAN", "GitHub Token"."""
    # a `[redacted KIND]` that the text has already is no secret in it
    masks = Counter(_MASKED.findall(without_secrets(library, text))) - Counter(_MASKED.findall(text))
    return [mask.removeprefix("[redacted ").removesuffix("]") for mask in masks]


def holds_secret(library: Library, path: str, content: bytes) -> bool:
    """Return whether a file of the inbox holds a secret; the journal then keeps no copy of its text.

    Other folders are not checked: people paste whatever they have into the inbox, while they mean to keep what they
    write on a page by hand.

    Args:
        library: Has the folders, and the settings of what counts as a secret.
        path: Relative, posix.
        content: The file's bytes.
    """
    if not path.startswith(f"{library.tree.layout.inbox}/"):
        return False
    text = decode_text(content)
    return without_secrets(library, text) != text


def redact_secrets(text: str, has_secret_codes: bool = False) -> str:
    """Return a text with `[redacted KIND]` in place of each secret; a text redacted before does not change.

    Args:
        text: Any text.
        has_secret_codes: Whether `code: 1234` is a secret too.
    """
    parts = (_redacted(part, has_secret_codes) for part in _MASKED.split(text))
    return "".join(part + mask for part, mask in zip_longest(parts, _MASKED.findall(text), fillvalue=""))


# cached, since the turns of a conversation are redacted for each of its prompts
_redact_cached = lru_cache(maxsize=512)(redact_secrets)


def _redacted(text: str, has_secret_codes: bool) -> str:
    """Return a text, which holds no `[redacted KIND]` yet, with every secret replaced.

    Args:
        text: Any text.
        has_secret_codes: Whether the number in `code: 1234`, of a door or a lock, is a secret too.
    """
    spans = sorted(
        [*_in_forms(text, has_secret_codes), *_passwords(text), *_ibans(text), *_phrases(text), *_keys(text)]
    )
    pieces, at = [], 0
    for start, end, kind in spans:
        # of spans that overlap the first names the kind
        if start >= at:
            pieces.append(f"{text[at:start]}[redacted {kind}]")
        at = max(at, end)
    return "".join(pieces) + text[at:]


def _in_forms(text: str, has_secret_codes: bool) -> Iterator[Span]:
    """Yield the secrets that match a pattern of `_FORMS` and pass its check."""
    folded = text.lower()
    for form in _FORMS:
        if not any(hint in folded for hint in form.hints) or (form.kind == "code" and not has_secret_codes):
            continue
        for match in form.pattern.finditer(text):
            group = match.lastgroup or 0  # the named group, else the whole match
            if form.is_secret(match[group]):
                yield Span(*match.span(group), form.kind)
                if form.pattern is _CARD:
                    yield from _beside_card(text, *match.span())


def _passwords(text: str) -> Iterator[Span]:
    """Yield the values after `password:`; several words where it begins a line, else one word or a quotation."""
    for key in _PASSWORD.finditer(text):
        line_start = text.rfind("\n", 0, key.start()) + 1
        begins_line = _LABEL.fullmatch(text, line_start, key.start())
        value = (_ON_LINE if begins_line else _WITHIN).match(text, key.end())
        # the group that matched is the value without quotation marks
        if value and value.lastgroup and _is_value(value[value.lastgroup]):
            yield Span(*value.span(value.lastgroup), key[1].lower())


def _ibans(text: str) -> Iterator[Span]:
    """Yield the IBANs of a text with right check digits."""
    for check_digits in _CHECK_DIGITS.finditer(text):
        country_start = max(0, check_digits.start() - 2)
        match = _IBAN.match(text, country_start)
        if not match:
            continue
        signs = re.sub(r"[ \u00a0]", "", match.group())
        # ISO 7064, modulo 97
        if int("".join(str(int(sign, 36)) for sign in signs[4:] + signs[:4])) % 97 == 1:
            yield Span(*match.span(), "IBAN")


def _beside_card(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the end of a card and its code, which follow on its number, or stand before it with the end among them."""
    matches = list(_BESIDE_CARD.finditer(text, max(text.rfind("\n", 0, start) + 1, start - _BEFORE_CARD), start))
    if not any(match["expiry"] for match in matches):
        matches = []  # else each amount before a card would be taken for its code
    while (match := _BEHIND_CARD.match(text, end)) and match.lastgroup not in {seen.lastgroup for seen in matches}:
        matches.append(match)
        end = match.end()
    n_digits = 4 if text[start] == "3" else 3
    for match in matches:
        if match["expiry"] or len(match["code"]) == n_digits:
            yield Span(*match.span(match.lastgroup or 0), f"card {match.lastgroup}")


def _is_value(value: str) -> bool:
    """Return whether a value is neither a blank to fill in nor code."""
    return not _NO_VALUE.fullmatch(value)


def _is_card(number: str) -> bool:
    """Return whether the check digit of a card number is right (Luhn's algorithm)."""
    digits = [int(sign) for sign in reversed(number) if sign.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


class _Form(NamedTuple):
    """The form of a kind of secret.

    Attributes:
        kind: The name of the kind.
        hints: A text without any of these words, in lower case, has no such secret.
        pattern: It matches the secret; a named group is the secret where the match holds more.
        is_secret: Whether a match is one, for instance by a check digit.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    is_secret: Callable[[str], bool] = bool


_FORMS = (
    _Form("private key", ("-----begin",), _KEY_BLOCK),
    _Form("password", ("://",), _ADDRESS, _is_value),
    _Form("access token", ("authorization",), _AUTHORIZATION),
    _Form("access token", ("bearer",), _BEARER),
    _Form("key", _PREFIXES, _PREFIXED),
    _Form("PIN", ("pin",), _PIN),
    _Form("code", ("code",), _CODE),
    _Form("card number", ("",), _CARD, _is_card),
    _Form("social security number", ("",), _SSN),
)


def _phrases(text: str) -> Iterator[Span]:
    """Yield recovery phrases (BIP-39): 24 or 12 words of its English list in a row with the right checksum."""
    words = text.encode("ascii", "replace").translate(_LETTERS).split()
    # a byte for each word, so that patterns find rows of words: its length, then whether it is on the list
    lengths = bytes([len(word) if len(word) < 256 else 0 for word in words])
    if not _SHORT_WORDS.search(lengths):
        return  # so it is with most texts, and the list need not be read
    numbers = [_bip39().get(word, -1) for word in words]
    runs = list(_LISTED_WORDS.finditer(bytes(number >= 0 for number in numbers)))
    spans = [match.span() for match in _WORD.finditer(text)] if runs else []
    for run in runs:
        for length in _PHRASE_LENGTHS:
            for first in range(run.start(), run.end() - length + 1):
                if _has_checksum(numbers[first : first + length]):
                    (start, _), (_, end) = spans[first], spans[first + length - 1]
                    yield Span(start, end, "recovery phrase")


@cache
def _bip39() -> dict[bytes, int]:
    """Return the numbers of the words of BIP-39's English list."""
    from mnemonic import Mnemonic  # few texts hold twelve words in a row

    return {word.encode(): number for number, word in enumerate(Mnemonic("english").wordlist)}


def _has_checksum(numbers: Sequence[int]) -> bool:
    """Return whether the words of a phrase, by their numbers of eleven bits each, have the right checksum.

    Of these bits the last are the checksum, a bit for every three words: the first bits of the SHA-256 of all others.
    """
    bits = sum(number << 11 * place for place, number in enumerate(reversed(numbers)))
    n_checksum_bits = len(numbers) // 3
    entropy, checksum = divmod(bits, 1 << n_checksum_bits)
    digest = sha256(entropy.to_bytes(4 * n_checksum_bits, "big")).digest()
    return digest[0] >> 8 - n_checksum_bits == checksum


def _keys(text: str) -> Iterator[Span]:
    """Yield the keys and tokens that detect-secrets finds, and long words that look random.

    Only lines with a long word that mixes letters and digits are given to it, each once.
    """
    for line in _LINE.finditer(text):
        # most lines have no such digit, which is found sooner than a long word
        if _DIGIT_BESIDE_LETTER.search(line[0]) and any(map(_could_be_key, _LONG_WORD.findall(line[0]))):
            for piece in _PIECE.finditer(text, *line.span()):
                yield from _detected(piece.group(), piece.start())


def _detected(line: str, offset: int) -> Iterator[Span]:
    """Yield the keys in a line, or in a piece of one; `offset` is where it begins in the text."""
    from detect_secrets.core.scan import scan_line  # heavy; needed once something leaves or is shown
    from detect_secrets.settings import transient_settings

    spans = []
    for word in _TOKEN.finditer(line):
        # without `NAME=` before it and punctuation after it; a `=` further behind is no name's: it fills up base64
        name_end = word[0].rfind("=", 0, -_ENTROPY_LENGTH) + 1
        spans.append((word.start() + name_end, word.start() + len(word[0].rstrip(".,:!?"))))
    yield from (Span(offset + start, offset + end, "key") for start, end in spans if _is_random(line[start:end]))
    with transient_settings({"plugins_used": [{"name": name} for name in _detectors()]}):
        secrets = list(scan_line(line))
    for secret in secrets:
        value, kind = secret.secret_value, secret.type.removesuffix("s")  # some types are in the plural: `Credentials`
        # some detectors report only a part of a word: the whole word is taken out
        for start, end in spans:
            if value and value in line[start:end] and not _PLAIN_WORD.fullmatch(line, start, end):
                yield Span(offset + start, offset + end, kind)


@cache
def _detectors() -> list[str]:
    """Return the names of the detectors of detect-secrets that are used."""
    # heavy; needed once something leaves or is shown
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    classes: Any = get_mapping_from_secret_type_to_class().values()
    return sorted({plugin.__name__ for plugin in classes} - _TOO_LOOSE - _REPLACED)


def _could_be_key(word: str) -> bool:
    """Return whether a word mixes letters and digits, and is no date, version, uuid, hash or address."""
    word = word.strip(".,:!?")
    return _MIXED.search(word) is not None and not _PLAIN_WORD.fullmatch(word)


def _is_random(word: str) -> bool:
    """Return whether a word is long and random enough to be a key."""
    # heavy; needed once something leaves or is shown
    from detect_secrets.plugins.high_entropy_strings import Base64HighEntropyString

    core = word.strip(".,:!?")
    if len(core) < _ENTROPY_LENGTH or not _could_be_key(core):
        return False
    parts = re.split(r"[/\\]", core)
    # a path or an address: hardly any random key has a part that is spelled like a name between slashes
    is_path = "://" in core or (len(parts) > 1 and any(map(_FOLDER_NAME.fullmatch, parts)))
    if is_path and not re.fullmatch(r"[A-Za-z0-9/+]{40}", core):  # the form of AWS's secret keys
        return False
    if re.fullmatch(r"[A-Za-z]\w*_[0-9a-f]{32,}", core):  # a key with its kind before it
        return True
    if core.islower():
        longest_run = max(map(len, re.split(r"[^a-z0-9]", core)))
        is_name = longest_run < _RUN_LENGTH  # with counters and short hashes in it
    else:
        n_spelled = sum(map(len, _SPELLED.findall(core)))
        is_name = 2 * n_spelled > len(core)  # in camel case, or of a model
    return not is_name and Base64HighEntropyString().calculate_shannon_entropy(core) >= _ENTROPY_LIMIT
