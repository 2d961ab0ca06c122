"""code-commit: ask an LLM once, apply its answer whole or not at all, build, and repair up to three times."""

__version__ = "0.1.0"
