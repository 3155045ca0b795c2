"""What other programs hold of a person's past, read and put into memory (docs/import.md).

`chats` and `notes` turn files into conversations and notes; `reading` finds the files of an
export and their formats, `intake` puts what they hold into the brain.
"""
