"""The weights of the ranking, learned by `benchmarks/locomo.py --learn` (figures: docs/decisions/ranker.md)."""

from __future__ import annotations

LEXICAL_WEIGHTS: dict[str, float] = {
    "window_5": 1.46,
    "with_previous": 1.13,
    "same_speaker": 0.99,
    "page": 1.15,
    "page_covered": 0.76,
    "window_covered": 0.65,
    "before_previous": 0.64,
    "next": 0.21,
    "about": 1.33,
    "about_own": 0.61,
    "about_first_person": 0.61,
    "about_tells": 0.50,
    "first_named": 1.22,
    "asks": -0.24,
    "answers": 0.55,
    "answers_match": 1.14,
    "opening": 0.85,
    "time": 0.18,
    "names": 1.27,
    "when_time": 1.08,
    "when_time_own": 1.04,
    "where_place": 1.62,
    "where_names": 0.64,
    "count_number": 1.01,
    "who_names": 0.42,
    "day": 4.37,
}
DENSE_WEIGHTS: dict[str, float] = {
    "window_5": 1.63,
    "with_previous": 0.34,
    "same_speaker": 0.55,
    "page": 0.70,
    "page_covered": 0.66,
    "window_covered": 0.99,
    "before_previous": 0.41,
    "next": -0.55,
    "about": 1.39,
    "about_own": 0.40,
    "about_first_person": 0.53,
    "about_tells": 0.29,
    "first_named": 1.18,
    "asks": -0.43,
    "answers": 0.40,
    "answers_match": 0.85,
    "opening": 0.96,
    "time": 0.24,
    "names": 1.41,
    "when_time": 0.95,
    "when_time_own": 1.24,
    "where_place": 1.38,
    "where_names": 0.46,
    "count_number": 0.86,
    "who_names": 0.47,
    "day": 4.34,
    "meaning": 2.07,
    "meaning_previous": 0.63,
    "meaning_next": 0.73,
    "meaning_page": 1.57,
    "about_meaning": 0.43,
}
LEXICAL_CONTEXT_WEIGHTS: dict[str, float] = {
    "previous_score": -0.05,
    "before_previous_score": 0.38,
    "next_score": 0.55,
    "place_on_page": -0.57,
}
DENSE_CONTEXT_WEIGHTS: dict[str, float] = {
    "previous_score": -0.04,
    "before_previous_score": 0.47,
    "next_score": 0.40,
    "place_on_page": -0.80,
}
# Set by hand: no dialogue data shows how much place, connection and use should count, so they decide between equals.
PRIOR_WEIGHTS: dict[str, float] = {
    "folder": 0.3, "linked": 0.4, "connected": 0.05, "used": 0.1, "statement": 0.1, "headed": 1.0,
}  # fmt: skip
# No likelihood: what is asked for by its name comes first; what only asks, and what was put to rest, comes last.
RULES: dict[str, float] = {"titled": 1000.0, "from_ai": -5.0, "archived": -5.0, "only_asks": -100.0}
