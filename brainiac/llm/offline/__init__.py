"""The embedded engine: deterministic and extractive, without key, network or model. It recalls and files."""

from brainiac.llm.offline.engine import OfflineEngine

__all__ = ["OfflineEngine"]
