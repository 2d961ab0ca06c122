"""Benchmarks: each is a command that prints ratios against a named peer or limit, measured side by side in one run."""
