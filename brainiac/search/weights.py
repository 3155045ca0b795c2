"""The weights of the ranking, learned by `benchmarks/locomo.py --learn` (figures: docs/decisions/ranker.md)."""

from __future__ import annotations

LEXICAL_WEIGHTS: dict[str, float] = {
    "covered": 1.00,
    "trigram": 1.08,
    "trigram_three": 1.10,
    "trigram_page": 1.36,
    "window_5": 1.30,
    "with_previous": 0.05,
    "same_speaker": 1.08,
    "page": 0.31,
    "page_covered": 0.42,
    "window_covered": 0.90,
    "before_previous": 0.72,
    "about": 1.55,
    "about_own": 0.25,
    "about_first_person": 0.58,
    "about_tells": 0.50,
    "first_named": 1.10,
    "asks": -0.27,
    "answers": 0.34,
    "answers_match": 1.68,
    "opening": 0.44,
    "names": 0.78,
    "when_time": 0.92,
    "when_time_own": 1.16,
    "where_place": 1.16,
    "count_number": 1.42,
    "who_names": 1.30,
    "day": 4.88,
}
DENSE_WEIGHTS: dict[str, float] = {
    "covered": 0.78,
    "trigram": 0.46,
    "trigram_three": 0.87,
    "trigram_page": 0.84,
    "window_5": 1.08,
    "with_previous": -0.02,
    "same_speaker": 1.08,
    "page": 0.00,
    "page_covered": 0.13,
    "window_covered": 0.73,
    "before_previous": 0.26,
    "about": 1.62,
    "about_own": -0.45,
    "about_first_person": 0.63,
    "about_tells": 0.30,
    "first_named": 1.08,
    "asks": -0.51,
    "answers": 0.12,
    "answers_match": 1.24,
    "opening": 0.34,
    "names": 1.16,
    "when_time": 0.90,
    "when_time_own": 1.57,
    "where_place": 1.15,
    "count_number": 1.17,
    "who_names": 0.99,
    "day": 4.69,
    "meaning": 2.26,
    "meaning_previous": 0.57,
    "meaning_next": 0.14,
    "meaning_page": 3.27,
    "about_meaning": 0.81,
}
LEXICAL_CONTEXT_WEIGHTS: dict[str, float] = {
    "previous_score": 0.04,
    "before_previous_score": 0.48,
    "next_score": 0.24,
    "place_on_page": -0.82,
}
DENSE_CONTEXT_WEIGHTS: dict[str, float] = {
    "previous_score": 0.11,
    "before_previous_score": 0.50,
    "next_score": 0.18,
    "place_on_page": -0.90,
}
# Set by hand: no dialogue data shows how much place, connection and use should count, so they decide between equals.
PRIOR_WEIGHTS: dict[str, float] = {
    "folder": 0.3, "linked": 0.4, "connected": 0.05, "used": 0.1, "statement": 1.2, "headed": 1.0,
}  # fmt: skip
# No likelihood: what is asked for by its name comes first; what only asks, and what was put to rest, comes last.
RULES: dict[str, float] = {"titled": 1000.0, "from_ai": -5.0, "archived": -2000.0, "only_asks": -100.0}
