"""The scripts of packages and the goals of make: whether they test, and whether a failure of theirs is lost."""

import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import Any

from code_commit.commands.project_files import Facts, Folder, mapping, paths_of, strings
from code_commit.regex import regex
from code_commit.runs.words import count
from code_commit.terminal import shown

_MAY_RUN_NONE = regex(
    r"(?i)pass-?with-?no-?tests|failOnEmptyTestSuite\W+false"
    r"|\s--test\b|\bmocha\b|\btape\b|phpunit|paratest|\bpest\b|artisan test"
)
"""The runners in a script that pass where they find no test."""
_MAY_SKIP_ALL = regex(r"(?<![\w-])(?:(?:jest|vitest)(?:\.m?js)?|react-scripts test)(?=[\s\"';&|]|$)")
_REPORTS_ELSEWHERE = regex(r"(?<!coverage\.)reporter|--json")
_OF_COVERAGE = regex(r"\bcoverage[\"']?\s{0,9}:\s{0,9}\{[^{}]{0,999}")
_SAYS_LESS = regex(r"--(?:test-)?reporter[\s=]+[\"']?(?!(?:spec|tap|dot|list|min)\b)")
"""The runners that pass where all tests are skipped, and what keeps them from saying how many passed."""
_JS_SETTINGS = "jest.config.* karma.conf.* vitest.config.* vite.config.*"
_JS_TESTS = "**/*test*.* **/*Test*.* **/*spec*.* **/test/**/*.* **/tests/**/*.* **/spec/**/*.* **/__tests__/**/*.*"
_TESTS_JS = regex(
    r"\b(?:test|it|describe|suite|assert|expect|scenario|Scenario)\b[\w.]*\s*[(:`]"
    r"|\b(?:from|import|require)\b\s{0,9}\(?\s{0,9}[\"'](?:node:)?(?:assert|test)\b"
)
_LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
}
_WAITS = regex(r"\s--?(?:inspect|ui|watch)\b(?!=false)")
_ONCE = {
    r"\bng test\b(?!.*--(?:no-)?watch)[^&|;\n]*\Z": "--watch=false",
    r"\bkarma start\b(?!.*--(?:no-)?single-run)[^&|;\n]*\Z": "--single-run",
}
_OTHER_TESTS = regex(r"watch|debug|\bui\b|e2e|cov|update|dev|open|type|lint")
_HANDS_ON = regex(r"\b(?:lerna|moon|nx|rush|turbo)\s|\s(?:-r|-ws|--recursive|--workspaces)\b")
_UNCHANGED = regex(r"\bnx affected\S*|(?<=\s)--(?:since|changed|changed-?since|only-?changed)(?![\w-])")
_TEST_GOAL = regex(r"(?:run|unit)?[_-]?tests?|tests?[_-](?:all|unit)")
_ASSIGNED = regex(r"\s*(?:(?:export|override|private)\s+)*[\w.-]+\s*(?::{1,3}|[+?!])?=")
_QUOTED = regex(r"'[^'\n]*'|\"(?:\\.|[^\"\\\n])*\"")
_LOSES = regex(
    r"(\|\| *(?:true|:|exit 0|echo\b|(?:\[|test) .*\$\?[^;&|\n]*))|(; *(?:(?:true|:|exit 0) *|echo\b[^;\n]*))$"
    r"|(?<![|\\])(\|(?!\||[\w.*?/@|-]{0,99}\))&? *(?!xargs\b)[\w./@-]+)"
    r"|\b(docker[- ]compose\b(?:(?! up\b)[^;&|\n]){0,99} up)\b"
    r"(?![^;&|\n]{0,999} (?:--(?:exit-code|abort-on|detach|wait)|-d\b))",
    re.MULTILINE,
)
_ASIDE, _DEEPEST = regex(r"\$\([^()]*\)"), 3
_INNER = regex(r"\b(?:ba|da|z)?sh +-[ilux]{0,3}c +(?:'([^'\n]*)'|\"((?:\\.|[^\"\\\n])*)\")")
_STOPS = regex(r"\bset -\w*e|\|\| *(?:[({][^)}|]*\b)?(?:exit|false)\b|(?<!\w=)(?<!\w=\$)\$\?")
_SAYS = regex(r"\b(?:echo|printf)\b[^;&|\n]*")
_SET = regex(r"(?:\|\||\belse\b)[^|]{0,200}?\b([A-Za-z_]\w*)=|\b([A-Za-z_]\w*)=\$+\?")
_DECIDES = regex(r"(?:\b(?:exit|return|test)|\[)\s[^;&|\n]{0,99}?\$+[{(]?([A-Za-z_]\w*)")
"""A question of a step, the end of a script at a failure, a step that speaks, a variable set then, and its use."""
_FAILS = regex(r"\b(?:exit|return) +[^0]|\A\s*(?:exit|return)\s*(?:[;&})]|\Z)|\bfalse\b")
_QUESTION = regex(
    r"\bif\s+(?!(?:! *)?(?:\[|(?:git|hash|pip|test|type)\s))([^;\n]{1,200}?)(?:;|&&)\s*then\b"
    r"((?:(?!\bfi\b)[^\n]){0,500})\bfi\b"
)
_ASKS = regex(r"--version\b|\b(?:which|command -v)\b")
_RUN_FOR_EACH = regex(r"\s-exec(?:dir)?\s+")
_HANDLES = regex(r"(?:cat|ch\w+|cp|echo|grep|ls|mkdir|mv|rm|sed|stat|touch)\b")
_LAST_OF_EACH = regex(r"\\;|';'|\";\"|\+")
"""A failure after all, a question, one for a program, and of `find -exec` the commands on files, and the ends."""
_PREPARES = regex(r"[@+-]*\s*(?:rm|rmdir|mkdir|cp|mv|p?kill)\b[^;&|]*(?:\|\|.*)?")  # a step that tests nothing
_LEADS = regex(
    r"[@+-]*\s*(?:(?:then|do|else|[({])\s*)*(?:(?:export\s+)?\w+=\S*\s*\Z|\Z|(?:[.:]|\[|cd|cp|export|for|if|mkdir|mv"
    r"|p?kill|read|rm|set|shopt|sleep|source|test|trap|ulimit|umask|unset|while)(?:\s|\Z))"
)
_MAY_TEST = regex(r"test|spec|check|unit|jest|mocha|karma|cypress|playwright|phpunit|pest\b|\bava\b|\btape?\b")
_CONTINUES = regex(r"\s*(?:(?:then|do|else|elif|fi|esac)\b|[)}]|\Z)")
_SEPARATOR = regex(r"((?<!\\);+|(?<![&>])&(?![&>]))")
"""A step that tests nothing, what goes on with the command before it, and what parts the steps of a line."""
_SPEAKS = regex(r"[@+-]*\s*(?:(?:echo|printf|sleep)\b[^|&;]*|true|:|exit(?: \d+)?|)")
_LOGS = regex(r"""\bnode\s+(?:-[ep]|--eval|--print)\s+(["'])\s*console\.\w+\([^()]*\);?\s*\1""")


