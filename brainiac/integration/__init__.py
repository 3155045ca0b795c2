"""The check of a merge: nothing of either side lost, nothing invented (seeds I4, I8)."""
