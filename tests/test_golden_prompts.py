"""Every prompt of every scenario, byte for byte, in each layout, answer format and way to make the codebase.

tests/golden_prompts.txt has a line for each run: scenario, variant, and the digest of each prompt by its number, with
`c` for those of a choice of files. `pytest --whole --new-prompts -n 0 tests/test_golden_prompts.py` writes it anew. A
failure names the prompts that changed; they stand in the log of the test's project. The system prompts are short ones
of the test's own, so that other words in these change nothing here.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import test_scenarios
from command import Run, git, module
from test_scenarios import lay_out

SCENARIOS = {folder.name: folder for folder in test_scenarios.SCENARIOS}
GOLDEN = Path(__file__).with_name("golden_prompts.txt")
SYSTEM_PROMPTS = {
    "project_structure": "structure {folder}\n",
    "code_modification_instructions": "instructions {folder}\n",
    "initial_query": "first\n\n[answer]\nDo it:\n\n{query}\n\nSend {form}.\n",
    "repair_query": "repair\n\n[answer]\nMend it:\n\n{query}\n\nSend {form}.\n",
    "rejected_response": "rejected\n{reasons}\n\n[answer]\nAgain:\n\n{query}\n\nSend {form}.\n",
    "edit_instructions": "edits\n",
    "short_instructions": "[system]\nshort\n[user]\n{codebase}\n[assistant]\nOk.\n[user]\n{query}\n",
    "file_selection": "choose\n\n[answer]\nChoose for:\n\n{query}\n",
}
LAYOUTS, FORMATS = ("spec", "cached", "short"), ("files", "edits", "auto")
FILES = {f"{layout} {form}": {"prompt_layout": layout, "answer_format": form} for layout in LAYOUTS for form in FORMATS}
FITTED = {
    "spec files fit": {"rollup": "fit"},
    "spec auto fit": {"rollup": "fit", "answer_format": "auto"},
    "cached edits fit": {"rollup": "fit", "answer_format": "edits", "prompt_layout": "cached"},
    "short files fit": {"rollup": "fit", "prompt_layout": "short"},
    "spec files select": {"rollup": "select"},
    "cached auto select": {"rollup": "select", "answer_format": "auto", "prompt_layout": "cached"},
}
DIFFS = {"prompt_layout": "cached", "file_replacements": "diff"}
VARIANTS: Mapping[str, Mapping[str, str]] = FILES | FITTED | {"cached files diff": DIFFS}
WINDOW = {"max_output_tokens": 500, "context_window": 6_000, "choice_tokens": 1_500}
CHOICE = """\
The total is in part 3.

