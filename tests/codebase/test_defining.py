"""The file that defines a name of the query goes before those that use it, in any language."""

import pytest

from code_commit.codebase.rank import rank, survey_files
from code_commit.codebase.text import Section, file_section

LANGUAGES = [
    ("cpp", "int Money::round_price(double a) {\n  return 1;\n}\n", "int t = round_price(a);\n"),
    ("ts", "export const round_price = (a: number): number => 1;\n", "const t = round_price(a);\nround_price(b);\n"),
    (
        "rb",
        "module Money\n  def self.round_price(a)\n    1\n  end\nend\n",
        "total = Money.round_price(a)\nputs round_price(a)\n",
    ),
    (
        "php",
        "<?php\nclass Money {\n  public static function round_price($a) { return 1; }\n}\n",
        "<?php\necho Money::round_price($a);\n",
    ),
    (
        "cs",
        "class Money {\n  public static int round_price(double a) => 1;\n}\n",
        "class U { int t = Money.round_price(a); void f() { round_price(2); } }\n",
    ),
    ("swift", "func round_price(_ a: Double) -> Int { 1 }\n", "let t = round_price(a)\nprint(round_price(a))\n"),
    ("scala", "object Money {\n  def round_price(a: Double): Int = 1\n}\n", "val t = round_price(a)\n"),
    ("lua", "local function round_price(a)\n  return 1\nend\n", "local t = round_price(a)\n"),
    (
        "dart",
        "class Money {\n  static int round_price(double a) {\n    return 1;\n  }\n}\n",
        "void main() {\n  print(round_price(a));\n  round_price(3);\n}\n",
    ),
    (
        "sql",
        "CREATE OR REPLACE FUNCTION round_price(a numeric) RETURNS int AS $$ SELECT 1 $$;\n",
        "SELECT round_price(a) FROM orders;\n",
    ),
    ("tf", 'variable "round_price" {\n  type = bool\n}\n', "locals {\n  x = var.round_price\n}\n"),
    (
        "proto",
        "message Money {}\nservice S {\n  rpc round_price (Money) returns (Money);\n}\n",
        "// calls round_price\n",
    ),
    ("erl", "-module(money).\nround_price(Amount) ->\n    1.\n", "total(Amount) -> money:round_price(Amount).\n"),
    ("jl", "round_price(a) = floor(a)\n", "total = round_price(a)\n"),
    ("ml", "let round_price a = 1\n", "let total = round_price a\n"),
    ("r", "round_price <- function(a) {\n  1\n}\n", "total <- round_price(a)\n"),
    (
        "groovy",
        "class Money {\n  static int round_price(double a) {\n    return 1\n  }\n}\n",
        "int t = round_price(a)\n",
    ),
    (
        "vue",
        "<script>\nexport default { methods: {\n  round_price(a) {\n    return 1\n  },\n} }\n</script>\n",
        "<template>{{ round_price(a) }}</template>\n",
    ),
    ("el", "(defun round_price (a)\n  1)\n", "(message (round_price a))\n"),
    ("scm", "(define (round_price a)\n  1)\n", "(display (round_price a))\n"),
    ("m", "- (int)round_price:(double)a {\n  return 1;\n}\n", "int t = [m round_price:a];\n"),
    ("vim", "function! round_price(a) abort\n  return 1\nendfunction\n", "let t = round_price(a)\n"),
    ("css", ".round_price {\n  color: red;\n}\n", ".a .b { x: 1 } /* round_price */\n"),
    ("hs", "round_price amount = round amount\n", "total = round_price amount\n"),
    ("py", "round_price = lambda a: 1\n", "def f():\n    return round_price(1)\nprint(round_price(2))\n"),
    ("pyi", "class M:\n    async def round_price(self): ...\n", '# def round_price moved\n"""class round_price"""\n'),
    ("java", "interface M {\n  int round_price(double a);\n}\n", "class U { void f() { round_price(1); } }\n"),
    ("kt", "class M {\n  val round_price: Int = 1\n}\n", "fun main() {\n  round_price(1)\n}\n"),
    ("sh", "function round_price {\n echo\n}\n", 'round_price "$a"\n'),
]


@pytest.mark.parametrize(("suffix", "defines", "uses"), LANGUAGES)
def test_a_file_that_defines_a_name_goes_before_those_that_use_it_often(suffix: str, defines: str, uses: str):
    texts = {f"app/use{number}.{suffix}": uses * 30 for number in range(9)}
    texts |= {f"zone/money.{suffix}": defines, "docs/money.md": "# round_price\n\nWhat `round_price` does.\n"}
    files = [Section(name, len(text), file_section(name, text)) for name, text in texts.items()]
    survey = survey_files(files, "`round_price` should keep the sign of a refund.\n")
    assert rank(survey)[0].name == f"zone/money.{suffix}"
