"""How new information joins what is known, without loss on either side (design 6, Integration)."""

from brainiac.integration.operations import decide

__all__ = ["decide"]
