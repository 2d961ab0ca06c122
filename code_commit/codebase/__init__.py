"""The codebase: which files an LLM sees whole, which in outline, and the text that shows them."""
