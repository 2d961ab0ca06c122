import re
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from pathlib import Path

import pytest

from code_commit.commands import make_command_parser, parse
from code_commit.errors import NotSetUpError
from code_commit.llm.keys import load_keys
from code_commit.llm.models import choose_model
from code_commit.project import Project
from code_commit.settings import OPTIONS, SETTINGS, Facet, Price, Settings, settings_for
from code_commit.sources import load_settings, validate_settings

KEY = "sk-test-0123456789"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "agent-config").mkdir(mode=0o700)
    return Project(tmp_path)


def write_config(project: Project, text: str) -> None:
    project.config_file.write_text(text)


def test_option_before_environment_before_file_before_default(project):
    assert load_settings(project, {}, {}).max_repairs == 3
    write_config(project, "max_repairs = 1\n")
    assert load_settings(project, {}, {}).max_repairs == 1
    assert load_settings(project, {}, {"CODE_COMMIT_MAX_REPAIRS": "2"}).max_repairs == 2
    assert load_settings(project, {"max_repairs": 0}, {"CODE_COMMIT_MAX_REPAIRS": "2"}).max_repairs == 0


def test_every_kind_of_setting_from_the_file(project):
    write_config(
        project,
        'allow = ["src/"]\nstrict = true\nllm_timeout = 10\nsandbox = "off"\nbase_url = "http://127.0.0.1"\n'
        '[prices."m"]\ninput = 1\noutput = 2.5\n',
    )
    settings = load_settings(project, {}, {})
    assert (settings.allow, settings.strict, settings.llm_timeout, settings.sandbox) == (("src/",), True, 10, "off")
    assert settings.prices == {"m": Price(1, 2.5)}


@pytest.mark.parametrize("price", [{"input": 1, "output": 2.5, "cached_input": None}, [1, 2.5, None, None]])
def test_resume_reads_prices_as_run_json_has_or_had_them(price):
    settings = Settings(**validate_settings({"prices": {"m": price}}))
    assert settings.prices == {"m": Price(1, 2.5)}
    whole = {"input": 1, "output": 2.5, "cached_input": None, "cache_write": None}
    assert settings.as_record()["prices"] == {"m": whole}


def test_null_is_a_value_of_the_settings_alone_that_may_be_unset():
    unset = {name for name, default in Settings._field_defaults.items() if default is None}
    for name in SETTINGS:
        with nullcontext() if name in unset else pytest.raises(NotSetUpError, match=f"{name} must be"):
            assert validate_settings({name: None}) == {name: None}


def test_every_kind_of_setting_from_the_environment(project):
    environment = {
        "CODE_COMMIT_ALLOW": "src/,docs/\n*.md",
        "CODE_COMMIT_STRICT": "yes",
        "CODE_COMMIT_QUIET": "0",
        "CODE_COMMIT_BUILD_TIMEOUT": "1.5",
        "CODE_COMMIT_MAX_OUTPUT_TOKENS": "9",
        "CODE_COMMIT_ON_REJECTED": "stop",
        "CODE_COMMIT_INFRASTRUCTURE_EXIT_CODES": "75,99",
        "CODE_COMMIT_KEY_COMMAND": "",
    }
    settings = load_settings(project, {}, environment)
    assert settings.allow == ("src/", "docs/", "*.md")
    assert (settings.strict, settings.quiet, settings.build_timeout) == (True, False, 1.5)
    assert (settings.max_output_tokens, settings.on_rejected) == (9, "stop")
    assert settings.infrastructure_exit_codes == (75, 99)
    assert settings.key_command == ""


