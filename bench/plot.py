"""Cost against size: one picture for each series, ours and each peer's line in it."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from bench.growth import exponent, points_of, series_of
from bench.rows import Row

COLUMNS = 3
OURS, PEERS = "#0b5fa5", ("#b3541e", "#4f7f3b", "#7a5195", "#8a8a8a")
AXES = {"s": (1, "seconds"), "bytes": (1e6, "MB")}


def draw(rows: Sequence[Row], file: Path) -> None:
    """Write the picture, in the format of the file's name."""
    mpl.use("Agg")
    pictures: dict[str, list[list[Row]]] = defaultdict(list)
    for (series, _), group in series_of(rows).items():
        pictures[series].append(group)
    lines = -(-len(pictures) // COLUMNS) or 1
    figure, grid = plt.subplots(lines, COLUMNS, figsize=(5 * COLUMNS, 3.8 * lines), squeeze=False)
    for axes in grid.flat[len(pictures) :]:
        axes.set_visible(False)
    for axes, (series, groups) in zip(grid.flat, pictures.items(), strict=False):
        _draw_series(axes, series, groups)
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _draw_series(axes: Axes, series: str, groups: Sequence[Sequence[Row]]) -> None:
    scale, unit = AXES.get(groups[0][0].unit, (1, groups[0][0].unit))
    most = max(groups, key=len)
    _draw_line(axes, points_of(most, ours=True), scale, "code-commit", OURS, width=2.4)
    for group, colour in zip(groups, PEERS, strict=False):
        _draw_line(axes, points_of(group, ours=False), scale, group[0].against, colour, width=1.4)
    axes.set(title=series, xscale="log", yscale="log", ylabel=unit, xlabel=most[0].size_unit)
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize=8, frameon=False)


def _draw_line(  # noqa: PLR0913 - what a line looks like
    axes: Axes, points: Sequence[tuple[float, float]], scale: float, name: str, colour: str, *, width: float
) -> None:
    if len(points) > 1:
        name += f" (to the power of {exponent(points):.2f})"
    sizes, costs = [size for size, _ in points], [cost / scale for _, cost in points]
    axes.plot(sizes, costs, marker="o", markersize=4, color=colour, linewidth=width, label=name)
