"""The runs: the record of each, its log, the list of all, and what is said of them."""
