"""The results as text and as JSON."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from bench.growth import exponent, points_of, series_of
from bench.rows import Row, Skipped, Unit, quartiles

HEADINGS = ("what", "against", "ours", "theirs", "ratio (quartiles)", "CPU ratio", "target", "")


def shown_value(value: float, unit: Unit) -> str:
    """Return a value with its unit, three digits long."""
    if unit == "s":
        return f"{value * 1000:.3g} ms" if abs(value) < 1 else f"{value:.3g} s"
    if unit == "bytes":
        return f"{value / 1_000_000:.1f} MB"
    if unit == "dollars":
        return f"${value:.3f}"
    return f"{value:,.0f}"


def _ratio(row: Row) -> str:
    ratios = row.ratios
    if not ratios:
        return "-"
    low, high = quartiles(ratios)
    return f"{statistics.median(ratios):.3g} ({low:.3g} to {high:.3g})"


def _target(row: Row) -> str:
    if row.target is None:
        return "-"
    if row.target.of == "difference":
        return f"<= +{shown_value(row.target.most, row.unit)}"
    return f"<= {row.target.most:.3g}"


def _cells(row: Row | Skipped) -> tuple[str, ...]:
    if isinstance(row, Skipped):
        return row.what, row.against, "-", "-", "-", "-", "-", f"skipped: {row.why}"
    ours, theirs = (shown_value(statistics.median(values), row.unit) for values in (row.ours, row.theirs))
    verdict = {None: "", True: "met", False: "MISSED"}[row.met]
    cpu = f"{row.cpu_ratio:.3g}" if row.cpu_ratio else "-"
    return row.what, row.against, ours, theirs, _ratio(row), cpu, _target(row), verdict


def as_text(row: Row | Skipped) -> str:
    """Return one row on a line of its own."""
    return " | ".join(cell for cell in _cells(row) if cell)


def as_lines(rows: Iterable[Row | Skipped]) -> list[str]:
    """Return the rows as a Markdown table whose columns are aligned."""
    cells = [_cells(row) for row in rows]
    widths = [max(len(line[column]) for line in (HEADINGS, *cells)) for column in range(len(HEADINGS))]
    ruler = tuple("-" * width for width in widths)
    return [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in (HEADINGS, ruler, *cells)
    ]


def growth_lines(rows: Iterable[Row | Skipped]) -> list[str]:
    """Return one line for each series: how its cost and the peer's grow with the size."""
    return [
        f"{figures['series']}: grows with size to the power of {figures['ours']:.2f}"
        f" ({figures['against']}: {figures['theirs']:.2f})"
        for figures in growths(rows)
    ]


def growths(rows: Iterable[Row | Skipped]) -> list[dict[str, Any]]:
    """Return the exponents of each series."""
    measured = [row for row in rows if isinstance(row, Row)]
    found = []
    for (series, against), group in series_of(measured).items():
        ours, theirs = points_of(group, ours=True), points_of(group, ours=False)
        if len(ours) > 1 and len(theirs) > 1:
            found.append({"series": series, "against": against, "ours": exponent(ours), "theirs": exponent(theirs)})
    return found


def as_json(rows: Sequence[Row | Skipped], machine: dict[str, Any]) -> dict[str, Any]:
    """Return everything that was measured, value by value."""
    measured = []
    for row in rows:
        if isinstance(row, Row):
            values: dict[str, Any] = asdict(row)
            ratios = row.ratios
            values["met"] = row.met
            values["ratio"] = {"median": statistics.median(ratios), "quartiles": quartiles(ratios)} if ratios else None
            measured.append(values)
    skipped = [asdict(row) for row in rows if isinstance(row, Skipped)]
    return {"machine": machine, "rows": measured, "skipped": skipped, "growth": growths(rows)}