def _script(value: Any) -> str:
    """Return a script of a package, "" for one that runs nothing."""
    text = _text(value)
    return "" if _is_idle(text) else text


def _text(value: Any) -> str:
    lines = value if isinstance(value, list) else [value]
    return "\n".join(line for line in lines if isinstance(line, str)).strip()


def _is_idle(script: str) -> bool:
    """Tell whether a script runs nothing, such as that of `npm init`, or never fails."""
    last = re.split(r"\|\||(?<!\\);", script.rstrip("; "))[-1]
    return _only_speaks(script) or last.strip() in ("true", ":", "exit 0")


def _only_speaks(script: str) -> bool:
    plain = _QUOTED.sub("''", _LOGS.sub("echo", script))
    return all(_SPEAKS.fullmatch(step.strip()) for step in re.split(r"&&|\|\||;|\n", plain))


def _reached(scripts: dict[str, Any], name: str) -> str:
    """Return the text of a script and of those that it names, and that they name."""
    texts = {name: _script(scripts.get(name))}
    unread = [name]
    while unread:
        text = texts[unread.pop()]
        words = {*re.findall(r"[\w:-]+", text), *re.findall(r"[^\s\"'`;&|()]+", text)}
        named = sorted(word for word in words if word in scripts and word not in texts)
        texts.update((each, _text(scripts[each])) for each in named)
        unread += named
    return "\n".join(texts.values())


