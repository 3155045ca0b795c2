"""Brainiac: a folder that remembers. The names here are the public ones; plugins import nothing else."""

from brainiac.hookspecs import hookimpl

__version__ = "0.1.0"
__all__ = ["hookimpl"]
