"""The paths that an answer may name, those that are protected, and those of secrets."""
