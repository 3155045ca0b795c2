"""How many examples Hypothesis tries: few and always the same in the suite, many and new ones when it is asked to.

`python -m pytest tests/unit/test_sync.py --hypothesis-profile=thorough` asks.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings

FEW, MANY = 50, 1500

_any: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}  # a busy machine is no fault
settings.register_profile("suite", max_examples=FEW, derandomize=True, **_any)
settings.register_profile("thorough", max_examples=MANY, print_blob=True, **_any)
settings.load_profile("suite")


def examples(number: int, **more: Any) -> settings:
    """Return settings for a test that tries so many examples in the suite, and accordingly more when thorough."""
    return settings(max_examples=number * settings().max_examples // FEW, **more)
