"""The runs: their records, logs and diffs, the list of all runs, and the words for their results."""