WRONG_FILES = {
    "typo": ("max_repair = 1", "there is no setting 'max_repair'; did you mean 'max_repairs'?"),
    "unknown": ("zzz = 1", "there is no setting 'zzz'; code-commit run --help lists"),
    "wrong type": ("max_repairs = 'many'", "max_repairs must be a whole number"),
    "text for a number": ("max_repairs = '1'", "max_repairs must be a whole number: leave the quotes out"),
    "text that fits in no form": ("max_repairs = '1.0'", "max_repairs must be a whole number\n"),
    "part of a number": ("max_repairs = 1.0", "max_repairs must be a whole number"),
    "true for a number": ("max_cost = true", "max_cost must be a number of US dollars"),
    "number for true": ("strict = 1", "strict must be true or false"),
    "text for a list": ("allow = 'src/**'", 'allow must be a list of strings, such as ["src/**"]'),
    "number for a text": ("model = 4", "model must be a string"),
    "wrong part": ("infrastructure_exit_codes = ['x']", "infrastructure_exit_codes must be a list of whole numbers"),
    "an exit code of success": ("infrastructure_exit_codes = [0]", "infrastructure_exit_codes must be from 1 to 255"),
    "no exit code": ("infrastructure_exit_codes = [75, 300]", "infrastructure_exit_codes must be from 1 to 255"),
    "a pattern of no path": ("allow = ['src/', ' ']", "allow must have no empty entry: name a path"),
    "wrong word": ("sandbox = 'on'", "sandbox must be one of auto, off, guard, strict"),
    "negative": ("max_repairs = -1", "max_repairs must be 0 or more"),
    "nothing": ("max_cost = 0", "max_cost must be more than 0"),
    "no TOML": ("max_repairs = = 1", "is not valid TOML"),
    "endless": ("llm_timeout = inf", "llm_timeout must be more than 0"),
    "not a number": ("build_timeout = nan", "build_timeout must be 0 or more"),
    "too much for a float": (f"build_timeout = 1{'0' * 400}", "build_timeout must be 0 or more"),
    "a window of 400 digits": (
        f"context_window = 1{'0' * 400}",
        "context_window must be more than 0, 1,000,000,000,000 at most",
    ),
    "a window of 300 digits": (f"context_window = 1{'0' * 300}", "1,000,000,000,000 at most"),
    "unknown price": (
        "[prices.m]\ninput = 1\noutput = 1\ncached = 1",
        "prices.m: there is no setting 'cached'; did you mean 'cached_input'?",
    ),
    "a setting below the prices": (
        "[prices.m]\ninput = 1\noutput = 1\nmodel = 'chat:x'",
        "prices.m: there is no setting 'model' in this table: move it above the table",
    ),
    "settings in the prices": (
        "[prices]\nmodel = 'chat:x'\n",
        "config.toml: model is inside the [prices] table: move it above that line",
    ),
    "settings in the headers": (
        "[headers]\nX-Team = 'web'\nsandbox = 'strict'\n",
        "config.toml: sandbox is inside the [headers] table: move it above that line",
    ),
    "a number in the headers": ("[headers]\nmax_cost = 2\n", "max_cost is inside the [headers] table"),
    "missing price": ("[prices.m]\ninput = 1", "prices.m: output is missing"),
    "negative price": ("prices.m = {input = 1, output = -1}", "prices.m: output must be 0 or more"),
    "price of what": ("prices.m = 1", "prices.m: input is missing"),
    "no prices": ("prices = 1", "prices must be a table: write a line with its name in brackets, and each entry as"),
    "no headers": ("headers = 1", "headers must be a table: write a line with its name in brackets, and each entry as"),
    "nothing of a price": (
        "[prices.m]\ninput = 1\noutput = 2\nzzz = 3",
        "there is no setting 'zzz'; there are input, output, cached_input, cache_write",
    ),
    "a header that is none": ('[headers]\n"a b" = "x"', "headers has a b, which is not a header that may be set"),
    "a name of no header": ('key_header = "a\\r\\nb"', "key_header names no header that may be set"),
    "the host": (
        'key_header = "Host"',
        "key_header names no header that may be set: write its name alone, such as api-key",
    ),
}