^^^files
answer.txt
lib/part_03.py
lib/large.py: total_40, 300-310
lib/gone.py
^^^end
"""
LARGE = "\n\n".join(f"def total_{number}(first):\n    '''{'x' * 900}'''\n    return {number}" for number in range(60))
LOG = "# Changes\n\n## Unreleased\n\n- new\n\n## 1.0\n\n" + "- old\n" * 300
DIFFERS = re.compile(r"\d+(?:\.\d+)? (?:ms|s)\b|failure [a-z]{12}\b")  # times, and what a build makes up
TASK = "Let total_40 of lib/large.py return 41, as part_07 does.\n"


def write_library(root: Path) -> None:
    """Write files for which a small window has no room, and the choice of some."""
    (root / "lib").mkdir()
    for number in range(12):
        (root / f"lib/part_{number:02}.py").write_text(module(f"part_{number:02}", 30 + 5 * number))
    (root / "lib/uses.py").write_text("from lib import part_03\n\n\ndef use():\n    return part_03.part_03(1)\n" * 9)
    (root / "lib/large.py").write_text(f"import os\n\n\n{LARGE}\n")
    (root / "CHANGELOG.md").write_text(LOG)
    (root / "AGENTS.md").write_text("Use tabs.\n" * 9)
    choices = root / "agent-config/choices"
    choices.mkdir()
    (choices / "1-response.txt").write_text(CHOICE)
    (choices / "2-response.txt").write_text("^^^files\nlib/part_07.py\n^^^end\n")


def configure(root: Path, variant: Mapping[str, str]) -> None:
    prompts = root / "agent-config/system-prompts"
    prompts.mkdir()
    for name, text in SYSTEM_PROMPTS.items():
        (prompts / f"{name}.txt").write_text(text)
    values = dict(variant)
    if "rollup" in values:
        values |= WINDOW | {"select_model": "replay:agent-config/choices"}
    config = root / "agent-config/config.toml"
    own = tomllib.loads(config.read_text()) if config.exists() else {}
    lines = (f"{name} = {value!r}\n" for name, value in (own | values).items() if not isinstance(value, bool))
    config.write_text("".join(lines) + "".join(f"{name} = true\n" for name, value in own.items() if value is True))


def prompts_of(root: Path) -> dict[str, str]:
    """Return the prompts of the runs in a project, without what differs between two equal runs."""
    found = {}
    for log in sorted((root / "agent-config/logs").iterdir()):
        mark = "c" if json.loads((log / "run.json").read_text())["command"] == "rollup" else ""
        for file in sorted(log.glob("*-query.txt"), key=lambda file: int(file.name.partition("-")[0])):
            text = file.read_text().replace(str(root), "ROOT").replace(log.name, "RUN")
            text = DIFFERS.sub("DIFFERS", text)
            found[mark + file.name.partition("-")[0]] = hashlib.sha256(text.encode()).hexdigest()[:10]
    return found


def fields() -> Iterator[Any]:
    """Yield each scenario in each variant for `parametrize`.

    By default a scenario runs in every layout and in every answer format once, and in two of the other variants.
    """
    others = [name for name in VARIANTS if name not in FILES]
    for place, scenario in enumerate(SCENARIOS):
        chosen = {f"{layout} {FORMATS[(place + row) % len(FORMATS)]}" for row, layout in enumerate(LAYOUTS)}
        chosen |= {others[(2 * place + each) % len(others)] for each in range(2)}
        for variant in VARIANTS:
            yield pytest.param(scenario, variant, marks=[] if variant in chosen else [pytest.mark.sweep])


@pytest.fixture
def compare(request: pytest.FixtureRequest) -> Callable[[str, Mapping[str, str]], None]:
    """Return a function that compares the digests of a run with those that are kept, or keeps them."""

    def compare(name: str, found: Mapping[str, str]) -> None:
        lines = GOLDEN.read_text().splitlines() if GOLDEN.exists() else []
        kept = {title: digests for title, _, digests in (line.rpartition(" | ") for line in lines)}
        if request.config.getoption("--new-prompts"):
            kept[name] = " ".join(f"{number}:{digest}" for number, digest in found.items())
            GOLDEN.write_text("".join(f"{title} | {digests}\n" for title, digests in sorted(kept.items())))
        else:
            assert found == dict(each.split(":") for each in kept[name].split())

    return compare


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "variant"), list(fields()))
def test_the_prompts_of_a_scenario_stay(scenario: str, variant: str, tmp_path: Path, run_code_commit: Run, compare):
    root, folder = tmp_path / "project", SCENARIOS[scenario]
    wanted = tomllib.loads((folder / "scenario.toml").read_text())
    lay_out(folder, root, wanted)
    if "rollup" in VARIANTS[variant]:
        write_library(root)
        git(root, "add", "-A")
        git(root, "commit", "-qm", "library")
    configure(root, VARIANTS[variant])
    given = wanted.get("arguments", [])
    arguments = [] if "--answer-format" in given else given
    run_code_commit(root, "--model", "replay:agent-config/recorded", *arguments)
    compare(f"{scenario} | {variant}", prompts_of(root))


def edit(number: int, new: str) -> str:
    return f"^^^lib/large.py\n^^^find\n    return {number}\n^^^to\n{new}\n^^^end\n"


ANSWERS = [
    "^^^files\nlib/large.py: total_41, 200-204\nlib/part_09.py\nCHANGELOG.md\n^^^end\n",
    edit(40, "    return 42") + "^^^lib/part_01.py\nx = 1\n^^^end\n",
    edit(40, "    return 42"),
    edit(42, "    return 43") + "^^^lib/new.py\nx = 1\n^^^end\n",
    "^^^lib/uses.py\n^^^delete\n",
    edit(41, "    return 44") + "^^^lib/part_09.py\nx = 1\n^^^end\n",
]
BUILD = """\
#!/bin/sh
sed -i '1s/^/# built\\n/' lib/large.py
test -f lib/uses.py || echo 'lib/part_05.py:30: it is wrong, see lib/large.py:90'
echo "error in lib/part_02.py, line 12: $(head -c 9000 CHANGELOG.md | tr -d '\\n')"
exit 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_prompts_of_long_files_stay(variant: str, project_folder: Path, run_code_commit: Run, compare):
    root = project_folder
    write_library(root)
    (root / "build.sh").write_text(BUILD)
    (root / "agent-config/query.txt").write_text(TASK)
    recorded = root / "agent-config/recorded"
    recorded.mkdir()
    for number, answer in enumerate(ANSWERS, start=1):
        (recorded / f"{number}-response.txt").write_text(answer)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "library")
    run_code_commit(root, "rollup")
    configure(root, VARIANTS[variant])
    run_code_commit(root, "--model", "replay:agent-config/recorded", "--max-repairs", str(len(ANSWERS)))
    compare(f"long files | {variant}", prompts_of(root))
