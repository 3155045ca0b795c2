"""How many ordinary prompts are redacted, and how many planted secrets are missed, by kind.

Run as `python benchmarks/redaction.py [FOLDER...]`: the folders hold JSON files, of which every text of three words and
more is an ordinary prompt (default: benchmarks/data). Prints a table and, last, one line of JSON. Nothing here is a
real secret.
"""

from __future__ import annotations

import base64
import json
import random
import string
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mnemonic import Mnemonic

from brainiac.llm.redaction import redact_secrets

COUNT = 200  # of each kind
ALNUM = string.ascii_letters + string.digits
CAPITALS = string.ascii_uppercase
UPPER = CAPITALS + string.digits
HEX = "0123456789abcdef"
URL = ALNUM + "-_"
BIP39 = Mnemonic("english")
chance = random.Random(39)


def signs(letters: str, count: int) -> str:
    return "".join(chance.choices(letters, k=count))


def digits(count: int) -> str:
    return signs(string.digits, count)


def word() -> str:
    return chance.choice(BIP39.wordlist)


# what is no secret


def ordinary(folders: list[Path]) -> Iterator[str]:
    """Yield the texts of the data files."""
    for folder in folders:
        for path in sorted(folder.rglob("*.json")):
            yield from dict.fromkeys(text for text in texts(json.loads(path.read_text())) if len(text.split()) >= 3)


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)


def isbn() -> str:
    body = f"978-{chance.randint(0, 9)}-{digits(3)}-{digits(5)}"
    return f"{body}-{check_ean(body.replace('-', ''))}"


def check_ean(body: str) -> int:
    return -sum(int(sign) * (3 if place % 2 else 1) for place, sign in enumerate(body)) % 10


def ean() -> str:
    body = f"40{digits(10)}"
    return f"{body}{check_ean(body)}"


def uuid() -> str:
    raw = signs(HEX, 32)
    return "-".join((raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:]))


def day() -> str:
    return f"20{chance.randint(10, 39)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"


def camel() -> str:
    return "".join(word().capitalize() for _ in range(chance.randint(3, 6)))


