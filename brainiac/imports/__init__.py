"""What other programs hold of a person's past, read and put into memory (docs/import.md).

Each family of formats has a module that turns a file into conversations and notes; `reading` finds the files of an
export and their formats, `intake` puts what they hold into the brain.
"""
