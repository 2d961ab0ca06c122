"""What compiles to native code by way of CMake, Meson, autotools, make or just."""

import re
from pathlib import Path

from code_commit.commands.build_scripts.kind import Kind, first_file, read_text

_HAS_TESTS = re.compile(r"(?im)^[ \t]*(?:enable_testing|add_test|gtest_discover_tests|include\s*\(\s*CTest)")


def find_cmake(folder: Path) -> Kind | None:
    if not (folder / "CMakeLists.txt").is_file():
        return None
    lines = [
        "# It builds in build/: .gitignore should name it.",
        "cmake -S . -B build",
        "cmake --build build --parallel 2",
    ]
    if _HAS_TESTS.search(read_text(folder / "CMakeLists.txt")):
        lines.append("(cd build && ctest --output-on-failure)")
    else:
        lines.append("# CMakeLists.txt has no tests; with enable_testing(): (cd build && ctest --output-on-failure)")
    return Kind("CMake", "CMakeLists.txt", tuple(lines))


def find_meson(folder: Path) -> Kind | None:
    if not (folder / "meson.build").is_file():
        return None
    lines = (
        "# It builds in builddir/: .gitignore should name it.",
        "if [ ! -d builddir ]; then meson setup builddir; fi",
        "meson compile -C builddir",
        "meson test -C builddir",
    )
    return Kind("Meson", "meson.build", lines)


def find_autotools(folder: Path) -> Kind | None:
    if not (folder / "configure.ac").is_file():
        return None
    lines = (
        "if [ ! -x configure ]; then autoreconf --install; fi",
        "if [ ! -f Makefile ]; then ./configure; fi",
        "make",
        "make check",
    )
    return Kind("Autotools", "configure.ac", lines)


def find_make(folder: Path) -> Kind | None:
    """A Makefile: its targets that build and test; its default target where it has none of the usual names."""
    evidence = first_file(folder, ["GNUmakefile", "makefile", "Makefile"])
    if evidence is None or (folder / "configure.ac").is_file():
        return None
    text = read_text(folder / evidence)
    if "CMAKE_SOURCE_DIR" in text:  # CMake wrote it
        return None
    targets = {name for line in re.findall(r"(?m)^([A-Za-z][\w \t-]*):(?!=)", text) for name in line.split()}
    wanted = _first(("all", "build"), targets) + _first(("check", "test", "tests"), targets)
    lines = tuple(f"make {target}" for target in wanted)
    if lines:
        return Kind("make", evidence, lines, runs_others=True)
    return Kind("make", evidence, ("# No target of the usual names: the default one.", "make"), runs_others=True)


def find_just(folder: Path) -> Kind | None:
    evidence = first_file(folder, ["justfile", "Justfile", ".justfile"])
    if evidence is None:
        return None
    recipes = set(re.findall(r"(?m)^@?([A-Za-z][\w-]*+)[^:\n]*+:(?!=)", read_text(folder / evidence)))
    wanted = _first(("build",), recipes) + _first(("check", "test", "tests"), recipes)
    return Kind("just", evidence, tuple(f"just {recipe}" for recipe in wanted), runs_others=True)


def _first(names: tuple[str, ...], found: set[str]) -> list[str]:
    return [next(name for name in names if name in found)] if found.intersection(names) else []
