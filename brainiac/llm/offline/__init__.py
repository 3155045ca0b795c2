"""The embedded engine: it records, finds and quotes, without key, network, model or any knowledge of a language."""

from brainiac.llm.offline.engine import OfflineEngine

__all__ = ["OfflineEngine"]
