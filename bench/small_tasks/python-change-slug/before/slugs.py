def slug(title):
    """Return the title in lower case, with a dash for each blank."""
    return title.lower().replace(" ", "-")
