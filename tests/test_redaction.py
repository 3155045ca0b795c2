"""Secrets do not go beyond the inbox, and what only looks like one stays as it was said."""

from __future__ import annotations

import random
import string
import subprocess
import sys

import pytest

from brainiac.redaction import redact_secrets

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


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
    "AWS secret": ("aws_secret_access_key = {}", made("", 40, ALNUM + "/+")),
    "GitHub": ("git clone with {} please", made("ghp_", 36)),
    "GitHub fine-grained": ("Use {}", made("github_pat_", 82, ALNUM + "_")),
    "GitLab": ("token for CI: {}", made("glpat-", 20)),
    "Slack": ("The bot logs in by {}", made("xoxb-123456789012-", 24)),
    "Slack webhook": ("Post to {}", "https://hooks.slack.com/services/T01ABCDEF/B02GHIJKL/" + made("", 24)),
    "Stripe": ("STRIPE={}", made("sk_live_", 24)),
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
    "bearer": ("curl -H 'Authorization: Bearer {}' it", made("b", 40)),
    "bearer in hex": ("Authorization: Bearer {}", made("", 32, HEX)),
    "basic": ("Authorization: Basic {}", "dXNlcjpodW50ZXIy"),
    "postgres": ("DATABASE_URL=postgres://app:{}@db.example.com:5432/app", "s3cr3tpw"),
    "mongo": ("mongodb+srv://me:{}@cluster0.example.net/test", "Winter2024"),
    "redis": ("redis://:{}@cache:6379/0", "opensesame9"),
    "web": ("Open https://admin:{}@router.local/status", "hunter2"),
    "RSA": ("Here it is:\n{}\nkeep it", block("RSA " + "PRIVATE KEY")),
    "OpenSSH": ("{}", block("OPENSSH " + "PRIVATE KEY")),
    "EC": ("key {}", block("EC " + "PRIVATE KEY")),
    "PGP": ("{}", block("PGP " + "PRIVATE KEY BLOCK")),
    "told": ("My password is {}.", "hunter2"),
    "told, a word": ("Remember that the wifi password is {}.", "swordfish"),
    "told, for": ("The password for the guest network is {}, don't lose it.", "Tr0ub4dor&3"),
    "told, was": ("My old password was {}.", "Sommer2019"),
    "changed": ("I changed my password to {} today", "n3wer-than-new"),
    "colon": ("Netflix login: mara@example.com password: {}", "bluebird"),
    "quoted": ('The passphrase is "{}".', "correct horse battery staple"),
    "single quotes": ("The Wi-Fi password is '{}'", "blue bicycle 42"),
    "PIN": ("My PIN is {}", "4821"),
    "PIN of": ("PIN of the bike lock: {}", "77191"),
    "passcode": ("The passcode for the door is {}.", "5512#"),
    "alarm code": ("We changed the alarm code to {} last night.", "9034"),
    "door code": ("Door code: {}, ring twice", "20417"),
    "login": ("The Netflix login is mara / {}.", "blue-bird7"),
    "German": ("Das Passwort lautet {}.", "Winter-Apfel7"),
    "environment": ("DB_PASSWORD={}", "kiwi-tango-44"),
    "is:": ("the password is: {}", "hunter2"),
    "still": ("my password was always {}", "hunter2"),
    "pw": ("wifi pw: {}", "bluefish42"),
    "pw is": ("pw is {}", "Tr0ub4dor&3"),
    "pass:": ("pass: {}", "hunter2"),
    "no word between": ("pwd {}", "hunter2"),
    "user and password": ("user anna, password {}", "swordfish"),
    "user and pass": ("login for the portal: user bob pass {}", "qwerty12"),
    "password's": ("The password's {}", "hunter2"),
    "dash": ("password - {}", "hunter2"),
    "arrow": ("password → {}", "hunter2"),
    "bracket": ("my password ({}) still works", "hunter2"),
    "said before": ("{} is my password", "hunter2"),
    "used as": ("Use {} as the Wi-Fi password.", "hunter2"),
    "got changed": ("the admin password got changed to {}", "Winter2025"),
    "the old one": ("I changed my password from {} to Winter2024", "Fall2023"),
    "the new one": ("I changed my password from Fall2023 to {}", "Winter2024"),
    "PUK": ("SIM PIN 1234, PUK {}", "12345678"),
    "SIM PIN": ("SIM PIN {}, PUK 12345678", "1234"),
    "PIN's": ("the pin's {}", "4821"),
    "gate code": ("gate code {}", "4471#"),
    "code for a door": ("The code for the front door is {}", "2580"),
    "code to a building": ("The code to the building is {}", "4471"),
    "building code": ("building code: {}", "4471"),
    "Türcode": ("Türcode ist {}", "4471"),
    "code de la porte": ("Code de la porte : {}", "4471"),
    "Wi-Fi key": ("the Wi-Fi key is {}", "sunflower77"),
    "mysql": ("mysql -uroot -p{}", "hunter2"),
    "sshpass": ("sshpass -p {} ssh host", "hunter2"),
    "card": ("credit card {} exp 09/27", "4111 1111 1111 1111"),
    "card in one": ("my Visa is {}.", "4111111111111111"),
    "card with hyphens": ("my credit card is {}", "4111-1111-1111-1111"),
    "American Express": ("pay with {}", "3782 822463 10005"),
    "JSON": ('{{"user": "me", "password": "{}"}}', "letmein1"),
    "YAML": ("client_secret: {}", "abc123def456"),
    "option": ("mysql -u root --password={} app", "dr0wssap"),
    "curl": ("curl -u admin:{} https://example.com", "p4ssw0rd"),
    "hex key": ("The API key for the weather service is {}.", made("", 32, HEX)),
}
ALIKE = {
    "uuid": "The note is 0199aaaa-1b2c-7def-8000-0123456789ab.",
    "uuid in a link": '[Portland](../portland.md "uuid:0199aaaa-0000-7000-8000-000000000001")',
    "git hash": "It broke in commit 9f3c2e1d7b6a5f4e3d2c1b0a9f8e7d6c5b4a3f2e.",
    "short git hash": "Reverted 64f37ab and 1d4d73f yesterday.",
    "sha256": "sha256:1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    "ISO date": "We met on 2025-09-16 and on 2025-10-02.",
    "ISO time": "It began at 2025-09-16T15:30:00.123456+02:00 sharp.",
    "phone": "Call +44 20 7946 0958 or 0049-171-5550123.",
    "file path": "See /home/mara/photos/2024-05-02/IMG_20240502_173045.jpg",
    "memory path": "It stands in memory/long_term/events/2025/09/16/the-flat-viewing-2.md now.",
    "Windows path": r"C:\Users\mara\Documents\Taxes2024\form-1040-final2.pdf",
    "long word": "Donaudampfschifffahrtsgesellschaftskapitän and antidisestablishmentarianism",
    "hyphens": "a state-of-the-art-and-then-some-more-2025-edition",
    "base64-like word": "Mississippi/Tennessee+Kentucky",
    "camel case": "AbstractSingletonProxyFactoryBean2 and getUserAccountById2",
    "snake case": "test_that_nothing_is_lost_when_2_writers_meet_at_1_file",
    "order number": "Order 302-4471982-9912847 ships tomorrow.",
    "invoice": "Invoice INV-2024-000123 is paid.",
    "tracking": "UPS says 1Z999AA10123456784.",
    "IBAN": "DE89 3704 0044 0532 0130 00",
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
    "password to": "I still need the password to Netflix and the one to the router.",
    "PIN length": "A PIN is 4 digits, isn't it?",
    "secret of": "The secret to good bread is Patience.",
    "secret told": "Her secret is that she sings.",
    "tokens": "The model reads 4096 tokens; a token is 4 letters.",
    "token limit": "max token: 8192",
    "key": "The key is under the mat; the other key: at Tom's.",
    "bearer": "The bearer of this letter is Tom; bearer bonds rose.",
    "code": "The postal code is 97201 and the error code was 5123.",
    "code lines": "The door code has 4 digits; the source code is 9000 lines.",
    "login pages": "The login is slow / flaky on page 2, the login page: https://example.com/a1 / b2",
    "pinned": "Pin: the map to the wall. Pinning it is easy.",
    "statement": "- User bought 12 eggs, 2.5kg flour and 3x500ml milk on 2024-03-08. ^f3k9",
    "Passwort ist falsch": "Passwort ist falsch, das Kennwort ist abgelaufen.",
    "owned year": "The access code was 2019's best novel.",
    "boarding pass": "Boarding pass: LH2034, mountain pass: 1370 m.",
    "to pass": "Let user tests pass before 2pm; they pass in 4x4 runs.",
    "password rules": "For each user name, password rules apply; password: at least 8.",
    "password length": "The password (12-character minimum) - see chapter 12 - is set from 8 to 12 signs.",
    "password hash": "Store the password sha256 hashed, never the password (optional).",
    "password's": "The password's length is 12 characters and the password's gone.",
    "as a password": "Bitwarden is the password manager; 1Password is the password app I had.",
    "is the year": "2024 is the password of nobody.",
    "PIN board": "PIN (4 digits) goes on the pin board; the pin is 4 cm long.",
    "code review": "The security code review is on Friday, the code for the talk is 2000 lines.",
    "building regulations": "Building code: 2018 edition; the building code is strict.",
    "source code": "The code to parse doors is in door.py.",
    "Wi-Fi": "The Wi-Fi key is on the router.",
    "mysql port": "mysql -h db -P3306 -u me -p",
    "not a card": "Order 4111 1111 1111 1112 and parcel 4111111111111112 were sent.",
    "milliseconds": "It began at 1726500000000 and ended at 1726500009999.",
    "bar code": "EAN 4006381333931, article 5012345678900.",
    "phone groups": "Ring 0171 5550 1234 or 4420 7946 0958.",
    "PW": "The PW was built by 40 people; PWs differ.",
    "changed": "I changed my password to something better, and the password was changed to protect us.",
    "licence plate": "B-MW1234 and seat 27K on LH2034",
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_taken_out(name: str):
    """And what stands around it stays."""
    said, secret = SECRETS[name]
    redacted = redact_secrets(said.format(secret))
    assert secret not in redacted
    assert "[redacted " in redacted
    assert not any(line and line in redacted for line in secret.splitlines())
    assert redacted == redact_secrets(redacted)


@pytest.mark.parametrize("name", ALIKE)
def test_what_only_looks_like_a_secret_stays(name: str):
    assert ALIKE[name] == redact_secrets(ALIKE[name])


def test_plain_text_does_not_wait_for_the_detector():
    """Words about passwords, paths, addresses, dates and identifiers load nothing; a key does."""
    plain = [text for name, text in ALIKE.items() if name != "pod"]
    script = (
        "import sys; from brainiac.redaction import redact_secrets\n"
        "for text in eval(sys.stdin.readline()): redact_secrets(text)\n"
        "print([name for name in sys.modules if name == 'detect_secrets'])"
    )
    ran = subprocess.run([sys.executable, "-c", script], input=repr(plain), capture_output=True, text=True, check=True)
    assert "[]" == ran.stdout.strip()
