"""Many tasks over many trees: `code-commit fleet`."""