def _loss_of(script: str) -> str:
    """Return what follows a command so that its failure counts no more, as in `test | tee log`; "" without it."""
    script = _INNER.sub(lambda inner: f"({inner[1] or inner[2]})", script)
    plain = _QUOTED.sub("''", script)
    for _ in range(_DEEPEST):
        plain = _ASIDE.sub(lambda aside: aside[0] if _MAY_TEST.search(aside[0]) else "", plain)
    if _STOPS.search(_SAYS.sub("", script)) or _is_kept(script):
        plain = plain.replace(";", "&&")
    match = None if "pipefail" in script else _LOSES.search(plain)
    if match:
        return next(filter(None, match.groups()), "").rstrip(" ")
    if forgiving := next(_forgives(plain), "") or next(_only_asks(plain), "") or next(_runs_for_each(script), ""):
        return forgiving
    lines = (_SEPARATOR.split(line) for line in plain.split("\n"))
    steps = (each for line in lines for each in zip(line[::2], line[1::2], line[2::2], strict=False))
    return next((f"{sign} {after.strip()}" for before, sign, after in steps if _hides(before, sign, after)), "")


def _is_kept(script: str) -> bool:
    """Tell whether a variable is set where a command failed, or by its exit code, and decides later."""
    return not {*chain.from_iterable(_SET.findall(script))}.isdisjoint(_DECIDES.findall(script))


def _forgives(script: str) -> Iterator[str]:
    """Yield what a line runs after a test that failed, where that neither tests nor fails."""
    for line in script.split("\n"):
        parts = line.split("||")
        for before, after in pairwise(parts):
            tested = re.split(r"[;&|]", before)[-1]
            if _MAY_TEST.search(tested) and not (_LEADS.match(tested) or _ASKS.search(tested)):
                instead = re.split(r"[;&|]", after)[0]
                if not (_MAY_TEST.search(instead) or _FAILS.search(after) or _LEADS.match(instead)):
                    yield f"|| {instead.strip()}"


def _only_asks(script: str) -> Iterator[str]:
    """Yield the tests that a script takes as a question, and whose failure it does not hand on."""
    for question, answer in _QUESTION.findall(script):
        is_none = _ASKS.search(question) or _HANDLES.match(question) or "/dev/null" in question
        if _MAY_TEST.search(question) and not (is_none or re.search(r"\b(?:exit|return|false)\b|\w=", answer)):
            yield f"if {question.strip()}"


def _runs_for_each(script: str) -> Iterator[str]:
    """Yield the commands that `find` runs for each file: it passes where one of them fails, but for `-exec ... +`."""
    for line in script.split("\n") if "find" in script else ():
        for command in _RUN_FOR_EACH.split(line)[1:]:
            end = _LAST_OF_EACH.search(command)
            if end and end[0] != "+" and not _HANDLES.match(command):
                yield f"-exec {command[: end.start()].strip()}"


def _with_shells(folder: Folder, script: str) -> str:
    """Return a script, and as a line each what the simple scripts of the shell do that it names."""
    named = (word.removeprefix("./") for word in re.findall(r"[\w./-]+", script))
    texts = (folder.text(name) for name in named if name in folder.files and name.endswith(".sh"))
    lines = (
        "; ".join(line for line in re.sub(r"\\\n|(?m:^[ \t]*#.*)", "", text).split("\n") if line.strip())
        for text in texts
        if not re.search(r"<<|\(\)", text)
    )
    return "\n".join([script, *lines])


def _hides(before: str, sign: str, after: str) -> bool:
    """Tell whether a step that tests counts no more: another follows, or the next turn of its loop."""
    last = before.rpartition("&&")[2]
    if sign == "&":
        return re.match(r"\s*wait\s*\Z", after) is not None
    if re.match(r"\s*done\b", after):
        return not (_LEADS.match(last) or _only_speaks(last))
    return _MAY_TEST.search(last) is not None and not (_LEADS.match(last) or _CONTINUES.match(after))