@pytest.mark.parametrize(("text", "message"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_wrong_config_file_is_named_with_its_fault(project, text, message):
    write_config(project, text)
    with pytest.raises(NotSetUpError) as caught:
        load_settings(project, {}, {})
    assert str(caught.value).startswith("agent-config/config.toml")
    assert message in f"{caught.value}\n"


def test_all_faults_of_all_sources_are_told_at_once(project):
    write_config(project, "modle = 'x'\nsandbox = 'on'\n")
    with pytest.raises(NotSetUpError) as caught:
        load_settings(project, {"max_repairs": "1", "max_cost": -1}, {"CODE_COMMIT_LLM_TIMEOUT": "soon"})
    assert str(caught.value).split("\n") == [
        "agent-config/config.toml: there is no setting 'modle'; did you mean 'model'?",
        "agent-config/config.toml: sandbox must be one of auto, off, guard, strict",
        "environment variable CODE_COMMIT_LLM_TIMEOUT='soon' must be a number of seconds",
        "max_repairs must be a whole number: leave the quotes out",
        "max_cost must be more than 0",
    ]


def test_a_config_file_costs_no_import_of_pydantic(project):
    write_config(project, "max_repairs = 1\n[prices.m]\ninput = 1\noutput = 2\n")
    script = (
        "import sys; from code_commit.project import find_project; from code_commit.sources import load_settings\n"
        "assert load_settings(find_project(), {}).max_repairs == 1\nsys.exit('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=project.root, check=False).returncode == 0


def test_a_config_file_that_is_not_utf_8_is_named(project):
    project.config_file.write_bytes(b"strict = true\nmodel = '\xff'")
    with pytest.raises(
        NotSetUpError, match=r"^agent-config/config\.toml is not UTF-8 text \(line 2\): save it as UTF-8$"
    ):
        load_settings(project, {}, {})


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("--allow", "", "must have no empty entry: name a path"),
        ("--protect", " ", "must have no empty entry: name a path"),
        ("--infrastructure-exit-codes", "0", "must be from 1 to 255"),
        ("--infrastructure-exit-codes", "256", "must be from 1 to 255"),
        ("--infrastructure-exit-codes", "x", "must be a whole number"),
        ("--max-repairs", "", "is empty: give it a value, or leave the option out"),
    ],
)
def test_a_wrong_option_is_named(option, text, message):
    with pytest.raises(NotSetUpError) as caught:
        parse([option, text])
    assert str(caught.value).startswith(f"argument {option}: {message}")


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("MAX_REPAIRS", "x", "must be a whole number"),
        ("LLM_TIMEOUT", "soon", "must be a number of seconds"),
        ("INFRASTRUCTURE_EXIT_CODES", "75,x", "must be a list of whole numbers"),
        ("STRICT", "maybe", "must be true or false"),
        ("SANDBOX", "on", "must be one of auto, off, guard, strict"),
        ("MAX_REPAIRS", "-1", "MAX_REPAIRS='-1' must be 0 or more"),
        ("CONTEXT_WINDOW", "9", "context_window can be set only in config.toml"),
    ],
)
def test_a_wrong_variable_is_named(project, variable, text, message):
    with pytest.raises(NotSetUpError, match=message):
        load_settings(project, {}, {f"CODE_COMMIT_{variable}": text})


def test_the_example_config_shows_every_setting_with_its_default_or_a_marked_example():
    text = (Path(__file__).parents[1] / "agent-config.example/config.toml").read_text()
    names = set(re.findall(r"^# (\w+) = ", text, re.MULTILINE))
    fields = {*SETTINGS} - {"prices", "headers"} - {*settings_for(Facet.OWN)}  # the last are not a project's
    assert fields <= names
    assert tomllib.loads(text) == {
        "answer_format": "auto",
        "prompt_layout": "cached",
        "build_first": True,
        "codebase_additions": True,
        "file_replacements": "diff",
    }
    only_defaults = re.sub(r"(?m)^\w.*\n", "", text)
    shown = tomllib.loads(re.sub(r"(?m)^# (?=[\w-]+ = |\[(prices|headers))", "", only_defaults))
    assert shown.pop("headers") == {"X-Team": "platform"}
    assert shown.pop("prices")["my-model"]["input"] == 2.0
    examples = set(re.findall(r"(?m)^# (\w+) = .*  # an example$", text))
    for name, value in shown.items():
        default = getattr(Settings(), name)
        assert (value == (list(default) if isinstance(default, tuple) else default)) == (name not in examples), name
        assert name not in examples or not default, f"{name} has a default"


