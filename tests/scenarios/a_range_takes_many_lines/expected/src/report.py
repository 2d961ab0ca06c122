"""Reports."""


def report(rows):
    return "\n".join(map(str, rows))


def total(rows):
    return sum(rows)
