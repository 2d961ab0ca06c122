def pages(items, size):
    """Return the items in lists of at most `size`."""
    return [items[n * size : (n + 1) * size] for n in range(len(items) // size)]
