"""The 256 colours of a terminal as style classes, readable on a light and on a dark page."""

from collections.abc import Iterable

RGB = tuple[int, int, int]

LIGHT_PANEL: RGB = (0xF6, 0xF8, 0xFA)
DARK_PANEL: RGB = (0x0D, 0x11, 0x17)
"""The backgrounds of the build output in page.css."""
LEAST_CONTRAST = 4.5
"""WCAG 2.2, 1.4.3 (AA)."""

_SYSTEM_COLOURS: tuple[RGB, ...] = (
    (0x24, 0x29, 0x2F),
    (0xCF, 0x22, 0x2E),
    (0x11, 0x8A, 0x2F),
    (0x9A, 0x67, 0x00),
    (0x09, 0x69, 0xDA),
    (0x82, 0x50, 0xDF),
    (0x1B, 0x7C, 0x83),
    (0xD0, 0xD7, 0xDE),
    (0x6E, 0x77, 0x81),
    (0xFF, 0x6B, 0x6B),
    (0x3F, 0xB9, 0x50),
    (0xE3, 0xB3, 0x41),
    (0x58, 0xA6, 0xFF),
    (0xBC, 0x8C, 0xFF),
    (0x39, 0xC5, 0xCF),
    (0xFF, 0xFF, 0xFF),
)
_CUBE = (0, 95, 135, 175, 215, 255)  # the steps of xterm's 6 x 6 x 6 cube, colours 16 to 231


def palette(number: int) -> RGB:
    """Return a colour of the 256: the 16 of the system, xterm's cube, its 24 greys."""
    if number < 16:
        return _SYSTEM_COLOURS[number]
    if number < 232:
        red, rest = divmod(number - 16, 36)
        return _CUBE[red], _CUBE[rest // 6], _CUBE[rest % 6]
    return (8 + 10 * (number - 232),) * 3


def nearest(red: int, green: int, blue: int) -> int:
    """Return the number of the colour of cube and greys that is next to a 24-bit one."""
    wanted = (red, green, blue)
    cube = [_nearest_step(part) for part in wanted]
    grey = min(range(24), key=lambda step: abs(8 + 10 * step - sum(wanted) / 3))
    numbers = (16 + 36 * cube[0] + 6 * cube[1] + cube[2], 232 + grey)
    return min(numbers, key=lambda number: sum((a - b) ** 2 for a, b in zip(palette(number), wanted, strict=True)))


def _nearest_step(part: int) -> int:
    return min(range(len(_CUBE)), key=lambda step: abs(_CUBE[step] - part))


def luminance(colour: RGB) -> float:
    """Return the relative luminance (WCAG 2.2)."""
    parts = [part / 255 for part in colour]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: RGB, other: RGB) -> float:
    """Return the contrast ratio of two colours (WCAG 2.2), from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def readable(colour: RGB, panel: RGB) -> RGB:
    """Return the colour, moved towards black or white until it can be read on the panel."""
    goal = _black_or_white(panel)[0]
    for percent in range(0, 101, 5):
        red, green, blue = ((part * (100 - percent) + goal * percent) // 100 for part in colour)
        if contrast((red, green, blue), panel) >= LEAST_CONTRAST:
            return red, green, blue
    return (goal,) * 3


def on_background(foreground: int | None, background: int) -> RGB:
    """Return the colour of text that has a background of its own."""
    ground = palette(background)
    return readable(palette(foreground), ground) if foreground is not None else _black_or_white(ground)


def _black_or_white(ground: RGB) -> RGB:
    return (0, 0, 0) if contrast((0, 0, 0), ground) >= contrast((255, 255, 255), ground) else (255, 255, 255)


def class_of(foreground: int | None, background: int | None) -> str:
    """Return the style class of a pair of colours, "" for the panel's own."""
    if background is not None:
        return f"t{'' if foreground is None else foreground}-{background}"
    return "" if foreground is None else f"t{foreground}"


def style_rules(pairs: Iterable[tuple[int | None, int | None]]) -> str:
    """Return the CSS of the pairs of colours that a page uses."""
    rules, dark = [], []
    for foreground, background in sorted(set(pairs), key=str):
        name = class_of(foreground, background)
        if background is not None:
            ink = _css(on_background(foreground, background))
            rules.append(f".{name}{{color:{ink};background:{_css(palette(background))}}}")
        elif foreground is not None:
            rules.append(f".{name}{{color:{_css(readable(palette(foreground), LIGHT_PANEL))}}}")
            dark.append(f".{name}{{color:{_css(readable(palette(foreground), DARK_PANEL))}}}")
    if dark:
        rules.append("@media screen and (prefers-color-scheme:dark){" + "".join(dark) + "}")
    return "\n".join(rules)


def _css(colour: RGB) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
