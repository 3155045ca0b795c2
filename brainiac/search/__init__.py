"""Finding what memory holds; nothing heavy is imported before the first search."""

from brainiac.search.documents import Hit, HitKind
from brainiac.search.search import Recall

__all__ = ["Hit", "HitKind", "Recall"]
