"""Every step explained and taken back: why, undo, forget, purge, adopt, and what two devices do to one brain."""
