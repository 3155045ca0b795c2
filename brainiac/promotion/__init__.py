"""From short-term to long-term memory: what was said becomes pages, losing nothing (design 6, Promotion)."""

from brainiac.promotion.due import is_due
from brainiac.promotion.past import text_hash
from brainiac.promotion.run import Outcome, promote

__all__ = ["Outcome", "is_due", "promote", "text_hash"]