def read_npm(folder: Folder, facts: Facts) -> None:
    package = folder.json("package.json")
    scripts, spaces = mapping(package.get("scripts")), workspaces_of(folder)
    members = {each: folder.json(each) for each in folder.find_in(spaces, "package.json")}
    inner = [mapping(member.get("scripts")) for member in members.values()]
    name = _name_of_tests(scripts)
    test, build = _script(scripts.get(name)), _script(scripts.get("build"))
    texts = [_reached(scripts, name)] if test else []
    lost = _loss_of(_with_shells(folder, texts[0])) if test else ""
    if runs_make := re.search(r"(?<![\w./-])make(?!\S)", " ".join(texts)):
        lost = lost or facts.values["lost make"]
    facts.values["missed JavaScript"] = ", ".join(
        _passed_over("\n".join(texts), dict(zip(members, inner, strict=True)))
    )
    texts += strings(package.get("jest")) if test else []
    texts += (_reached(each, "test") for each in inner)
    texts += (folder.text(each) for each in folder.find_in(["", *spaces], _JS_SETTINGS))
    reports_elsewhere = any(_REPORTS_ELSEWHERE.search(_OF_COVERAGE.sub("", text)) for text in texts)
    may_skip_all = any(map(_MAY_SKIP_ALL.search, texts)) and not reports_elsewhere
    may_run_none = may_skip_all or any(_MAY_RUN_NONE.search(text) and not _SAYS_LESS.search(text) for text in texts)
    of_parts = {goal: any(_script(each.get(goal)) for each in inner) for goal in ("test", "build")}
    every_test, every_build = not test and of_parts["test"], not build and of_parts["build"]
    kinds = ("dependencies", "devDependencies", "optionalDependencies")
    installs = any(mapping(each.get(kind)) for each in [package, *members.values()] for kind in kinds)
    is_tested = of_parts["test"] or (test and _tests_js(folder, texts))
    facts.add(npm=test or build or every_test or every_build, npm_installs=installs, npm_tested=is_tested)
    facts.add(npm_build=build, npm_builds=every_build, npm_checks=name != "test" and _script(scripts.get("test")))
    js_tests = () if _text(scripts.get("test")) else (each for each in folder.find(_JS_TESTS) if each.endswith("js"))
    facts.add(js_tests=any(_TESTS_JS.search(folder.text(each)) for each in js_tests))
    kind = "counts" if may_run_none else "trusted"
    facts.add(**{f"npm_{kind}": test, f"npm_every_{kind}": every_test})
    facts.values |= {
        "test": shlex.quote(name) + _once(folder, test),
        "lost JavaScript": lost,
        "runs JavaScript": "make" if runs_make else "",
        "manager": next(_managers(folder), ""),
    }