OF_PASSWORDS = (
    "My password is in the safe.",
    "Das Passwort hat mara geändert.",
    "パスワードは金庫にある",
    "I forgot my password again, what now?",
    "Which password manager do you like?",
    "Password rules: at least 12 signs, one of them a digit?",
    "def login(user: str, password: str | None = None) -> bool:",
    "if password == stored: return",
    "password = getpass()",
    "connect(user, password=password)",
    "password=os.environ['PW']",
    "password: ${DB_PASSWORD}",
    "PIN: the map to the wall.",
)
MADE: dict[str, Callable[[], str]] = {
    "order number": lambda: f"Order {digits(3)}-{digits(7)}-{digits(7)} comes on Friday.",
    "order number in one": lambda: f"Meine Bestellung {chance.choice('1789')}{digits(chance.randint(7, 14))} ist da.",
    "parcel": lambda: f"UPS says 1Z{signs(UPPER, 6)}{digits(10)}, DHL {digits(20)}.",
    "invoice": lambda: f"Rechnung INV-{day()[:4]}-{digits(6)} über 1.284,50 € ist bezahlt.",
    "phone": lambda: (
        f"Ring +44 20 {digits(4)} {digits(4)}, 0171 {digits(4)} {digits(4)}, ({digits(3)}) 555-{digits(4)}."
    ),
    "phone with hyphens": lambda: f"Call 1-800-{digits(3)}-{digits(4)} or {chance.randint(200, 899)}-555-{digits(4)}.",
    "ISBN": lambda: f"The book is ISBN {isbn()}.",
    "EAN": lambda: f"EAN {ean()}, article {digits(13)}",
    "hash": lambda: f"sha256:{signs(HEX, 64)} and md5 {signs(HEX, 32)}",
    "git commit": lambda: f"It broke in {signs(HEX, 40)}, fixed in {signs(HEX, 7)} on branch fix/{word()}-{digits(2)}.",
    "UUID": lambda: f"The page {uuid()} moved, see uuid:{uuid()}.",
    "date": lambda: f"Wir treffen uns am {day()} um {digits(1)}:30, spätestens {day()}T08:15:00Z.",
    "moment": lambda: f"It ran from 17{digits(11)} to {chance.randint(1, 2)}{digits(9)}.{digits(6)}.",
    "version": lambda: f"pip install torch-2.{digits(2)}.{digits(1)}+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",
    "coordinates": lambda: f"Le refuge: {chance.uniform(-80, 80):.6f},{chance.uniform(-179, 179):.6f}",
    "licence plate": lambda: f"The car is {signs(CAPITALS, 2)}-{signs(CAPITALS, 2)} {digits(4)}, seat {digits(2)}K.",
    "path": lambda: (
        f"See /home/mara/{day()}/IMG_{digits(8)}_{digits(6)}.jpg, C:\\Users\\mara\\{camel()}{digits(2)}.pdf"
    ),
    "memory path": lambda: f"It is in memory/long_term/events/2026/02/03/{day()}.md#^{signs(HEX, 4)}",
    "address": lambda: f"https://example.com/{day()}/{word()}-{word()}-{digits(4)}?page={digits(2)}&id={digits(8)}",
    "video": lambda: f"Watch https://www.youtube.com/watch?v={signs(URL, 11)} tonight",
    "base64-like words": lambda: f"{camel()}/{camel()}+{camel()} and {word().capitalize()}{word()}{digits(1)}",
    "paths of classes": lambda: f"see {camel()}/{camel()}{digits(1)}/{camel()}{digits(1)}Impl.java",
    "identifiers": lambda: f"def test_{word()}_{word()}_{digits(1)}_{word()}(): get{camel()}{digits(1)}()",
    "pods and images": lambda: f"kubectl logs api-{word()}-{signs(HEX, 9)}-{signs('bcdfghjklmnpqrstvwxz2456789', 5)}",
    "mail": lambda: f"{word()}.{word()}{digits(4)}@mail.example.com hat geschrieben",
    "classes": lambda: f"class {camel()}{digits(1)}{camel()}({camel()}{digits(2)}{word()}): pass",
    "model of an owner": lambda: f"{word()}{digits(1)}{word()[:2]}/{camel()}-{digits(1)}B-{word()}-{word()}-GGUF",
    "model": lambda: f"Qwen2.5-Coder-{digits(1)}.5B-Instruct-Q4_K_M.gguf is {digits(1)}.2 GB",
    "IPv6 and MAC": lambda: f"2001:db8:{signs(HEX, 4)}::{signs(HEX, 4)} at {':'.join(signs(HEX, 2) for _ in range(6))}",
    "serial number": lambda: f"Die Heizung: {signs(UPPER, 4)}-{signs(UPPER, 4)}-{digits(4)}, Typ VC{digits(3)}",
    "amounts": lambda: f"Strom: {digits(5)} kWh, Gas: {digits(4)},{digits(2)} m³, Wasser {digits(4)} {digits(4)} l",
    "codes of doors": lambda: f"The code of the gate is {digits(4)}, door code: {digits(4)}#, bike lock {digits(4)}",
    "listed words": lambda: " ".join(word() for _ in range(chance.randint(5, 11))),
    "of passwords": lambda: chance.choice(OF_PASSWORDS),
}

# what is a secret: the text to be typed, and what must not be left of it


def jwt() -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": digits(10), "name": word(), "iat": int("17" + digits(8))})
    head, body = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return f"{head}.{body}.{signs(URL, 43)}"


def pem() -> str:
    kind = chance.choice(["RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED "]) + "PRIVATE KEY"
    lines = "\n".join(signs(ALNUM + "+/", 64) for _ in range(6))
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----"


