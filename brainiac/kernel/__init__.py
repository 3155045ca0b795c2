"""Durability: the journal, the one way to change the tree, and what was last seen of it."""
