"""Search queries from a prompt, with the last turn's words where the prompt alone says too little."""

from __future__ import annotations

from brainiac.language.sentences import content_stems, ends_of, related, stop_words, tokenize
from brainiac.language.statements import statements_of
from brainiac.llm.schemas import Queries, QueriesRequest

READ_CHARACTERS = 50_000  # of a prompt for its answer; reflection and promotion read all of it
MAX_CHARACTERS = 300
MAX_SYNONYMS = 12


def write_queries(request: QueriesRequest, language: str) -> Queries:
    """Return one query a question or statement, most important first; none for small talk."""
    text = ends_of(request.prompt.text, READ_CHARACTERS)
    said = [one for one in statements_of(text, request.now) if one.kind != "small-talk"]
    said.sort(key=lambda one: one.kind != "question")
    queries = [words for one in said if (words := _words(one.plain, language))]
    is_elliptic = any(one.kind == "question" and len(_words(one.plain, language).split()) < 2 for one in said)
    if is_elliptic and request.conversation:
        last = _words(request.conversation[-1].prompt.text, language)
        queries = [f"{last} {queries[0] if queries else ''}".strip(), *queries]
    if said and said[0].kind == "question" and (others := in_other_words(said[0].plain, language)):
        queries.append(others)
    return Queries(queries=[query[:MAX_CHARACTERS] for query in dict.fromkeys(queries) if query][:8])


def in_other_words(text: str, language: str) -> str:
    """Return near-synonyms of the words that count, for an index that knows none; stems serve as well as words."""
    found: dict[str, None] = {}
    for one in content_stems(text, language):
        near = sorted(related(one).items(), key=lambda pair: (-pair[1], pair[0]))
        found |= dict.fromkeys(word for word, likeness in near[: MAX_SYNONYMS + 1] if likeness > 0.8 and word != one)
    return " ".join(found)[:MAX_CHARACTERS]


def _words(text: str, language: str) -> str:
    stop = stop_words(language)
    return " ".join(dict.fromkeys(word for word in tokenize(text) if word not in stop))
