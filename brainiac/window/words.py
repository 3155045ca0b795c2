"""Words of memory as HTML. They are untrusted: no HTML of theirs, no picture, and a link says where it leads."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from datetime import date, datetime
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup, escape

from brainiac.clock import parse_iso
from brainiac.formats.markdown import decode_text
from brainiac.storage.withheld import split_or_all

MAX_CHARACTERS = 20_000
MAX_COMPARED = 2_000  # words of two texts that are compared word by word; what is longer differs as a whole
AROUND = 240  # characters that are shown on each side of a quote
PROCESSES = ("core_loop", "reflection", "promotion", "organization", "kernel")  # a person knows them by one name
_PATH = re.compile(r"`?\b((?:memory|inbox)/[^`\n“”<>]{0,300}?\.md)`?|`([^`\n]{1,200})`|\b([0-9a-f-]{36})(?=: “)")
_UNDO = re.compile(r"brainiac undo ([0-9a-f-]{36})")
_OURS = re.compile(  # ids and marks
    r"[ \t]*<!--.*?-->|[ \t]+\^[0-9a-z]{4,6}(?=[ \t]*$)|; replaced by \^[A-Za-z0-9-]+(?=\))", re.MULTILINE
)
# what turns the direction of the text after it, or is seen by nobody: shown, so that nothing is disguised by it
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def shown(value: Any) -> Any:
    """Return a text with its unseen characters by their numbers; of a page that is all that is written into it."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _UNSEEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", value)


def memory_html(text: str, path: str = "") -> Markup:
    """Return a text of memory as HTML, which htmx does not look into; what is very long is cut.

    Args:
        text: Markdown.
        path: Of the file that it stands in, from which its links count; "" where it is not known.
    """
    cut = text[:MAX_CHARACTERS]
    html = _PARSER.render(shown(cut.replace("\r", "")), {"path": path})
    if len(cut) < len(text):
        html += f"<p><small>… and {len(text) - len(cut):,} more characters, in its file</small></p>"
    return Markup('<div class="words" dir="auto" hx-ignore>{}</div>').format(Markup(html))


def differing(before: str, after: str) -> tuple[Markup, Markup]:
    """Return two texts as HTML with what differs marked: what only the first has, and what only the second has."""
    cut = [text[:MAX_CHARACTERS] + "…" * (len(text) > MAX_CHARACTERS) for text in (before, after)]
    sides = [re.findall(r"\w+|\W", shown(text.replace("\r", ""))) for text in cut]
    marked = Markup(""), Markup("")
    is_long = sum(map(len, sides)) > MAX_COMPARED
    compared = [("replace", 0, len(sides[0]), 0, len(sides[1]))] if is_long and sides[0] != sides[1] else None
    for what, *ends in compared or difflib.SequenceMatcher(None, sides[0], sides[1], autojunk=False).get_opcodes():
        pieces = "".join(sides[0][ends[0] : ends[1]]), "".join(sides[1][ends[2] : ends[3]])
        signs = [Markup("{}")] * 2 if what == "equal" else [Markup("<del>{}</del>"), Markup("<ins>{}</ins>")]
        added = [sign.format(piece) if piece else "" for sign, piece in zip(signs, pieces, strict=True)]
        marked = marked[0] + added[0], marked[1] + added[1]
    return marked


def who(by: str) -> str:
    """Return who did something, as a person says it."""
    return "you" if by in ("person", "cli") else "Brainiac" if by in PROCESSES else by


def titled(text: str, title_of: Callable[[str], str], *, is_linked: bool = True) -> Markup:
    """Return a sentence with pages of memory by title instead of path, events as links, and code as code.

    Args:
        text: The sentence.
        title_of: Returns the title of the page at a path; "" for none.
        is_linked: Whether the titles lead to their pages.
    """
    parts, last = [], 0
    for found in _PATH.finditer(text):
        parts.append(escape(shown(text[last : found.start()])))
        last, path, undo = found.end(), found[1] or "", _UNDO.fullmatch(found[2] or "")
        event = undo[1] if undo else found[3]
        name = posixpath.basename(path.removesuffix("/_index.md")).removesuffix(".md").replace("-", " ")
        name = (title := title_of(path)) or (name if path.startswith("memory/") else path or found[2])
        # the page of an event shows it, and says what undoing it would do
        to, name = (f"/run?event={event}", "undo" if undo else "this") if event else (f"/page?name={quote(path)}", name)
        link = '<a href="{}">{}</a>' if (title or event) and is_linked else "{1}" if path else "<code>{1}</code>"
        parts.append(Markup(link).format(to, shown(name)))
    return Markup("").join([*parts, escape(shown(text[last:]))])


def below_properties(text: str) -> str:
    """Return the text of a file as a person wrote it: without front matter, ids and marks."""
    return _OURS.sub("", text[split_or_all(text)[1] :]).strip("\n")