def _passed_over(test: str, parts: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the tests of a workspace that its test leaves out: of what did not change, and by another name."""
    unchanged = None if "run-many" in test else _UNCHANGED.search(test)
    if unchanged:
        yield f"what `{shown(unchanged[0].strip())}` treats as unchanged"
    named = {*re.findall(r"[\w:.-]+", test)}
    others = sorted(part for part, each in parts.items() if _name_of_tests(each) != "test" and named.isdisjoint(each))
    if others and (not test or _HANDS_ON.search(test)):
        yield f"the tests of {count(len(others), 'package')} without a script `test` ({shown(others[0])})"


def _once(folder: Folder, test: str) -> str:
    """Return the option by which a test runs once that would wait for changes, "" for any other."""
    option = next((option for runner, option in _ONCE.items() if re.search(runner, test)), "")
    if not option or any(re.search(r"\bsingleRun\W+true", folder.text(each)) for each in folder.find("karma.conf.*")):
        return ""
    of_others = [lock for lock, manager in _LOCKS.items() if manager != "npm"]
    is_npm = next(_managers(folder), "npm").startswith("npm") and not folder.has(" ".join([".yarnrc.yml", *of_others]))
    return f" -- {option}" if is_npm else f" {option}"


def _managers(folder: Folder) -> Iterator[str]:
    """Yield the package managers that the folder, and then each around it, names or has a lock file of."""
    for number, path in enumerate(folder.outward()):
        yield from strings(Folder(path, {"package.json": None}).json("package.json").get("packageManager"))
        if number:  # its own lock files tell more
            yield from (manager for lock, manager in _LOCKS.items() if (path / lock).is_file())


def _name_of_tests(scripts: dict[str, Any]) -> str:
    """Return the script that tests: `test`, or where that tests nothing one such as `test:unit`."""
    named = (name for name in scripts if re.match(r"test[:._-]\w", name) and not _OTHER_TESTS.search(name))
    others = [name for name in named if _may_test(scripts, f"{name[4:]} {_script(scripts[name])}")]
    is_first = not others or _may_test(scripts, _reached(scripts, "test"))
    return "test" if is_first and _script(scripts.get("test")) else next(iter(others), "test")


def _may_test(scripts: dict[str, Any], text: str) -> bool:
    """Tell whether a script's text looks like a test; the names of other scripts do not count."""
    text = re.sub(r"[\w:.-]+", lambda word: "" if word[0] in scripts else word[0], text)
    return not _WAITS.search(text) and _MAY_TEST.search(text) is not None


def _tests_js(folder: Folder, scripts: list[str]) -> bool:
    """Tell whether scripts test something: one hands on to the package's parts, another counts each file as a test.

    Such a one tests where it names a file of the package, or one of its files looks like a test.
    """
    lines = (re.split(r"\bnode\b", line, maxsplit=1) for script in scripts for line in script.split("\n"))
    takes_files = any(re.search(r"\s--test\b", line[-1]) for line in lines if line[1:]) and folder.has(_JS_TESTS)
    hands_on = any(map(_HANDS_ON.search, scripts)) or workspaces_of(folder)
    if not (takes_files or hands_on):
        return True
    words = {word.removeprefix("./") for script in scripts for word in re.findall(r"[\w./@-]+", script)}
    if any(name in words for name in folder.files):
        return True
    return any(_TESTS_JS.search(folder.text(name)) for name in folder.find(_JS_TESTS))


def workspaces_of(folder: Folder) -> list[str]:
    """Return the patterns of the folders that a JavaScript package names as parts of its own."""
    spaces = folder.json("package.json").get("workspaces")
    listed = re.findall(r"""(?m)^[ \t]*-[ \t]*['"]?([^'"\s!]+)""", folder.text("pnpm-workspace.yaml"))
    lerna = folder.json("lerna.json").get("packages")
    return [
        *paths_of(spaces.get("packages") if isinstance(spaces, dict) else spaces),
        *paths_of(lerna),
        *paths_of(listed),
    ]


def read_composer(folder: Folder, facts: Facts) -> None:
    package = folder.json("composer.json")
    test = _reached(mapping(package.get("scripts")), "test")
    pest = "pest" if "pestphp/pest" in mapping(package.get("require-dev")) else "phpunit"
    facts.values["phpunit"] = "bin/phpunit" if folder.has("bin/phpunit") else f"vendor/bin/{pest}"
    may_run_none = _MAY_RUN_NONE.search(test)
    facts.add(composer_test=test, composer_counts=may_run_none, composer_trusted=test and not may_run_none)
    facts.values["lost PHP"] = _loss_of(test)


def read_make(folder: Folder, facts: Facts) -> None:
    text = next((folder.text(name) for name in folder.find("GNUmakefile makefile Makefile")), "")
    included = " ".join(re.findall(r"(?m)^[ \t]*[-s]?include[ \t]+([^$\n]*)", text))
    text = "\n".join([text, *(folder.text(name) for name in dict.fromkeys(included.split()) if name in folder.files)])
    rules, recipes, named = _read_rules(text.replace("\\\n", " "))
    first = named or next((rule for rule in rules if not rule.startswith(".") and "%" not in rule), "")
    built = {"all", "build"}
    if built & set(rules.get("default", [])):
        built.add("default")
    goals = [goal for goal in (first, "all", "build") if goal in built and goal in rules][:1]
    other = next(filter(_TEST_GOAL.fullmatch, rules), "") if not {"check", "test"} & rules.keys() else ""
    named_so = ("check", "test", other)
    tests = [goal for goal in named_so if goal in rules and (rules[goal] or not _is_silent(recipes[goal]))]
    goals += tests
    facts.add(make=goals, make_test=any(rules[goal] or recipes[goal] for goal in tests))
    needed = [recipes.get(goal, []) for goal in _needed(rules, [*tests])]
    if ".ONESHELL" in rules and not re.search(r"(?m)^\.SHELLFLAGS\b[^=\n]*=(?:.*\s)?-\w*e", text):
        needed = [["; ".join(recipe)] for recipe in needed]  # only the exit code of the last step counts
    steps = [step for recipe in needed for step in recipe]
    steps = [re.sub(r"(?<!\$)\$\?", "", step) for step in steps if not _PREPARES.fullmatch(step)]  # a list of files
    ignored = (f"-{step.lstrip('@+-')}" for step in steps if re.match(r"[@+]*-", step))
    pipefail = "pipefail" if "pipefail" in text else ""
    facts.values["lost make"] = (
        ".IGNORE" * (".IGNORE" in rules)
        or next(ignored, "")
        or _loss_of("\n".join([pipefail, *(_with_shells(folder, step) for step in steps)]))
    )
    facts.values["runs make"] = "Python" if _runs_python(steps, text, folder) else ""
    facts.values["goals"] = "\n".join(
        f"make {goal}"
        if goal in rules.get(".PHONY", [])
        else f"if [ -e {goal} ]; then make -B {goal}; else make {goal}; fi"
        for goal in goals
    )


def _runs_python(steps: list[str], text: str, folder: Folder) -> bool:
    """Tell whether steps of make run the tests of Python beside it: by a runner, or each by its name."""
    values = dict(re.findall(r"(?m)^(\w+)[ \t]*[:?]*=(.*)", text))
    said = "\n".join(steps)
    said = "\n".join([said, *(values.get(name, "") for name in set(re.findall(r"[$][({](\w+)", said)))])
    tests = {*folder.find("test_*.py *_test.py")}
    is_named = bool(tests) and tests <= {*re.findall(r"[\w.-]+", said)}
    return is_named or re.search(r"\b(?:py\.?test|unittest)\b", said) is not None


def _is_silent(recipe: list[str]) -> bool:
    """Tell whether a recipe does no more than speak."""
    return bool(recipe) and all(map(_only_speaks, recipe))


def _needed(rules: dict[str, list[str]], goals: Iterable[str]) -> Iterator[str]:
    """Yield goals of make and those that they need."""
    seen, open_goals = set[str](), list(goals)
    while open_goals:
        goal = open_goals.pop()
        if goal not in seen:
            seen.add(goal)
            yield goal
            open_goals += rules.get(goal, [])


def _read_rules(text: str) -> tuple[dict[str, list[str]], dict[str, list[str]], str]:
    """Return the targets of a Makefile in their order with what they need, their recipes, and the default goal set."""
    rules: dict[str, list[str]] = {}
    recipes: dict[str, list[str]] = {}
    named, in_define, current = "", False, list[str]()
    for line in text.split("\n"):
        in_define = line.startswith("define ") or (in_define and not line.startswith("endef"))
        targets, colon, rest = line.partition("#")[0].partition(":")
        if default := re.match(r"\s*\.DEFAULT_GOAL\s*[:?]*=\s*(\S+)", line):
            named = default[1]
        elif line.startswith("\t") and not in_define:
            for target in current:
                recipes[target].append(line.strip())
        elif in_define or not colon or "=" in targets or re.match(r":{0,2}=", rest):
            continue
        elif not _ASSIGNED.match(rest.removeprefix(":")):
            needs, _, step = rest.removeprefix(":").partition(";")
            current = targets.split()
            for target in current:
                rules.setdefault(target, []).extend(needs.split())
                recipes.setdefault(target, []).extend([step.strip()] if step.strip() else [])
    return rules, recipes, named
