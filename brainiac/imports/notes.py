"""Files that become one page each: Markdown notes with the dates that they have, mail, and PDF files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import message_from_binary_file, policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from io import BytesIO
from typing import BinaryIO

from brainiac.clock import iso
from brainiac.confined import pdf_text
from brainiac.errors import FormatError
from brainiac.formats.frontmatter import split
from brainiac.formats.markdown import decode_text
from brainiac.formats.page import own_date, title_of
from brainiac.imports.chats import as_text
from brainiac.imports.records import Note, quoted
from brainiac.text.tokens import as_sentence

MAX_BYTES = 5_000_000  # of a note or a mail; larger ones are no text that somebody wrote
MAX_PDF_BYTES = 100_000_000
MAX_PDF_CHARACTERS = 3_000_000  # of a page in memory; larger ones are not watched for changes
_FROM = re.compile(rb"^From \S+.*\d{4}\r?\n")
_SHOWN_HEADERS = ("From", "To", "Cc", "Date", "Subject")


def note(opened: BinaryIO, path: str, file_at: str) -> Note:
    """Return a note of a folder.

    Args:
        opened: The file.
        path: Relative to the folder; the note keeps it, so that links between notes lead where they led.
        file_at: ISO 8601 moment of the file.
    """
    # one byte more shows whether the file goes on, without reading a huge one
    content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        return Note(path, path, problem="is larger than 5 MB")
    text = decode_text(content).removeprefix("\ufeff")
    try:
        meta, offset = split(text, path)
    except FormatError as error:
        return Note(path, path, problem=f"has front matter that cannot be read: {error.problem}")
    return Note(path, title_of(meta, text, offset, path), text, own_date(meta, path), path, file_at)


# --- mail ----------------------------------------------------------------------------------------------------------


def is_mailbox(head: bytes) -> bool:
    """Return whether the beginning of a file is that of a mailbox in mbox format."""
    return _FROM.match(head) is not None


def mails(opened: BinaryIO) -> Iterator[Note]:
    """Yield a note for each mail of a mailbox; for a mail that cannot be read one with the problem."""
    for number, raw in enumerate(_messages(opened), 1):
        if len(raw) > MAX_BYTES * 10:
            yield Note(str(number), f"mail {number}", problem="is larger than 50 MB")
            continue
        mail = message_from_binary_file(BytesIO(raw), policy=policy.default)
        try:
            yield _mail(mail, number)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            yield Note(str(number), f"mail {number}", problem=f"cannot be read ({type(error).__name__}: {error})")


def _messages(opened: BinaryIO) -> Iterator[bytes]:
    """Yield the bytes of each mail of a mailbox, without the line `From …` that begins it."""
    message: list[bytes] | None = None
    is_after_blank = True
    for line in opened:
        if is_after_blank and _FROM.match(line):
            if message is not None:
                yield b"".join(message)
            message = []
        elif message is not None:
            message.append(line[1:] if line.startswith(b">From ") else line)
        is_after_blank = not line.strip()
    if message is not None:
        yield b"".join(message)


def _mail(mail: EmailMessage, number: int) -> Note:
    """Return a mail as a note: its main headers and its text."""
    subject = str(mail.get("Subject") or "").strip() or "(no subject)"
    try:
        at = iso(parsedate_to_datetime(str(mail.get("Date"))))
    except (ValueError, TypeError, OverflowError):
        at = ""
    body = mail.get_body(("plain", "html"))
    text = "" if body is None else str(body.get_content())
    if body is not None and body.get_content_subtype() == "html":
        text = as_text(text)
    # of the dozens of headers only those that a mail program shows
    headers = "\n".join(f"{name}: {mail[name]}" for name in _SHOWN_HEADERS if mail[name])
    files = "".join(f"\n[{name}]" for part in mail.iter_attachments() if (name := part.get_filename()))
    key = str(mail.get("Message-ID") or "").strip() or f"{at} {subject} {number}"
    return Note(key, subject, f"{headers}\n\n{text.strip()}\n{files}".rstrip(), at)


# --- PDF files -----------------------------------------------------------------------------------------------------


def document(opened: BinaryIO, path: str, file_at: str, link: str = "") -> Note:
    """Return a PDF file as a note with its text page by page, which says which pages have none.

    Args:
        opened: The file.
        path: Relative to the folder.
        file_at: ISO 8601 moment of the file.
        link: To the file, in Markdown; without it the file stands beside the page.
    """
    content, name = opened.read(MAX_PDF_BYTES + 1), path.rpartition("/")[2]
    if len(content) > MAX_PDF_BYTES:
        return Note(path, name, problem="is larger than 100 MB")
    pdf = pdf_text(content)
    if pdf.problem and not pdf.pages:
        return Note(path, name, problem=pdf.problem)
    n_empty, remarks = sum(not page.strip() for page in pdf.pages), list[str]()  # what is missing of its text
    if pdf.pages and n_empty == len(pdf.pages):
        remarks.append("No page has text: they are pictures.")
    elif n_empty:
        remarks.append(f"{n_empty} of its pages {'has' if n_empty == 1 else 'have'} no text.")
    if len(pdf.pages) < pdf.n_pages:
        remarks.append(as_sentence(f"From page {len(pdf.pages) + 1} on it was not read: {pdf.problem}"))
    remark = " ".join(remarks)
    count = f"{pdf.n_pages} page{'' if pdf.n_pages == 1 else 's'}"
    parts = [f"# {name} (Documents)\n\n{link or f'[{name}](<{name}>)'}: {count}. {remark}".rstrip()]
    parts += [f"## Page {number}\n\n{quoted(page)}" for number, page in enumerate(pdf.pages, 1) if page.strip()]
    text = "\n\n".join(parts)
    if len(text) > MAX_PDF_CHARACTERS:
        text = text[:MAX_PDF_CHARACTERS]
        remark = f"{remark} The text is cut after 3 million characters.".strip()
    return Note(path, name, f"{text}\n", path=f"{path}.md", file_at=file_at, original=content, remark=remark)
