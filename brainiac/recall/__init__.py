"""Finding what memory holds; nothing heavy is imported before the first search."""

from brainiac.recall.hit import Hit, HitKind
from brainiac.recall.search import Recall

__all__ = ["Hit", "HitKind", "Recall"]
