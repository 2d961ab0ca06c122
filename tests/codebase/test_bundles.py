"""Built bundles stand in no codebase, or behind the files that they may have been built of."""

import pytest

from code_commit.codebase.bundles import is_built, is_wrapped
from code_commit.codebase.rank import rank, survey_files
from code_commit.codebase.text import Section, file_section

ESBUILD = (
    "var Shop = (() => {\n  var Router = class {};\n  Router.path = (path) => path;\n  return { Router };\n})();\n"
)


@pytest.mark.parametrize(
    "text",
    [
        "/******/ (() => { // webpackBootstrap\n/******/ \tvar __webpack_modules__ = ({\n",
        "var __defProp = Object.defineProperty;\nvar __export = (target, all) => {};\n",
        "(function (global, factory) {\n  typeof exports === 'object' && typeof module !== 'undefined' ? 1 : 2;\n",
        '"use strict";\nexports.a = 1;\n//# sourceMappingURL=a.js.map\n',
    ],
)
def test_what_tools_write_is_built(text: str):
    assert is_built(text)


@pytest.mark.parametrize(
    "text",
    [
        "import a from './a.js';\nexport const b = a;\n",
        "// finds a line such as //# sourceMappingURL=a.js.map in a bundle\nexport const find = 1;\n",
        "export const name = '__webpack_require__';\n",
        "(function ($) {\n  $('a').hide();\n})(jQuery);\n",
    ],
)
def test_what_people_write_is_not_built(text: str):
    assert not is_built(text)


@pytest.mark.parametrize(
    "text", [ESBUILD, "// Shop\n(function () {\n  'use strict';\n  var Router = 1;\n}());\n", "!(function(){})();"]
)
def test_one_function_called_at_once_is_wrapped(text: str):
    assert is_wrapped("priv/shop.js", text)
    assert not is_wrapped("priv/shop.py", text)
    assert not is_wrapped("priv/shop.js", f"{text}export const a = 1;\n")


def test_the_source_goes_before_the_bundle_of_it():
    texts = {"priv/shop.js": ESBUILD * 1, "lib/router.ts": "export class Router {\n  path = 1;\n}\n" + "// more\n" * 99}
    files = [Section(name, len(text), file_section(name, text)) for name, text in texts.items()]
    survey = survey_files(files, "`Shop.Router` should match the path of a router, and `Router.path` too.\n")
    assert [file.name for file in rank(survey)] == ["lib/router.ts", "priv/shop.js"]
