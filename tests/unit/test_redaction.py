"""Secrets are known by form alone: each is taken out whole, and what only looks like one stays as it was said."""

from __future__ import annotations

import random
import re
import string
import subprocess
import sys
import time
from pathlib import Path

import pytest
from brainiac_plugins.core_loop.prompt_commands import redaction_notice

from brainiac.brain import Brain
from brainiac.llm.redaction import kinds_of, redact, redact_secrets
from tests.support.living import living_brain

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
TWELVE = "legal winner thank year wave sausage worth useful legal winner thank yellow"  # of BIP-39's own test vectors
TWENTY_FOUR = (
    "hamster diagram private dutch cause delay private meat slide toddler razor book happy fancy gospel tennis maple "
    "dilemma loan word shrug inflict delay length"
)


def made(prefix: str, length: int, letters: str = ALNUM, suffix: str = "") -> str:
    """Make a key of its provider's form; no real one, and none that a scanner of this repository would report."""
    chance = random.Random(prefix + str(length))
    return prefix + "".join(chance.choice(letters) for _ in range(length)) + suffix


def block(kind: str) -> str:
    lines = "\n".join(made(f"{kind}{number}", 60) for number in range(4))
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----"


JWT = f"{made('eyJ', 33)}.{made('eyJ', 60)}.{made('', 43, ALNUM + '-_')}"
# what is said, with {} in place of the secret
SECRETS = {
    "OpenAI": ("My OpenAI key is {}.", made("sk-", 20, suffix="T3Blbk" + "FJ" + made("x", 19))),
    "OpenAI project": ("export OPENAI_API_KEY={}", made("sk-proj-", 74, ALNUM + "-_")),
    "Anthropic": ("{} is what Claude Code uses", made("sk-ant-api03-", 93, ALNUM + "-_")),
    "AWS id": ("The access key is {}", made("AKIA", 16, string.ascii_uppercase + string.digits)),
    "AWS id of letters": ("{}", made("AKIA", 16, string.ascii_uppercase)),
    "AWS secret": ("aws_secret_access_key = {}", made("", 40, ALNUM + "/+")),
    "GitHub": ("git clone with {} please", made("ghp_", 36)),
    "GitHub fine-grained": ("Use {}", made("github_pat_", 82, ALNUM + "_")),
    "GitLab": ("token for CI: {}", made("glpat-", 20)),
    "Slack": ("The bot logs in by {}", made("xoxb-123456789012-", 24)),
    "Slack of letters": ("{}", made("xoxb-123456789012-", 24, string.ascii_letters)),
    "Slack webhook": ("Post to {}", "https://hooks.slack.com/services/T01ABCDEF/B02GHIJKL/" + made("", 24)),
    "Stripe": ("STRIPE={}", made("sk_live_", 24)),
    "Stripe of letters": ("STRIPE={}", made("sk_live_", 24, string.ascii_letters)),
    "Google": ("maps key {} works", made("AIza", 35, ALNUM + "-_")),
    "Google OAuth": ("client secret: {}", made("GOCSPX-", 28)),
    "SendGrid": ("Mail goes by {}", made("SG.", 22, suffix="." + made("g", 43))),
    "Twilio": ("twilio: {}", made("SK", 32, HEX)),
    "npm": ("//registry.npmjs.org/:_authToken={}", made("npm_", 36)),
    "PyPI": ("upload with {}", made("pypi-AgEIcHlwaS5vcmc", 120)),
    "Hugging Face": ("I use {} for the models", made("hf_", 34)),
    "Groq": ("Groq gave me {}", made("gsk_", 52)),
    "Telegram": ("bot {}", made("110201543:AA", 33)),
    "Discord": ("Discord: {}", made("MTk4", 20, suffix="." + made("d", 5) + "." + made("e", 26))),
    "Mailchimp": ("newsletter {}", made("", 32, HEX, "-us5")),
    "DigitalOcean": ("droplet {}", made("dop_v1_", 64, HEX)),
    "Azure storage": ("AccountName=me;AccountKey={};EndpointSuffix=core", made("", 86, ALNUM + "+/", "==")),
    "JWT": ("It answered {}", JWT),
    "within Japanese": ("鍵は{}です", made("ghp_", 36)),
    "bearer": ("curl -H 'Authorization: Bearer {}' it", made("b", 40)),
    "bearer in hex": ("Authorization: Bearer {}", made("", 32, HEX)),
    "bearer alone": ("use bearer {}", made("b2", 30)),
    "basic": ("Authorization: Basic {}", "dXNlcjpodW50ZXIy"),
    "postgres": ("DATABASE_URL=postgres://app:{}@db.example.com:5432/app", "s3cr3tpw"),
    "mongo": ("mongodb+srv://me:{}@cluster0.example.net/test", "Winter2024"),
    "redis": ("redis://:{}@cache:6379/0", "opensesame9"),
    "web": ("Open https://admin:{}@router.local/status", "hunter2"),
    "RSA": ("Here it is:\n{}\nkeep it", block("RSA " + "PRIVATE KEY")),
    "OpenSSH": ("{}", block("OPENSSH " + "PRIVATE KEY")),
    "EC": ("key {}", block("EC " + "PRIVATE KEY")),
    "PGP": ("{}", block("PGP " + "PRIVATE KEY BLOCK")),
    "card": ("credit card {} please", "4111 1111 1111 1111"),
    "card in one": ("my Visa is {}.", "4111111111111111"),
    "card with hyphens": ("Kreditkarte {}", "4111-1111-1111-1111"),
    "card in Japanese": ("カード{}です", "5555555555554444"),
    "American Express": ("pay with {}", "3782 822463 10005"),
    "German IBAN": ("Konto {} BIC COBADEFFXXX", "DE89 3704 0044 0532 0130 00"),
    "British IBAN": ("pay to {}", "GB29NWBK60161331926819"),
    "French IBAN": ("{}, merci", "FR14 2004 1010 0505 0001 3M02 606"),
    "Norwegian IBAN": ("{}.", "NO9386011117947"),
    "IBAN in lower case": ("meine iban ist {} bei der bank", "de89370400440532013000"),
    "SSN": ("my social is {}", "536-90-4399"),
    "recovery phrase": ("My wallet: {} (bitcoin)", TWELVE),
    "recovery phrase of 24": ("{}", TWENTY_FOUR),
    "recovery phrase in lines": ("1. {}\n", "\n".join(f"{n}. {word}" for n, word in enumerate(TWELVE.split(), 1))[3:]),
    "recovery phrase in capitals": ("Seeds {}", TWELVE.upper().replace(" ", ", ")),
    "password:": ("password: {}", "hunter2"),
    "a word": ("The wifi password: {}", "swordfish"),
    "several words": ("guest wifi password: {}", "blue bicycle river"),
    "after more": ("Netflix login: mara@example.com password: {}", "bluebird"),
    "before more": ("login mara, password: {}, since May", "swordfish"),
    "within a sentence": ("I set the new router's password: {} works on both.", "Tr0ub4dor&3"),
    "lines": ("Netflix\nuser: mara\nPassword: {}\nsince May", "letmein"),
    "bold": ("**Password:** {}", "letmein"),
    "of what": ("Password (router): {} (since May)", "letmein"),
    "wide colon": ("password：{}", "さくら123"),
    "quoted": ('password: "{}"', "blue bicycle 42"),
    "JSON": ('{{"user": "me", "password": "{}"}}', "letmein1"),
    "environment": ("DB_PASSWORD={}", "kiwi-tango-44"),
    "option": ("mysql -u root --password={} app", "dr0wssap"),
    "with a question mark": ("password: {}?", "hunter2"),
    "passphrase": ("ssh key passphrase: {}", "correct horse battery staple"),
    "passphrase =": ("passphrase = {}", "correct-horse-battery"),
    "PIN": ("PIN: {}", "4821"),
    "PIN =": ("SIM PIN={}, thanks", "482155"),
    "PIN in lower case": ("my card, pin: {}.", "4821"),
}
ALIKE = {
    "uuid": "The note is 0199aaaa-1b2c-7def-8000-0123456789ab.",
    "uuid in a link": '[Portland](../portland.md "uuid:0199aaaa-0000-7000-8000-000000000001")',
    "git hash": "It broke in commit 9f3c2e1d7b6a5f4e3d2c1b0a9f8e7d6c5b4a3f2e.",
    "short git hash": "Reverted 64f37ab and 1d4d73f yesterday.",
    "sha256": "sha256:1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    "ISO date": "We met on 2025-09-16 and on 2025-10-02.",
    "ISO time": "It began at 2025-09-16T15:30:00.123456+02:00 sharp.",
    "phone": "Call +44 20 7946 0958 or 0049-171-5550123 or 555-12-3456789.",
    "file path": "See /home/mara/photos/2024-05-02/IMG_20240502_173045.jpg",
    "memory path": "It stands in memory/long_term/events/2025/09/16/the-flat-viewing-2.md now.",
    "Windows path": r"C:\Users\mara\Documents\Taxes2024\form-1040-final2.pdf",
    "paths of classes": "MainActivity/LoginFragment2/UserProfile3Impl.java and org/example/Foo2Bar",
    "long word": "Donaudampfschifffahrtsgesellschaftskapitän and antidisestablishmentarianism",
    "hyphens": "a state-of-the-art-and-then-some-more-2025-edition",
    "base64-like word": "Mississippi/Tennessee+Kentucky",
    "camel case": "AbstractSingletonProxyFactoryBean2, getUserAccountById2 and TwelveLabsMarengo3AudioRequest",
    "models": "s3nh/LLaMa-Open-Instruct-Uncensored-70K-7B-Merged-GGML, m3hrdadfi/AuxGPT2-alvis-pc-umb-gpt2-medium",
    "placeholders": "curl -H 'Authorization: Bearer your-api-key' -H 'Authorization: Bearer $TOKEN'",
    "arguments": "login(user, password=password)\npassword (bool, optional): hide it\nself.password = password or ''",
    "snake case": "test_that_nothing_is_lost_when_2_writers_meet_at_1_file",
    "order number": "Order 302-4471982-9912847 ships tomorrow.",
    "invoice": "Invoice INV-2024-000123 is paid.",
    "tracking": "UPS says 1Z999AA10123456784.",
    "IBAN with a wrong digit": "DE88 3704 0044 0532 0130 00",
    "ISBN": "ISBN 978-3-16-148410-0",
    "DOI": "https://doi.org/10.1038/s41586-020-2649-2",
    "arXiv": "arXiv:2310.08560v2 is worth reading",
    "address": "https://en.wikipedia.org/wiki/Portland,_Oregon?action=history&offset=20240502",
    "video": "https://www.youtube.com/watch?v=dQw4w9WgXcQ",
    "news": "https://example.com/2024/05/02/why-the-roof-leaks-in-2024-and-what-to-do-3",
    "mail": "mara.bergmann1984@mail.example.com",
    "model name": "Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf",
    "version": "litellm-1.106.2-py3-none-any.whl",
    "wheel": "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",
    "MAC": "The printer is 00:1A:2B:3C:4D:5E.",
    "IPv6": "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
    "DNA": "GATTACAGATTACAGATTACAGATTACA",
    "chemistry": "2-(4-isobutylphenyl)propanoic and N-acetyl-p-benzoquinone",
    "coordinates": "45.523064,-122.676483",
    "pod": "kubectl logs api-server-7d9f8c6b5d-x2x9k",
    "password is wrong": "The password is wrong again.",
    "password manager": "My password manager is Bitwarden.",
    "password forgotten": "I forgot my password: can you remind me how to reset it?",
    "password rules": "For each user name, password rules apply; password: at least 8.",
    "password told in prose": "Das Passwort zum Safe: im Notizbuch, mi contraseña: también, the password is hunter2.",
    "type of a password": "def login(user: str, password: str | None = None) -> bool:",
    "calls": "password = getpass()\npassword: os.environ['PW']\nif password == stored: return",
    "blanks": "password: ${DB_PASSWORD}\npassword: <yours>\npassword: ********\npassphrase:\n\nThen type it.",
    "secret of": "The secret to good bread is Patience; her secret: she sings.",
    "tokens": "The model reads 4096 tokens; a token is 4 letters; max token: 8192",
    "key": "The key is under the mat; the other key: at Tom's.",
    "bearer": "The bearer of this letter is Tom; bearer bonds rose.",
    "door": "The door code is 4471#, Türcode 2093, alarm code: 9034, code: 20417, bike lock 77191.",
    "locker": "My locker at the gym has the code 4711, the one at work 0815.",
    "code": "The postal code is 97201 and the error code was 5123.",
    "pinned": "Pin: the map to the wall. Pinning it is easy. My PIN is on the card. Spin: 1234",
    "GPIO": "led pin = 13, and the date pin: 2024-05-02",
    "statement": "- User bought 12 eggs, 2.5kg flour and 3x500ml milk on 2024-03-08. ^f3k9",
    "not a card": "Order 4111 1111 1111 1112 and parcel 4111111111111112 were sent.",
    "part of a number": "0.4111111111111111 and 94111111111111111 and /4111111111111111",
    "milliseconds": "It began at 1726500000000 and ended at 1726500009999.",
    "bar code": "EAN 4006381333931, article 5012345678900.",
    "no SSN": "000-12-3456, 666-12-3456, 900-12-3456, 123-00-4567, 123-45-0000, part 123-45-6789-2",
    "licence plate": "B-MW1234 and seat 27K on LH2034",
    "listed words": "abandon ability able about above absent absorb abstract absurd abuse access",
    "wrong checksum": TWELVE.replace("yellow", "year"),
    "prose of listed words": "they will want you there this year when people come visit, then have dinner, and that",
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_taken_out(name: str) -> None:
    """And what stands around it stays (F-SEC-1)."""
    said, secret = SECRETS[name]
    redacted = redact_secrets(said.format(secret))
    head, _, tail = said.format("\0").partition("\0")
    assert redacted.startswith(f"{head}[redacted ")
    assert redacted.endswith(f"]{tail}")
    assert not any(line and line in redacted for line in secret.splitlines())
    assert redacted == redact_secrets(redacted)


BESIDE_CARDS = {
    "4111 1111 1111 1111 exp 11/29 cvv 737": "N exp E cvv C",
    "Visa: 4111111111111111\nbis: 09/2027\nPrüfziffer: 123\nLimit 500": "Visa: N\nbis: E\nPrüfziffer: C\nLimit 500",
    "cvv 737, 11/29, 4111111111111111": "cvv C, E, N",
    "3782 822463 10005 1234 12 / 30": "3782 822463 10005 1234 12 / 30",  # one number with what follows
    "3782 822463 10005, code 1234, 12/30 and 999": "N, code C, E and 999",
    "Paid 250 with 4111 1111 1111 1111 on 12 May 2026": "Paid 250 with N on 12 May 2026",
    "4111 1111 1111 1112 exp 11/29 cvv 737": "4111 1111 1111 1112 exp 11/29 cvv 737",
    "exp 11/29 cvv 737": "exp 11/29 cvv 737",
}


@pytest.mark.parametrize("said", BESIDE_CARDS)
def test_the_end_and_the_code_of_a_card_go_with_its_number(said: str) -> None:
    """Known by their form beside a number with a right check digit; elsewhere, and of amounts, nothing is masked."""
    expected = BESIDE_CARDS[said]
    for sign, kind in (("N", "number"), ("E", "expiry"), ("C", "code")):
        expected = re.sub(rf"\b{sign}\b", f"[redacted card {kind}]", expected)
    assert expected == redact_secrets(said) == redact_secrets(redact_secrets(said))


def test_what_only_looks_like_a_secret_stays() -> None:
    """Prose in any language, codes of doors, code, and numbers whose check digits are wrong."""
    assert ALIKE == {name: redact_secrets(text) for name, text in ALIKE.items()}


def test_a_phrase_ends_where_its_checksum_does() -> None:
    """Listed words before and after stay, unless they make a phrase themselves."""
    assert "[redacted recovery phrase] zoo zoo" == redact_secrets(f"{TWELVE} zoo zoo")


def test_plain_text_does_not_wait_for_the_detector() -> None:
    """Words about passwords, paths, addresses, dates and identifiers load nothing; a key does."""
    plain = [text for name, text in ALIKE.items() if name not in ("pod", "paths of classes", "camel case", "models")]
    script = (
        "import sys; from brainiac.llm.redaction import redact_secrets\n"
        "for text in eval(sys.stdin.readline()): redact_secrets(text)\n"
        "print([name for name in sys.modules if name == 'detect_secrets'])"
    )
    ran = subprocess.run([sys.executable, "-c", script], input=repr(plain), capture_output=True, text=True, check=True)
    assert "[]" == ran.stdout.strip()


HOSTILE = {
    "signs": "password: a1" + "!" * 200_000 + "x",
    "mixed": "a1 b2 " * 40_000,
    "passwords": "password: " * 20_000,
    "listed": "abandon " * 30_000,
    "one word": "A" * 1_200_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_text_takes_long(text: str) -> None:
    """Time grows with length, not with its square: a quarter of a megabyte made for it takes seconds at most."""
    started = time.perf_counter()
    redact_secrets(text)
    assert time.perf_counter() - started < 10


@pytest.fixture
def brain(tmp_path: Path) -> Brain:
    """A brain with the settings as they come."""
    return Brain(living_brain(tmp_path / "brain", "{}\n"))


def test_a_code_is_a_secret_where_the_settings_say_so(brain: Brain) -> None:
    """`reflection.redact_codes` takes in `code: 1234`, three to eight digits, and no prose; F-SEC-3."""
    said = "door code: 4471#, code = 20417; the code is 2580, postal code: 12, error code: 123456789"
    assert said == redact(brain, said)
    assert "" == redaction_notice(brain, said)
    brain.tree.config.write_text("reflection: {redact_codes: true}\n")
    kept = "the code is 2580, postal code: 12, error code: 123456789"
    assert f"door code: [redacted code], code = [redacted code]; {kept}" == redact(brain, said)
    told = "Not kept beyond this file: it looks like a code (`reflection.redact_codes`)."
    assert told == redaction_notice(brain, said)
    brain.tree.config.write_text("reflection: {redact_secrets: false, redact_codes: true}\n")
    assert said == redact(brain, said)


NAMED = {
    "password: hunter2": "a password",
    "passphrase: correct horse battery staple": "a passphrase",
    "PIN: 4821": "a PIN",
    "DE89 3704 0044 0532 0130 00": "an IBAN",
    "4111 1111 1111 1111": "a card number",
    "536-90-4399": "a social security number",
    TWELVE: "a recovery phrase",
    block("RSA " + "PRIVATE KEY"): "a private key",
    made("ghp_", 36): "a GitHub Token",
    "Authorization: Bearer abcdef123456": "an access token",
    made("AKIA", 16, string.ascii_uppercase + string.digits): "an AWS Access Key",
    "PIN: 4821, password: hunter2, and pin: 5555": "a PIN and a password",
}


@pytest.mark.parametrize("said", NAMED, ids=NAMED.values())
def test_what_is_not_kept_is_told_by_kind(brain: Brain, said: str) -> None:
    """Each kind once, in the words of the answer, with the setting."""
    expected = f"Not kept beyond this file: it looks like {NAMED[said]} (`reflection.redact_secrets`)."
    assert expected == redaction_notice(brain, said)


def test_what_was_redacted_before_is_no_secret_of_this_text(brain: Brain) -> None:
    """A quoted memory that stands masked is told of by nobody."""
    assert [] == kinds_of(brain, "My password: [redacted password] and the [redacted IBAN]")
    assert ["IBAN"] == kinds_of(brain, "[redacted IBAN] and DE89370400440532013000")
