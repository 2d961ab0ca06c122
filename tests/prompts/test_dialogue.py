"""The short layout: an exchange of messages."""

from code_commit.codebase.text import Codebase
from code_commit.prompts.history import AttemptSummary
from code_commit.prompts.layout import FailedBuild, SystemPrompts, lay_out, make_task
from code_commit.prompts.next import Outcome, next_prompt
from code_commit.settings import Settings
from code_commit.views import FileView, Removed, whole, whole_of

SHORT = SystemPrompts(
    *("no",) * 6,
    short_instructions="BE SHORT\n[user]\nread {build}\n[assistant]\nso\n[user]\n{codebase}\n[user]\n{query}\n\nNOW\n",
)
LIMITS = "Only paths that match one of these patterns (.gitignore syntax) may change: *.c\n"


def test_the_short_layout_is_an_exchange_of_messages():
    settings = Settings(prompt_layout="short", answer_format="auto", allow=["*.c"], build_timeout=9)
    held = "--- long.c ---\n" + "{query}\n" * 299 + "{query}"
    codebase = f"--- .gitignore ---\n/x\n\n--- build.sh ---\nexit 1\n\n{held}\n\n"
    held = f"--- .gitignore ---\n/x\n\n{held}"
    task = make_task(settings, SHORT, "do {codebase}\n", Codebase([codebase]))
    first = lay_out(task)
    assert first.system == f"BE SHORT\n{LIMITS}\n"
    assert first.dialogue == [("user", "read exit 1\n"), ("assistant", "so\n"), ("user", f"{held}\n")]
    assert first.rest == "do {codebase}\n\nNOW\n"
    assert first.stable == f"[user]\nread exit 1\n[assistant]\nso\n[user]\n{held}\n[user]\n"


def test_each_answer_of_the_short_layout_is_a_message_and_the_next_one_says_what_came_of_it():
    task = make_task(Settings(prompt_layout="short"), SHORT, "do", Codebase(["--- a.c ---\na\n\n"]))
    told, failed = AttemptSummary("", "", ""), FailedBuild("error: {query}\n", [whole("a.c", "b\n")])
    formatted = FailedBuild("", [whole("a.c", "b;\n"), FileView("d.c", Removed(), "")])
    outcomes = [
        Outcome(told, reasons=["no path"], unseen=[whole("e", "seen\n")]),
        Outcome(told, failed=failed, response="I try.\n\n^^^a.c\nb\n^^^end\n"),
    ]
    later = next_prompt(task, outcomes)
    assert later.dialogue[:-4] == lay_out(task).dialogue
    added = "These files of the project were not shown so far:\n\n--- e ---\nseen"
    rejected = "This answer cannot be used:\n\n- no path\n\nSend it again without these faults."
    assert later.dialogue[-4:] == [
        ("user", "do\n\nNOW\n"),
        ("assistant", "(This answer was too long to be shown again.)\n"),
        ("user", f"{added}\n\n{rejected}\n\nNOW\n"),
        ("assistant", "I try.\n\n^^^a.c\nb\n^^^end\n"),
    ]
    repair = "Find the cause in the project's files and repair it.\n\nNOW\n"
    assert later.rest == f"The script fails:\n\nerror: {{query}}\n\n{repair}"
    assert (later.shows.views["a.c"], later.parts["build output"]) == (whole_of("b\n"), "error: {query}\n")
    last = next_prompt(task, [*outcomes, Outcome(told, failed=formatted, response="^^^a.c\nb\n^^^end\n")])
    assert last.rest == (
        "These files were changed since, and are now:\n\n--- FILE REPLACEMENT a.c ---\nb;\n--- FILE REMOVED d.c ---\n\n"
        f"The script fails:\n\n(It prints nothing.)\n\n{repair}"
    )
    assert last.text.startswith(later.text)
    shorter = next_prompt(task, outcomes, longest=len(later.text) - 1)
    assert (later.dialogue[:-4] + later.dialogue[-4:-3], shorter.dialogue[-2]) == (
        shorter.dialogue[:-1],
        ("user", "do\n\nNOW\n"),
    )
    assert shorter.dialogue[-1] == later.dialogue[-1]
    assert next_prompt(task, outcomes, longest=len(later.text)) == later
    assert next_prompt(task, outcomes, longest=1) == shorter, "what came of the latest answer is always told"