def card() -> str:
    prefix, length = chance.choice([("4", 16), ("5" + chance.choice("12345"), 16), ("6011", 16), ("37", 15)])
    body = prefix + digits(length - 1 - len(prefix))
    doubled = sum(sum(divmod(2 * int(sign), 10)) for sign in body[::-1][::2])
    number = body + str(-(doubled + sum(int(sign) for sign in body[::-1][1::2])) % 10)
    groups = (4, 10, 15) if length == 15 else (4, 8, 12, 16)
    parts = [number[start:end] for start, end in zip((0, *groups), groups, strict=False)]
    return chance.choice(["", " ", "-"]).join(parts)


IBANS = {
    "DE": lambda: digits(18),
    "GB": lambda: signs(CAPITALS, 4) + digits(14),
    "FR": lambda: digits(10) + signs(UPPER, 11) + digits(2),
    "ES": lambda: digits(20),
    "NL": lambda: signs(CAPITALS, 4) + digits(10),
}


def iban(country: str) -> str:
    body = IBANS[country]()
    check = 98 - int("".join(str(int(sign, 36)) for sign in f"{body}{country}00")) % 97
    number = f"{country}{check:02}{body}"
    in_fours = " ".join(number[start : start + 4] for start in range(0, len(number), 4))
    return chance.choice([number, in_fours, number.lower()])


def ssn() -> str:
    area = chance.choice([number for number in range(1, 900) if number != 666])
    return f"{area:03}-{chance.randint(1, 99):02}-{chance.randint(1, 9999):04}"


