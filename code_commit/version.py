"""The version, a literal: reading it from the installed package's metadata takes longer than all of `--version`."""

__version__ = "1.1.0"
