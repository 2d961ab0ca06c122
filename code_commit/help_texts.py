"""What `code-commit COMMAND --help` says of each command: what it does, then examples."""

HELP_TEXTS = {
    "run": (
        """\
The main job, the same as no command. Asks the LLM once for the change that
agent-config/query.txt describes, verifies the whole answer, applies all of it
or nothing, and runs build.sh. While the build fails it asks for a repair, three
times at most. Nothing is committed.

Exit codes: 0 the build passes, 1 it still fails, 2 not set up, 3 the LLM could
not be asked, 4 no usable response, 5 build.sh could not be run or the files
could not be written, 130 and 143 interrupted.""",
        """\
code-commit
code-commit run --model anthropic:claude-opus-5-5 --max-cost 2
code-commit run --model chat:qwen3-coder --base-url http://127.0.0.1:11434/v1
code-commit run --allow 'src/' --allow 'tests/' --rollback
code-commit run --dry-run >proposed.diff""",
    ),
    "init": (
        """\
Writes what a project lacks to be worked on: agent-config/ with a commented
config.toml, an empty query.txt and a supervisor.sh; a build.sh that fits what
it finds (pyproject.toml, package.json, Cargo.toml, go.mod, Makefile ...); the
line /agent-config in .gitignore. Touches nothing that exists.""",
        """\
code-commit init""",
    ),
    "rollup": (
        """\
Writes agent-config/codeRollup.txt, the codebase as one text: every file that
git tracks, and untracked ones that it does not ignore, sorted by path. Left out
are agent-config, files that are no UTF-8 text, large lock files, and files that
hold your API key. Says what it left out, and about how many tokens the rest is.""",
        """\
code-commit rollup
code-commit rollup src 'tests/*.py'
code-commit rollup --exclude 'docs/' --exclude '*.svg' --verbose""",
    ),
    "check": (
        """\
Makes every check that a run makes before it starts, with the same options, and
prints each with its verdict. No network, nothing written. Exits with 0 when a
run could start, else with 2. With --json: {"ready", "checks", "warnings"}.""",
        """\
code-commit check
code-commit check --model openai --sandbox strict""",
    ),
    "prompt": (
        """\
Prints the prompt that a run would send first, to paste into any chat. No key is
needed, nothing is sent. The answer goes to code-commit apply.""",
        """\
code-commit prompt >prompt.txt
code-commit prompt --prompt-layout cached""",
    ),
    "apply": (
        """\
Verifies and applies a saved response, all of it or nothing, as a run does; no
LLM is asked. Exits with 0 when it was applied (with --build: when the build
passed, else with 1), with 4 when the response was rejected.""",
        """\
code-commit apply answer.txt
code-commit apply --build - <answer.txt
code-commit apply --dry-run answer.txt""",
    ),
    "undo": (
        """\
Puts back what the latest run that changed files changed, or the named one: byte
for byte, mode for mode. If one of its files changed since, nothing is put back,
and it exits with 1. It is a run itself: undo again, and it is undone.""",
        """\
code-commit undo
code-commit undo 2026-11-21-19-51
code-commit undo --force""",
    ),
    "resume": (
        """\
Goes on with an interrupted run, the latest or the named one, at its next step.
An answer that is there is not asked for again, nor one that the API still has;
a build that ended is not repeated. The run's own options hold, but for those
given now.""",
        """\
code-commit resume
code-commit resume 2026-11-21-19-51 --max-cost 5""",
    ),
    "log": (
        """\
Lists all runs, oldest first. With RUN (the beginning of its name, as the list
shows it, is enough): that run attempt by attempt, with its rejections, its
changes and the end of each build that failed. The forms for others to read are
of the latest run where none is named; --json without RUN is of all runs.""",
        """\
code-commit log
code-commit log 2026-11-21-19-51
code-commit log --open
code-commit log --html run.html
code-commit log --markdown >>summary.md
code-commit log --json
code-commit log --schema""",
    ),
    "demo": (
        """\
Runs the whole loop on a sample project in a temporary folder, with a recorded
LLM: an answer, a build that fails, a repair. No key, no network, and nothing of
yours is touched.""",
        """\
code-commit demo""",
    ),
    "completion": (
        """\
Prints a script that completes the commands and options of code-commit. Put it
where your shell looks for such scripts.""",
        """\
code-commit completion bash >>~/.bash_completion
code-commit completion zsh >~/.zfunc/_code-commit
code-commit completion fish >~/.config/fish/completions/code-commit.fish""",
    ),
}
"""For each command its description and its examples, one a line."""


def describe_command(name: str) -> tuple[str, str]:
    """Return what stands above and below a command's arguments."""
    description, examples = HELP_TEXTS[name]
    lines = "\n".join(f"  {example}" for example in examples.split("\n"))
    return description, f"examples:\n{lines}"