@pytest.mark.parametrize(
    "variable", ["CODE_COMMIT_MAX_COSTS", "CODE_COMMIT_MAXCOST", "CODE_COMMIT_SANBOX", "CODE_COMMIT_MODELS"]
)
def test_a_misspelt_variable_is_refused(variable, project):
    with pytest.raises(NotSetUpError, match=f"{variable} names no option; did you mean 'CODE_COMMIT_"):
        load_settings(project, {}, {variable: "1"})


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("CODE_COMMIT_QUERY", "did you mean 'CODE_COMMIT_QUIET'?"),
        ("CODE_COMMIT_COST", "did you mean 'CODE_COMMIT_MAX_COST'?"),
        ("CODE_COMMIT_KEY", "did you mean 'CODE_COMMIT_KEYS'?"),
        ("CODE_COMMIT_HOME", "unset it"),
        ("CODE_COMMIT_OPENAI_API_KEY", "a key goes into a variable such as OPENAI_API_KEY"),
        ("CODE_COMMIT_", "did you mean 'CODE_COMMIT_RUN'?"),
    ],
)
def test_a_variable_that_sets_nothing_is_refused(variable, hint, project):
    with pytest.raises(NotSetUpError) as caught:
        load_settings(project, {}, {variable: "1"})
    assert str(caught.value) == f"environment variable {variable} names no option; {hint}"


@pytest.mark.parametrize("variable", ["ATTEMPT", "RUN", "CHAT_API_KEY", "KEYS", "PACKAGE"])
def test_a_variable_that_something_of_ours_reads_or_sets_is_passed_over(variable, project):
    variable = f"CODE_COMMIT_{variable}"
    assert load_settings(project, {}, {variable: "1"}) == Settings()


def test_an_unfit_key_is_not_passed_over_for_another_vendors(project):
    keys = load_keys(project, {"OPENAI_API_KEY": "abc", "ANTHROPIC_API_KEY": KEY})
    with pytest.raises(NotSetUpError, match=r"OPENAI_API_KEY contains only 3 characters, too few for an API key"):
        choose_model("", keys, keys.unfit)
    keys = load_keys(project, {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": "abc"})
    assert choose_model("", keys, keys.unfit).provider == "openai"


FOR = {
    Facet.APPLY: ("build_timeout", "answer_format", "allow", "protect", "strict", "dry_run", "rollback", "require_clean", "sandbox"),
    Facet.RESUME: ("base_url", "fallback_base_url", "key_command", "max_repairs", "llm_timeout", "build_timeout", "max_cost", "sandbox"),
    Facet.ROLLUP: ("model", "select_model", "base_url", "key_command", "llm_timeout", "max_cost"),
    Facet.OUTPUT: ("json", "quiet", "verbose"),
    Facet.BUILD: ("build_timeout", "infrastructure_exit_codes", "sandbox", "sandbox_network", "sandbox_caches"),
    Facet.LIMIT: (
        *("llm_timeout", "build_timeout", "max_cost", "stream", "background", "requests_per_minute", "tokens_per_minute"),
        *("keep_runs", "keep_days", "prices"),
    ),
    Facet.MODEL: ("model", "select_model", "fallback_model"),
    Facet.ADDED: ("protect",),
    Facet.REACH: ("key_command", "headers", "key_header", "client_cert", "client_key"),
    Facet.OWN: ("key_command", "client_cert", "client_key"),
    Facet.GUARD: (
        *("max_cost", "allow", "strict", "approve", "rollback", "require_clean", "sandbox", "allow_http"),
        *("sandbox_network", "sandbox_caches"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("facet", Facet)
def test_the_settings_of_a_use_are_those_with_its_facet(facet: Facet):
    assert settings_for(facet) == FOR[facet]


@pytest.mark.parametrize("command", ["apply", "resume", "rollup", "undo"])
def test_a_command_has_the_options_of_its_facet_and_no_others(command: str):
    own = [facet for facet in Facet if facet.name == command.upper()]
    parser = make_command_parser(command)
    found = {name for name in OPTIONS if parser.has_option("--" + name.replace("_", "-"))}
    assert found == {*settings_for(*own, Facet.OUTPUT)}