def changed_lines(before: str | bytes | None, after: str | bytes | None) -> Iterator[tuple[str, str]]:
    """Yield the lines of a text that were changed, each run of them before and after."""
    texts = (decode_text(text) if isinstance(text, bytes) else text or "" for text in (before, after))
    sides = [below_properties(text).splitlines(keepends=True) for text in texts]
    for what, *ends in difflib.SequenceMatcher(None, sides[0], sides[1]).get_opcodes():
        if what != "equal":
            yield "".join(sides[0][ends[0] : ends[1]]), "".join(sides[1][ends[2] : ends[3]])


def in_place(text: str, quote: str) -> Markup:
    """Return a quote as HTML, marked where it stands in a text, with what stands around it."""
    at = text.find(quote)
    if not quote or at < 0:
        return Markup("{}{}").format(shown(text[: 2 * AROUND]), "…" * (len(text) > 2 * AROUND))
    start, end = max(0, at - AROUND), at + len(quote)
    before, after = text[start:at], text[end : end + AROUND]
    parts = "…" * (start > 0) + before, quote[:MAX_CHARACTERS], after + "…" * (end + AROUND < len(text))
    return Markup("{}<mark>{}</mark>{}").format(*map(shown, parts))


def relative_day(at: str, now: datetime) -> str:
    """Return a moment or day (ISO 8601) as a person says it: `12:01`, `yesterday`, `2 May 2024`."""
    try:
        moment = None if len(at) == 10 else parse_iso(at).astimezone(now.tzinfo)
        day = moment.date() if moment else date.fromisoformat(at)
    except ValueError:
        return at
    days = (day - now.date()).days
    if days == 0:
        return f"{moment:%H:%M}" if moment else "today"
    if abs(days) == 1:
        return "tomorrow" if days > 0 else "yesterday"
    if abs(days) < 7:
        return f"in {days} days" if days > 0 else f"{-days} days ago"
    return f"{day.day} {day:%B}" + ("" if day.year == now.year else f" {day.year}")


def _host(url: str) -> str:
    """Return the host that a link leads to; "" where it may not be followed."""
    try:
        parts = urlsplit(url)
        return (parts.hostname or "") if parts.scheme in ("http", "https") and not parts.username else ""
    except ValueError:
        return ""


def _page(url: str, title: str, path: str) -> str:
    """Return the window's path of the page of memory that a link means; "" where it means none."""
    uuid = title.removeprefix("uuid:").strip() if title.startswith("uuid:") else ""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if parts.scheme or parts.netloc or not (uuid or parts.path.endswith(".md") or title == _WIKI):
        return ""
    target = unquote(parts.path)
    if title != _WIKI:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        while target.startswith("../"):  # it is not known from where
            target = target[3:]
    fragment = unquote(parts.fragment).removeprefix("^")
    return f"/page?name={quote(uuid or target, safe='')}" + (f"#b-{quote(fragment)}" if fragment else "")


def _wiki(state: StateInline, silent: bool) -> bool:
    """Read `[[name]]`, `[[name#part|words]]` as a link."""
    match = _WIKI_LINK.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        link = state.push("link_open", "a", 1)
        link.attrs = {"href": quote(match["name"].strip(), safe="/#^"), "title": _WIKI}
        state.push("text", "", 0).content = (match["words"] or match["name"]).strip()
        state.push("link_close", "a", -1)
    state.pos = match.end()
    return True


_WIKI = "\0wiki"  # no title that a text can have
_WIKI_LINK = re.compile(r"\[\[(?P<name>[^\[\]\n|]+)(?:\|(?P<words>[^\[\]\n]+))?\]\]")
_Environment = MutableMapping[str, Any]


def _link_open(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: _Environment) -> str:
    url, title = (str(tokens[index].attrGet(name) or "") for name in ("href", "title"))
    env["host"] = ""
    if page := _page(url, title, env.get("path", "")):
        env["is_page"] = True
        return f'<a href="{escape(page)}">'
    env["host"] = _host(url)
    return f'<a href="{escape(url)}" rel="noreferrer noopener nofollow">' if env["host"] else '<span class="dead">'


def _link_close(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: _Environment) -> str:
    host = env.pop("host", "")
    if env.pop("is_page", False):
        return "</a>"
    return f"</a> <small>↗ {escape(host)}</small>" if host else "</span>"


def _image(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: _Environment) -> str:
    return f"<small>[picture, not loaded: {escape(tokens[index].content)}]</small>"


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # `_link_open` decides, by other rules
    parser.inline.ruler.before("link", "wiki", _wiki)
    for name, rule in (("link_open", _link_open), ("link_close", _link_close), ("image", _image)):
        parser.add_render_rule(name, rule)
    return parser


_PARSER = _parser()