def phrase(length: int) -> str:
    words = BIP39.to_mnemonic(chance.randbytes(length * 4 // 3)).split()
    numbered = (f"{number}. {each}" for number, each in enumerate(words, 1))
    forms = (" ".join(words), ", ".join(words), "\n".join(words), "\n".join(numbered), " ".join(words).upper())
    return chance.choice(forms)


def password() -> str:
    forms = (word() + digits(4), word().capitalize() + chance.choice("!?-_.#") + digits(3), signs(ALNUM, 12), word())
    return chance.choice([*forms, "-".join(word() for _ in range(4)), signs(ALNUM + "!$%&/=?*+#", 14).strip("!?=")])


def passphrase() -> str:
    return chance.choice([" ", "-"]).join(word() for _ in range(chance.randint(4, 6)))


KEYS: dict[str, Callable[[], str]] = {
    "AWS id": lambda: f"AKIA{signs(UPPER, 16)}",
    "AWS secret": lambda: signs(ALNUM + "/+", 40),
    "GitHub": lambda: chance.choice([f"ghp_{signs(ALNUM, 36)}", f"github_pat_{signs(ALNUM, 22)}_{signs(ALNUM, 59)}"]),
    "Slack": lambda: f"xoxb-{digits(12)}-{digits(12)}-{signs(ALNUM, 24)}",
    "Stripe": lambda: f"sk_live_{signs(ALNUM, 24)}",
    "OpenAI": lambda: f"sk-proj-{signs(URL, 74)}T3Blbk" + f"FJ{signs(URL, 74)}",
    "Anthropic": lambda: f"sk-ant-api03-{signs(URL, 93)}AA",
    "Google": lambda: f"AIza{signs(URL, 35)}",
    "JWT": jwt,
    "PEM": pem,
    "card number": card,
    **{f"IBAN {country}": (lambda country=country: iban(country)) for country in IBANS},  # type: ignore[misc]
    "SSN": ssn,
    "12 words": lambda: phrase(12),
    "24 words": lambda: phrase(24),
}
FRAMES = (
    "{}",
    "Remember this: {}",
    "ich habe jetzt {} bekommen",
    "`{}` ist neu.",
    "鍵は{}です",
    "KEY={}",
    "- it says {}\n- and more",
)
LINES: dict[str, tuple[Callable[[], str], tuple[str, ...]]] = {
    "password line": (
        password,
        (
            "password: {}",
            "The wifi password: {}",
            "Netflix\nuser: mara\nPassword: {}\n",
            "DB_PASSWORD={}",
            "**Password:** {}",
            '{{"user": "me", "password": "{}"}}',
            "login mara, password: {}, since May",
            "password = {}",
            "Password (router): {}",
        ),
    ),
    "passphrase line": (
        passphrase,
        ("passphrase: {}", "ssh key passphrase = {}", '- passphrase: "{}"', "Passphrase: {}\n"),
    ),
    "PIN line": (
        lambda: digits(chance.choice([4, 4, 5, 6])),
        ("PIN: {}", "PIN={}", "my card, pin: {}", "SIM-PIN: {}.", '"pin": {}'),
    ),
    "URL credentials": (
        lambda: signs(ALNUM, 10),
        (
            "postgres://app:{}@db.example.com:5432/app",
            "open https://admin:{}@router.local/x",
            "redis://:{}@cache:6379/0",
        ),
    ),
    "authorization": (
        lambda: chance.choice([signs(ALNUM, 40), signs(HEX, 32)]),
        (
            "Authorization: Bearer {}",
            "curl -H 'Authorization: Bearer {}' it",
            "Authorization: Basic {}",
            "use bearer {}",
        ),
    ),
}


def is_left(secret: str, redacted: str) -> bool:
    """Return whether anything of a secret is left: a part of it, or of a recovery phrase three words in a row."""
    half = len(secret) // 2 if len(secret) > 8 else 0
    parts = secret.split("\n") if secret.startswith("-----") else [secret, secret[half:], secret[: half or None]]
    words = secret.split()
    parts += [" ".join(words[at : at + 3]) for at in range(len(words) - 2)] if len(words) > 10 else []
    return any(part in redacted for part in parts)


def planted() -> Iterator[tuple[str, str, str]]:
    """Yield kind, text and the secret in it."""
    for kind, make in KEYS.items():
        for number in range(COUNT):
            secret = make()
            yield kind, FRAMES[number % len(FRAMES)].format(secret), secret
    for kind, (make, frames) in LINES.items():
        for number in range(COUNT):
            secret = make()
            yield kind, frames[number % len(frames)].format(secret), secret


def share(redacted: int, count: int) -> str:
    return f"{redacted:5} of {count:6}  {1000 * redacted / max(1, count):6.1f} in 1,000"


def main() -> None:
    """Measure and print."""
    folders = [Path(name) for name in sys.argv[1:]] or [Path(__file__).parent / "data"]
    told = list(ordinary(folders))
    wrong = {text: redacted for text in told if (redacted := redact_secrets(text)) != text}
    print(f"{'ordinary texts of the data':30}{share(len(wrong), len(told))}")
    for text, redacted in wrong.items():
        print(f"    {text[:100]!r} -> {redacted[:100]!r}")
    made_wrong = 0
    for kind, make in MADE.items():
        texts_of_kind = [make() for _ in range(COUNT)]
        failures = [text for text in texts_of_kind if redact_secrets(text) != text]
        made_wrong += len(failures)
        print(f"{'made: ' + kind:30}{share(len(failures), COUNT)}")
        for text in failures[:3]:
            print(f"    {text!r} -> {redact_secrets(text)!r}")
    missed: dict[str, list[str]] = {}
    for kind, text, secret in planted():
        missed.setdefault(kind, [])
        if is_left(secret, redact_secrets(text)):
            missed[kind].append(text)
    for kind, failures in missed.items():
        print(f"{'missed: ' + kind:30}{share(len(failures), COUNT)}")
        for text in failures[:3]:
            print(f"    {text!r} -> {redact_secrets(text)!r}")
    print(json.dumps(summary(told, wrong, made_wrong, missed)))


def summary(told: list[str], wrong: dict[str, str], made_wrong: int, missed: dict[str, list[str]]) -> dict[str, Any]:
    """Return what the last line says."""
    prose = "\n".join(text for text in told if text not in wrong)[:10_000]
    best = min(timed(prose) for _ in range(50))
    return {
        "ordinary": len(told),
        "ordinary_redacted": len(wrong),
        "made": COUNT * len(MADE),
        "made_redacted": made_wrong,
        "planted": COUNT * len(missed),
        "missed": {kind: len(failures) for kind, failures in missed.items()},
        "prose_10kb_ms": round(1000 * best, 2),
    }


def timed(text: str) -> float:
    started = time.perf_counter()
    redact_secrets(text)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
