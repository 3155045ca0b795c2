"""What every index must do, as checks that any implementation can be run through.

for check in CHECKS:
    check(make_an_empty_index())
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date

from brainiac.events import PathKind
from brainiac.search.documents import page_of
from brainiac.search.features import EncodedPage, Stamp, encode, name_mark
from brainiac.search.index import Asked, Index, Variant
from brainiac.search.query import Narrowing
from brainiac.search.text import Analyzer

# the checks' own: an index takes stems as they come and knows no language
_ANALYZER = Analyzer("english")
_FOLDER = "memory/long_term/concrete"


def page(name: str, body: str, meta: str = "") -> EncodedPage:
    """Return an encoded memory page of this file name and body, its stamp made of both."""
    text = f"---\nuuid: {name}-uuid\n{meta}---\n# {name}\n\n{body}\n"
    return encode(page_of(f"{_FOLDER}/{name}.md", text, PathKind.MEMORY), _ANALYZER, Stamp(len(name), len(text)))


def _paths(
    index: Index,
    *terms: str,
    required: tuple[str, ...] = (),
    variants: Mapping[str, Variant] | None = None,
    narrowing: Narrowing | None = None,
) -> list[str]:
    """Return the names of the pages that an index finds for words, best first."""
    stems = [stem for term in terms for stem in _ANALYZER.terms(term)]
    pages = index.query(Asked(stems, 20, required=required, variants=variants or {}, narrowing=narrowing)).pages
    return [page.page.path.removeprefix(f"{_FOLDER}/").removesuffix(".md") for page in pages]


def _is(expected: object, actual: object) -> None:
    if expected != actual:
        raise AssertionError(f"expected {expected!r}, found {actual!r}")


def check_empty(index: Index) -> None:
    """An empty index answers with nothing."""
    _is([], _paths(index, "anything"))
    _is({}, dict(index.stamps()))


def check_found_after_commit(index: Index) -> None:
    """A page is found by its words, its title and its tags, whole as it was given."""
    given = page("garden", "- User grows tomatoes. ^a1", "tags: [plants]\n")
    index.replace([given])
    index.commit()
    for term in ("tomato", "garden"):
        _is(["garden"], _paths(index, term))
    _is(["garden"], _paths(index, required=("#plants",)))
    answer = index.query(Asked(["tomato"], 5)).pages[0]
    expected = (given.page, given.words, given.features, given.stamp)
    _is(expected, (answer.page, answer.words, answer.features, answer.stamp))


def check_replaced(index: Index) -> None:
    """A page given again stands once, with its new words only."""
    for body in ("- User grows tomatoes. ^a1", "- User keeps bees. ^a1"):
        index.replace([page("garden", body)])
        index.commit()
    _is([], _paths(index, "tomatoes"))
    _is(["garden"], _paths(index, "bees"))
    _is(1, len(index.stamps()))


def check_removed(index: Index) -> None:
    """A removed page is not found; removing what is not there is no error."""
    index.replace([page("garden", "- Tomatoes. ^a1"), page("kitchen", "- Tomatoes. ^a1")])
    index.commit()
    index.remove([f"{_FOLDER}/garden.md", f"{_FOLDER}/never.md"])
    index.commit()
    _is(["kitchen"], _paths(index, "tomatoes"))


def check_best_first(index: Index) -> None:
    """The page that holds more of the rare words comes first."""
    index.replace([page(f"p{number}", f"- Tea number {number}. ^a1") for number in range(20)])
    index.replace([page("best", "- Tea with cardamom and saffron. ^a1")])
    index.commit()
    _is("best", _paths(index, "tea", "cardamom", "saffron")[0])


def check_variants(index: Index) -> None:
    """A page that only holds what is like a term is found by it, behind one that holds the term."""
    index.replace([page("near", "- Zahnarzttermin. ^a1"), page("same", "- Termin. ^a1"), page("other", "- Tea. ^a1")])
    index.commit()
    variants = {"zahnarzttermin": Variant("termin", 0.8)}
    _is((["same"], ["same", "near"]), (_paths(index, "Termin"), _paths(index, "Termin", variants=variants)))


def check_narrowed(index: Index) -> None:
    """Only pages that the fields of a query let in are found, with terms and without; without, the newest first."""
    index.replace(
        [page(f"tea{day}", "- Tea. ^a1", f"tags: [t{day}]\nupdated_at: 2025-03-0{day}\n") for day in (1, 2, 3)]
    )
    index.commit()
    since = Narrowing(after=date(2025, 3, 2).toordinal())
    _is(["tea3", "tea2"], _paths(index, narrowing=since))
    _is(["tea2", "tea3"], sorted(_paths(index, "tea", narrowing=since)))
    _is(["tea1"], _paths(index, "tea", narrowing=Narrowing(paths=("TEA1",))))
    _is(["tea2"], _paths(index, "tea", required=("#t2",), narrowing=since))


def check_names(index: Index) -> None:
    """A page is found by the marks of its title and its other names."""
    index.replace([page("garden", "- Tomatoes. ^a1", "aliases: [Back Yard]\n"), page("kitchen", "- Garden tea. ^a1")])
    index.commit()
    for name in ("garden", "back yard"):
        pages = index.query(Asked([name_mark(name, _ANALYZER)], 20)).pages
        _is(["garden"], [encoded.page.title for encoded in pages])


def check_words(index: Index) -> None:
    """Words are kept with their stems, each once."""
    index.replace([page("garden", "- Tomatoes. ^a1")])
    for _ in range(2):
        index.add_words([("tomatoes", "tomato"), ("tea", "tea")])
    index.commit()
    _is([("tea", "tea"), ("tomatoes", "tomato")], sorted(index.words()))


def check_frequencies(index: Index) -> None:
    """Document frequencies are those of the passages."""
    index.replace([page(f"p{number}", f"- Tea{' cardamom' * (number < 3)}. ^a1") for number in range(10)])
    index.commit()
    candidates = index.query(Asked(["tea", "cardamom", "coffe"], 20))  # stems; the last stands nowhere
    _is(({"tea": 10, "cardamom": 3, "coffe": 0}, 10), (dict(candidates.frequencies), candidates.n_passages))


def check_named(index: Index) -> None:
    """Pages are had by path and by uuid; unknown names are left out."""
    index.replace([page("garden", "- Tomatoes. ^a1"), page("kitchen", "- Tea. ^a1")])
    index.commit()
    pages = index.pages(["garden-uuid", f"{_FOLDER}/kitchen.md", "unknown"])
    _is(["garden", "kitchen"], sorted(page.page.title for page in pages))


def check_links(index: Index) -> None:
    """Links are counted by their target, and none of a replaced page stays."""
    link = '- See [Garden](garden.md "uuid:garden-uuid"). ^a1'
    index.replace([page("garden", "- Tomatoes. ^a1"), page("kitchen", link), page("cellar", link)])
    index.commit()
    _is(2, index.inbound(["garden-uuid"]).get("garden-uuid", 0))
    index.replace([page("cellar", "- Wine. ^a1")])
    index.commit()
    _is(1, index.inbound(["garden-uuid"]).get("garden-uuid", 0))
    _is([f"{_FOLDER}/kitchen.md"], [linked.path for linked in index.linked() if linked.links])


CHECKS: tuple[Callable[[Index], None], ...] = (
    check_empty,
    check_found_after_commit,
    check_replaced,
    check_removed,
    check_best_first,
    check_variants,
    check_narrowed,
    check_names,
    check_words,
    check_frequencies,
    check_named,
    check_links,
)
