"""Runs to show on a page: real ones of the command, with a recorded LLM, one of them as hostile as can be."""

import json
from pathlib import Path

from command import Run, git, recorded

EVIL = "<script>window.hacked=1</script>"
IMAGE = '"><img src=x onerror="window.hacked=2">'
NAME = "src/<img src=x onerror=hacked=3>.py"

BUILD = r"""#!/bin/sh
printf '\033[1;31merror\033[0m: \033[38;5;208morange\033[0m \033[48;2;10;20;30;97m truecolour \033[0m\n'
printf '\033]8;;javascript:window.hacked=4\033\\a link\033]8;;\033\\ and </pre></script><script>window.hacked=5</script>\n'
printf '\033]0;title\007<img src=x onerror=window.hacked=6><iframe srcdoc="<script>parent.hacked=7</script>">\n'
printf 'progress 10%%\rprogress 100%%\033[K\n\342\200\256evil order\342\200\254\n\033[7minverse\033[0m \033[4munder\033[9mstruck\033[0m\n'
grep -q right src/a.py
"""

FIRST = f"^^^build.sh\n{EVIL} {IMAGE}\n^^^end\n^^^../x{EVIL}\n^^^end\n"
SECOND = f"""^^^src/a.py
def greet(name):
    '''{EVIL} {IMAGE} </td></table></script>'''
    return f"Hallo {{name}}" # wrong

def 新しい(): return "\u202e]]>"
^^^end
^^^{NAME}
a = '{EVIL}' & "&lt;b&gt;"
<!-- </style><style>* {{ display: none }}
^^^end
^^^src/old.py
^^^delete
"""
THIRD = "I said goodbye.\n" + SECOND.replace("wrong", "right").split("^^^src/old.py")[0].split("^^^" + NAME)[0]


def hostile_run(root: Path, run_code_commit: Run) -> Path:
    """Run three attempts in the project: rejected, applied but failing, passing. Return the log folder."""
    (root / "src").mkdir()
    # a file that holds a character which nobody sees may get more of them
    (root / "src/a.py").write_text('def greet(name):\n    """Greet.\u2060"""\n    return f"Hello {name}"\n')
    (root / "src/old.py").write_text("gone = True\n")
    (root / "build.sh").write_text(BUILD)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")
    (root / "agent-config/query.txt").write_text(f"Greet in German.\n{EVIL}\n")
    return recorded_run(root, run_code_commit, [FIRST, SECOND, THIRD])


def long_run(root: Path, run_code_commit: Run) -> Path:
    """Run two attempts that change sixteen files and fail after 200,000 lines. Return the log folder."""
    (root / "build.sh").write_text(
        "#!/bin/sh\nyes 'a line of the output' | head -n 200000\necho 'error: no'\nseq 100\nexit 1\n"
    )
    files = {
        f"folder/module_{number}.py": "".join(f"x{line} = {line}\n" for line in range(120)) for number in range(16)
    }
    (root / "folder").mkdir()
    for name, content in files.items():
        (root / name).write_text(content)
    answer = "".join(f"^^^{name}\n{content.replace('= 1', '= -1')}^^^end\n" for name, content in files.items())
    return recorded_run(root, run_code_commit, [answer, "^^^folder/module_3.py\n^^^delete\n"], "--max-repairs", "1")


def recorded_run(root: Path, run_code_commit: Run, answers: list[str], *arguments: str) -> Path:
    """Run the main job with recorded answers. Return the log folder."""
    done = run_code_commit(root, *recorded(root, *answers), "--sandbox", "off", *arguments)
    assert done.returncode in (0, 1, 4), done.stderr
    return max((root / "agent-config/logs").iterdir())


def embellish(folder: Path, **fields: object) -> None:
    """Give the run's record tokens and costs, which a recorded LLM does not have, and other fields."""
    path = folder / "run.json"
    record = json.loads(path.read_text())
    usages = [(41_000, 0, 2_100, 900), (44_500, 40_000, 1_800, 0), (47_250, 40_500, 350, 120)]
    for attempt, (read, cached, written, reasoning) in zip(record["attempts"], usages, strict=False):
        attempt["usage"] = {"input": read, "cached_input": cached, "cache_write": 0, "output": written}
        attempt["usage"]["reasoning"] = reasoning
        attempt["cost_usd"] = round((read - cached * 0.9) / 4e5 + written / 1e5, 4)
        attempt["seconds"] = written / 70
        if attempt["build"]:
            attempt["build"]["seconds"] = 7.5
    usage = {"input": 132_750, "cached_input": 80_500, "cache_write": 0, "output": 4_250, "reasoning": 1_020}
    record["totals"] |= {"usage": usage, "cost_usd": 0.1934, "seconds": 77.0, "llm_seconds": 60.7}
    record |= fields
    path.write_text(json.dumps(record))


def write_page(root: Path, target: Path, run_code_commit: Run) -> Path:
    """Write the page of the latest run with the command."""
    done = run_code_commit(root, "log", "--html", str(target))
    assert done.returncode == 0, done.stderr
    return target
