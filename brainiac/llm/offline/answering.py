"""Answers from what memory holds, quoted, dated and linked; and a plain "nothing" where it holds none."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from brainiac.language.person import in_second_person
from brainiac.language.sentences import content_stems, ends_of
from brainiac.language.statements import Said, statements_of
from brainiac.llm.offline import listing, telling
from brainiac.llm.offline.aliases import names_of_things
from brainiac.llm.offline.evidence import Evidence, gather
from brainiac.llm.offline.former import answer_former
from brainiac.llm.offline.matching import Match, best, matches_of, was_before
from brainiac.llm.offline.querying import READ_CHARACTERS, in_other_words
from brainiac.llm.offline.questions import Question, parse_question
from brainiac.llm.offline.tasks import with_finish
from brainiac.llm.offline.wording import NOTHING, listed, quoted
from brainiac.llm.schemas import Answer, AnswerRequest
from brainiac.recall.hit import Hit

MORE_HITS = 12
MAX_QUESTIONS = 20  # each is searched for apart
LONG = "This prompt is long: I answered its beginning and its end. All of it is kept; ask about the middle on its own."
SHORT_TERM = "memory/short_term.md"  # as cited; where a brain keeps it elsewhere the Core Loop leaves it out


@dataclass
class _Desk:
    """What one answer is made from.

    Attributes:
        hits: Of the request, and those found on the way.
        cited: Indices of the hits that were quoted.
        paths: Of other files that were quoted: short-term memory.
        compared: Questions beside so much evidence, so that none is compared twice.
    """

    request: AnswerRequest
    language: str
    hits: list[Hit]
    evidence: list[Evidence]
    cited: list[int]
    paths: list[str]
    compared: dict[tuple[Question, int], list[Match]] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.request.prompt.path)

    def known_names(self) -> frozenset[str]:
        """Return the stems of words that memory only writes with a capital inside a sentence."""
        return frozenset().union(*(one.sentence.names for one in self.evidence))

    def look_further(self, query: str) -> None:
        """Search once more and add what is new."""
        if self.request.search is None or not query:
            return
        known = {(hit.path, hit.anchor, hit.text) for hit in self.hits}
        self.hits += [
            hit for hit in self.request.search(query, MORE_HITS) if (hit.path, hit.anchor, hit.text) not in known
        ]
        self.evidence = gather(self.request.short_term, self.hits, self.language)

    def matches(self, question: Question) -> list[Match]:
        """Compare all evidence with a question."""
        key = question, len(self.evidence)
        if key not in self.compared:
            self.compared[key] = matches_of(question, self.evidence, _links(self))
        return self.compared[key]

    def cite(self, evidence: Evidence) -> None:
        """Note what an answer rests on: a hit of the request, else the file."""
        if 0 <= evidence.hit < len(self.request.hits):
            self.cited.append(evidence.hit)
        else:
            self.paths.append(self.hits[evidence.hit].path if evidence.hit >= 0 else SHORT_TERM)

    def line(self, evidence: Evidence) -> str:
        """Quote one statement."""
        self.cite(evidence)
        return quoted(evidence, self.hits, self.folder)

    def item(self, entry: Evidence | str) -> str:
        """Quote one statement as a list item."""
        if isinstance(entry, str):
            self.paths.append(SHORT_TERM)
            return f"- {in_second_person(entry)}"
        self.cite(entry)
        return listed(entry, self.hits, self.folder)


def answer(request: AnswerRequest, language: str) -> Answer:
    """Answer a prompt: questions first, then what was noted.

    Args:
        request: The prompt with everything found for it.
        language: Snowball's name.
    """
    read = ends_of(request.prompt.text, READ_CHARACTERS)
    said = statements_of(read, request.now)
    hits = list(request.hits)
    desk = _Desk(request, language, hits, gather(request.short_term, hits, language), [], [])
    told = [one for one in said if one.kind not in ("question", "small-talk")]
    asked = list(dict.fromkeys(one.original for one in said if one.kind == "question"))
    parts = [_answer_question(text, told, desk) for text in asked[:MAX_QUESTIONS]]
    if len(asked) > MAX_QUESTIONS:
        parts.append(f"{len(asked) - MAX_QUESTIONS:,} more questions are left; ask them in another prompt.")
    confirmation = telling.confirm(told, desk.evidence, request, language)
    for evidence in confirmation.rests_on:
        desk.cite(evidence)
    parts += [confirmation.text] if confirmation.text else []
    parts += [LONG] if read != request.prompt.text else []
    text = "\n\n".join(parts) or telling.SMALL_TALK
    return Answer(text=text, cited=sorted(set(desk.cited)), cited_paths=list(dict.fromkeys(desk.paths)))


def _answer_question(text: str, told: Sequence[Said], desk: _Desk) -> str:
    question = _in_context(parse_question(text, desk.request.now, desk.language, desk.known_names()), told, desk)
    if question.listing and not listing.is_narrow(question):
        found = _list(question, desk)
        if found or all(term.is_light for term in question.terms):
            return _render_list(question, found, desk)
    answers = _answers(question, told, desk)
    if not answers and desk.request.search is not None:
        desk.look_further(" ".join(term.stem for term in question.terms))
        desk.look_further(in_other_words(question.text, desk.language))
        answers = _answers(question, told, desk)
    if not answers:
        return _render_nothing(question, desk)
    return _render(answers, desk)


def _in_context(question: Question, told: Sequence[Said], desk: _Desk) -> Question:
    """Complete an elliptic question ("and before that?", "what about Elena?") from the last one."""
    is_elliptic = all(term.is_light for term in question.terms) and question.expected not in ("name",)
    about = re.match(r"(?:and |but |so )?(?:what|how) about\b|^and\b", question.text, re.I)
    last = _last_question(desk)
    if last is None or told or (question.listing and not about) or not (is_elliptic or about or _refers(question)):
        return question
    if _refers(question) and not about:
        names = tuple(term for term in last.terms if term.phrase >= 0)
        return replace(question, terms=(*names, *question.terms)) if names else question
    kept = tuple(term for term in last.terms if not question.terms or term.phrase < 0)
    if not question.asks_former:
        return replace(last, subject="", terms=(*question.terms, *kept), span=question.span or last.span)
    answers = _answers(last, told, desk)
    said = answers[0].evidence.sentence.stems if answers else frozenset()
    since = said - {term.stem for term in last.terms}
    return replace(last, asks_former=True, is_present=False, before=question.before or since)


def _refers(question: Question) -> bool:
    has_names = any(term.phrase >= 0 for term in question.terms)
    return not has_names and bool(
        re.search(r"\b(?:he|she|him|her|his|hers|it|its|they|them|that)\b", question.text, re.I)
    )


def _last_question(desk: _Desk) -> Question | None:
    for exchange in reversed(desk.request.conversation):
        asked = [one for one in statements_of(exchange.prompt.text, desk.request.now) if one.kind == "question"]
        if asked:
            return parse_question(asked[-1].original, desk.request.now, desk.language, desk.known_names())
    return None


def _answers(question: Question, told: Sequence[Said], desk: _Desk) -> list[Match]:
    matches = desk.matches(question)
    if question.asks_former:
        context = question.before or frozenset(
            word for one in told for word in content_stems(one.original, desk.language)
        )
        return answer_former(replace(question, before=context), matches)
    return best(matches, question)


def _links(desk: _Desk) -> dict[int, list[frozenset[str]]]:
    """Return for each report of something done the words of the task it finishes."""
    links: dict[int, list[frozenset[str]]] = {}
    for task, finish in with_finish(desk.evidence, desk.language, is_done=True):
        links.setdefault(id(finish), []).append(task.sentence.stems)
    aliases = names_of_things(desk.evidence)
    for one in desk.evidence if aliases else ():
        for name in aliases.keys() & one.sentence.stems:
            links.setdefault(id(one), []).append(aliases[name])
    return links


def _render(answers: list[Match], desk: _Desk) -> str:
    first = answers[0].evidence
    lines = [desk.line(first)]
    for other in answers[1:]:
        if other.figures.found >= answers[0].figures.found and was_before(other, answers[0]):
            quoted_line = desk.line(other.evidence)
            lines.append("Before that, " + quoted_line[0].lower() + quoted_line[1:])
            break
    return "\n\n".join(lines)


def _list(question: Question, desk: _Desk) -> list[Evidence | str]:
    short_term = desk.request.short_term
    if question.listing == "tasks":
        desk.look_further("todo task remind need to")
        return listing.of_tasks(question, desk.evidence, short_term, desk.language)
    if question.listing == "done":
        return listing.of_done(question, desk.evidence, desk.language)
    if question.listing == "decisions":
        desk.look_further("decided agreed decision " + " ".join(term.stem for term in question.terms))
        return listing.of_decisions(question, desk.evidence)
    if question.listing == "goals":
        return [goal.text for goal in short_term.goals if not goal.is_done]
    if question.listing == "about":
        return list(listing.of_topic(question, desk.evidence))
    return listing.of_events(question, desk.evidence)


def _render_list(question: Question, found: list[Evidence | str], desk: _Desk) -> str:
    if not found:
        return _render_nothing(question, desk)
    if len(found) == 1 and isinstance(found[0], Evidence):
        return desk.line(found[0])
    shown = found[: listing.MAX_LISTED]
    if listing.is_narrow(question) and isinstance(found[0], Evidence):
        return "\n".join([desk.line(found[0]), *(desk.item(entry) for entry in shown[1:])])
    lines = [listing.heading(question, len(found)), "", *(desk.item(entry) for entry in shown)]
    if len(found) > len(shown):
        lines.append(f"- and {len(found) - len(shown)} more")
    return "\n".join(lines)


def _render_nothing(question: Question, desk: _Desk) -> str:
    matches = sorted(desk.matches(question), key=lambda one: -one.score)
    near: list[Evidence] = []
    for one in matches:
        if one.coverage > 0 and one.evidence.sentence.utterance not in [other.sentence.utterance for other in near]:
            near.append(one.evidence)
        if len(near) == 3:
            break
    if not near:
        return NOTHING
    return "\n".join([NOTHING, "", "The nearest it holds:", "", *(listed(one, desk.hits, desk.folder) for one in near)])
