"""What the input of four attempts costs with the whole codebase, with what fits, and with files that were chosen.

A commit is a task: its message is the query, the tree before it the codebase. As chosen count the files that it
changes; how well an LLM chooses is not measured here. The build's output and the answers, which a repair adds, are the
same each time and left out.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from pathlib import Path

from bench.fitting import QUICK, commits_of
from bench.measuring import CommandFailedError
from bench.plan import Plan
from bench.rows import Row
from code_commit.codebase.chooser import selection_prompt
from code_commit.codebase.fit import UNLIMITED, Room, Section, fit_sections
from code_commit.llm.models import VENDORS, price_of
from code_commit.llm.vendor import CHARACTERS_PER_TOKEN, ModelChoice, estimate_tokens
from code_commit.prompts import initial_prompt, load_system_prompt, load_system_prompts, make_task
from code_commit.settings import Settings

COMMITS = 20
FIT = 50_000  # tokens
CALLS = 4
PACKAGED = Path("/nowhere")
WAYS = {
    "fit": f"what fits into {FIT:,} tokens",
    "select": "files chosen by a call before",
    "both": f"files chosen by a call before, {FIT:,} tokens in all",
}


def measure(plan: Plan) -> Iterator[Row]:
    """Yield for each way how long a prompt is, and what a task costs in both layouts, against the whole codebase."""
    tasks = [tokens_of(*commit) for commit in islice(commits_of(plan.repository), QUICK if plan.quick else COMMITS)]
    if not tasks:
        raise CommandFailedError(f"{plan.repository} has no commit that changes an existing text file")
    choice = ModelChoice("gemini", VENDORS["gemini"].default_model)
    price = price_of(choice, Settings())
    assert price is not None
    for way, what in WAYS.items():
        lengths = [[task[name] for task in tasks] for name in (way, "file")]
        yield Row(f"tokens of a prompt: {what}", "the whole codebase", *lengths, unit="tokens")
        for layout, again in (("spec", price.input), ("cached", price.cached_input or price.input)):
            costs = [[_cost(task, name, price.input, again) for task in tasks] for name in (way, "file")]
            yield Row(f"input of four attempts, {layout}: {what}", f"the whole, {choice}", *costs, unit="dollars")


def _cost(task: Mapping[str, int], way: str, first: float, again: float) -> float:
    chosen = task["choice"] * first if way in {"select", "both"} else 0.0
    return (chosen + task[way] * (first + (CALLS - 1) * again)) / 1_000_000


def tokens_of(query: str, files: Mapping[str, str], changed: Collection[str]) -> dict[str, int]:
    """Return how many tokens the first prompt has in each way, and the one that asks for a choice."""
    sections = [Section(name, len(text), f"--- {name} ---\n{text}\n\n") for name, text in sorted(files.items())]

    def codebase(tokens: int, chosen: Collection[str] | None = None) -> str:
        room = Room(tokens, int(tokens * CHARACTERS_PER_TOKEN), query, chosen=chosen)
        return fit_sections(sections, {"README.md"}, room).text

    def prompt(text: str) -> int:
        task = make_task(Path("/project"), Settings(), load_system_prompts(PACKAGED), query, text)
        return estimate_tokens(initial_prompt(task).text)

    asked = selection_prompt(load_system_prompt(PACKAGED, "file_selection"), query, codebase(UNLIMITED, ()))
    return {
        "file": prompt(codebase(UNLIMITED)),
        "fit": prompt(codebase(FIT)),
        "select": prompt(codebase(UNLIMITED, changed)),
        "both": prompt(codebase(FIT, changed)),
        "choice": estimate_tokens(asked.text),
    }
