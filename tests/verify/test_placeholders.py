"""What stands for code that was left out, and what only looks like it."""

import time

import pytest

from code_commit.verify.placeholders import find_placeholder

UNMISTAKABLE = [
    "...[truncated]",
    "\u2026 [12 lines omitted]",
    "    y = x * 33...[truncated]",
    "... rest of the file unchanged ...",
    "... rest of file unchanged ...",
    "...rest of the code remains the same...",
    "... existing code ...",
    "...existing code...",
    "[... rest of the file unchanged ...]",
    "(... the rest of the file stays the same ...)",
    "<rest of the file unchanged>",
    "// ... existing code ...",
    "// ...existing code...",
    "// ... existing code",
    "// ... rest of the code",
    "// ... rest of the file",
    "// ... rest of the imports ...",
    "// ... (rest of the code remains the same)",
    "// ... (existing code)",
    "// ... other methods",
    "// ... other methods unchanged",
    "// ... previous code ...",
    "// ... remaining methods ...",
    "// ... keep existing code ...",
    "// ... unchanged ...",
    "// ... unchanged code ...",
    "// ... (unchanged)",
    "// ... same as before ...",
    "// rest of the code ...",
    "// Rest of your code here...",
    "// existing code...",
    "/* ... rest of the styles ... */",
    "/* ... existing styles ... */",
    "/* ... */ // ... existing code ..."[10:],
    "{/* ... existing JSX ... */}",
    "{/* ... rest of the component ... */}",
    "<!-- ... rest of the page ... -->",
    "<!-- ... existing content ... -->",
    "# ... rest of the file unchanged ...",
    "# ... existing imports ...",
    "# ... existing imports",
    "# ... rest of the function remains unchanged",
    "# ... (rest of the file unchanged)",
    "# ... rest of class ...",
    "# \u2026 existing code \u2026",
    "\u2026 rest of the file unchanged \u2026",
    "-- ... existing columns, rest of the table ..."[:0] + "-- ... existing definitions ...",
    "; ... existing entries ...",
    "% ... rest of the document ...",
    "        // ... existing code ...",
    "\t# ... rest of the method ...",
    "  # ... omitted for brevity ...",
    "// ... code omitted for brevity ...",
    "// ... The rest of the implementation remains unchanged ...",
    "// ... all other functions stay the same ...",
    "# ... no changes ...",
]

LIKELY = [
    "# (unchanged)",
    "// (unchanged)",
    "// unchanged",
    "# unchanged",
    "// (rest of the file unchanged)",
    "// rest of the code remains unchanged",
    "// Rest of the file remains the same",
    "# The rest of the file remains the same.",
    "# rest of the code here",
    "# rest of the code",
    "// The rest of the file is unchanged",
    "// existing code here",
    "// remaining methods unchanged",
    "// remaining code is the same as before",
    "/* existing styles unchanged */",
    "<!-- rest of the page unchanged -->",
    "# omitted for brevity",
    "// code omitted for brevity",
    "// same as before",
    "// [rest of the code]",
    "# keep the rest of the function as is",
    "// Existing imports remain unchanged",
]

IN_OTHER_WORDS = (
    """
    everything else stays the same|everything else unchanged|everything below unchanged|everything above remains the same
    everything after this point is unchanged|nothing else changes|nothing changes below|no further changes
    no other changes|no changes below this line|no changes from here on|no changes to the rest of the file
    unchanged below|unchanged from here|unchanged from original|as before|as above|same as in the original file
    code continues|file continues|continues as before|continue with the rest of the file|existing code continues
    120 lines omitted|120 more lines|(120 unchanged lines)|lines 40-120 unchanged|lines 40 to 120 remain the same
    keep everything else|leave the rest unchanged|leave as is|your code here|more code|more methods
    paste the rest of the file here|copy the rest from the original file|add the remaining code here
    all other code stays as it was|identical to the original|identical to before|the same|body unchanged
    function body unchanged|implementation unchanged|implementation omitted|implementation goes here|imports unchanged
    implementation details omitted for brevity|code above unchanged|code below is unchanged|code before this unchanged
    above code remains unchanged|the code above is unchanged|unchanged code above|unmodified|not modified|not changed
    not shown|not shown for brevity|skipped for brevity|shortened for brevity|abbreviated|collapsed|hidden
    removed for brevity|for brevity|preserved|existing code preserved|see original|see the original file for the rest
    refer to the original file|{existing code}|(same)|(existing)|and so on|etc
""".strip()
    .replace("\n", "|")
    .split("|")
)
"""What stands between dots where code is left out: of these none is in the lists above."""

WHERE_A_FILE_SHRINKS = [
    "// everything else stays the same",
    "# Everything below is unchanged.",
    "// no other changes",
    "/* nothing else changes */",
    "# code above unchanged",
    "// function body unchanged",
    "-- identical to the original",
    "; as before (not shown)",
    "// 120 lines omitted",
    "<!-- lines 40-120 unchanged -->",
    "[existing code]",
    "<rest of file>",
]

COMMENTS = {
    # a comment, and the files that have such
    "// {}": "a.js", "//! {}": "a.rs", "/// {}": "a.cs", "# {}": "a.py", "## {}": "a.sh", "/* {} */": "a.c", "/** {} */": "A.java",
    "<!-- {} -->": "a.html", "-- {}": "a.sql", "--[[ {} ]]": "a.lua", "; {}": "a.asm", ";; {}": "a.clj", "% {}": "a.erl",
    "(* {} *)": "a.ml", "{{/* {} */}}": "a.tsx", '""" {} """': "a.py", "''' {} '''": "a.py", "REM {}": "a.bat", "@rem {}": "a.bat",
    "dnl {}": "configure.ac", "{{{{! {} }}}}": "a.hbs", "{{{{!-- {} --}}}}": "a.hbs", "{{# {} #}}": "a.j2", "<%# {} %>": "a.erb",
    "<%-- {} --%>": "a.jsp", "{{- {} -}}": "a.hs", "' {}": "a.vb", '" {}': "a.vim", "! {}": "a.f90", ".. {}": "a.rst",
}  # fmt: skip

ORDINARY = [
    ("a.py", "    ..."),
    ("a.py", "..."),
    ("a.py", "def f() -> None: ..."),
    ("a.py", "x: tuple[int, ...] = ()"),
    ("a.py", "    raise NotImplementedError(...)"),
    ("a.py", ">>> x = 1\n... y = 2\n... rest = 3"),
    ("a.py", "# Wait for the rest of the file to arrive before parsing it."),
    ("a.py", "# Skip the header, the rest of the line is the message"),
    ("a.py", "# keep existing files, they may have been edited by hand"),
    ("a.py", "# TODO: handle the remaining cases"),
    ("a.py", "# remaining arguments"),
    ("a.py", "# existing users are migrated on login"),
    ("a.py", "# Existing code may rely on this, so keep it."),
    ("a.py", "# all other types"),
    ("a.py", "# previous value"),
    ("a.py", "# same as above, but for bytes"),
    ("a.py", "# loading ..."),
    ("a.py", "# see below ..."),
    ("a.py", "# and so on..."),
    ("a.py", "# everything else is unchanged by this call, so the cache stays valid"),
    ("a.py", 'print("... rest of the file unchanged ...")'),
    ("a.py", 'message = "// ... existing code ..."'),
    ("a.py", 'assert strip("# ... existing code ...") == ""'),
    ("a.py", "x = rest  # unchanged"),
    ("a.py", "unchanged = True"),
    ("a.js", "const { a, ...rest } = props;"),
    ("a.js", "  ...existing,"),
    ("a.js", "  ...rest,"),
    ("a.js", "return [...previous, ...other];"),
    ("a.js", "...state.existing.items,"),
    ("a.js", "f(...existingCode);"),
    ("a.js", "// ...and then retry with the remaining time budget of the caller"),
    ("a.js", "// Spread the other options..."),
    ("a.ts", "function f(...rest: string[]) {}"),
    ("a.tsx", "<Component {...rest} />"),
    ("a.go", "func f(rest ...string) {}"),
    ("a.go", "x = append(x, existing...)"),
    ("a.c", "int printf(const char *format, ...);"),
    ("a.c", "#define LOG(...) fprintf(stderr, __VA_ARGS__)"),
    ("a.rs", "let Point { x, .. } = point;"),
    ("a.rs", "..Default::default()"),
    ("a.rs", "/// The rest of the buffer is left untouched by this call."),
    ("a.rs", "// The remaining bytes belong to the next frame."),
    ("a.rs", "    assert_eq!(a, b); // unchanged"),
    ("a.rb", "def f(...) = g(...)"),
    ("a.yaml", "---\na: 1\n..."),
    ("a.sh", 'echo "... existing files are kept"'),
    ("a.sh", "# ..."),
    ("a.md", "The rest of the file is unchanged."),
    ("a.md", "And so on... existing users keep their settings."),
    ("a.md", "* Remaining tests unchanged"),
    ("a.md", "# Existing code"),
    ("a.md", "# The rest of the file"),
    ("a.md", "## Unchanged"),
    ("CHANGELOG.md", "- unchanged: the other options stay the same"),
    ("a.txt", "Loading..."),
    ("a.txt", "unchanged"),
    ("a.txt", "... and the rest of the story was never told ..."),
    ("a.css", ".rest::after { content: '...'; }"),
    ("a.html", "<p>Read more ...</p>"),
    ("a.html", "<!-- existing users see the old page -->"),
    ("a.sql", "-- existing rows keep their value"),
    ("a.el", ";; the rest of the line"),
    ("a.tex", "% see the previous section"),
    ("a.py", "# ...7443804441768333470331"),
    ("a.py", "# the same"),
    ("a.clj", "(other functions)"),
    ("a.py", "# ... so the cache of the caller stays unchanged"),
    ("a.py", "x = '... everything else stays the same ...'"),
    ("a.py", "# everything else"),
    ("a.py", "# no arguments, nothing else"),
    ("a.py", "# the value before the call, unchanged"),
    ("a.md", "Everything else stays the same."),
    ("a.py", "..." * 60 + " rest of the file unchanged " + "..." * 60),
]


def code(line: str) -> str:
    return f"fn first() {{}}\n{line}\nfn last() {{}}\n"


@pytest.mark.parametrize("line", UNMISTAKABLE)
def test_an_unmistakable_placeholder_is_found_in_new_and_replaced_files(line):
    for old in (None, "fn first() {}\nfn middle() {}\nfn last() {}\n"):
        found = find_placeholder("src/a.rs", code(line), old)
        assert found is not None
        assert found[0] == 1


@pytest.mark.parametrize("line", LIKELY)
def test_a_comment_that_says_that_nothing_changed_is_found_in_a_replaced_file(line):
    assert find_placeholder("src/a.rs", code(line), "fn first() {}\nfn middle() {}\n") is not None
    assert find_placeholder("src/a.rs", code(line), None) is None


def test_code_is_left_out_in_other_words_too():
    longer = code("fn middle() { let something = 1; }" * 4)
    for form in (
        "... {} ...",
        "// ... {} ...",
        "# ... {}",
        "/* ... {} ... */",
        "<!-- ... {} ... -->",
        "\u2026 {} \u2026",
    ):
        lines = [form.format(words) for words in IN_OTHER_WORDS]
        found = {line: find_placeholder("src/a.rs", code(line), longer) for line in lines}
        assert found == {line: (1, line) for line in lines}


@pytest.mark.parametrize("line", WHERE_A_FILE_SHRINKS)
def test_a_comment_for_code_left_out_is_found_where_a_file_shrinks(line):
    longer = code("fn middle() { let something = 1; }" * 4)
    assert find_placeholder("src/a.rs", code(line), longer) == (1, line.lower())
    assert find_placeholder("src/a.rs", code(line), "short\n") is None
    assert find_placeholder("src/a.rs", code(line), None) is None
    assert find_placeholder("src/a.rs", code(line), longer + line) is None


@pytest.mark.parametrize(("comment", "path"), COMMENTS.items())
def test_every_language_has_its_comments(comment, path):
    for words in ("... rest of the file unchanged ...", "... everything else stays the same ..."):
        line = comment.format(words).lower()
        assert find_placeholder(path, code(line), code("fn middle() { let something = 1; }" * 4)) == (1, line)


@pytest.mark.parametrize(
    "lines", ["# The cache of the caller is\n# the same.", "// Both lines are\n// to stay as before.", "/// unchanged."]
)
def test_the_end_of_a_sentence_is_no_placeholder(lines):
    assert find_placeholder("src/a.rs", code(lines), code("fn middle() { let something = 1; }" * 4)) is None


@pytest.mark.parametrize(("path", "line", "is_one"), [
    ("a.js", "  ...", True), ("a.rs", "...", True), ("a.py", "...", True), ("a.py", "    ...", False), ("a.pyi", "    ...", False),
    ("a.yaml", "...", False), ("a.md", "...", False), ("a.c", "    ...", False), ("a.rst", ".....", False), ("a.txt", "...", False),
])  # fmt: skip
def test_dots_alone_are_a_placeholder_where_they_are_no_code(path, line, is_one):
    longer = code("fn middle() { let something = 1; }")
    assert (find_placeholder(path, code(line), longer) is not None) == is_one
    assert find_placeholder(path, code(line), longer + line) is None
    assert find_placeholder(path, code(line), None) is None


def test_ordinary_code_and_prose_are_no_placeholders():
    for old in (None, "fn first() {}\n"):
        assert {line: find_placeholder(path, code(line), old) for path, line in ORDINARY} == {
            line: None for _, line in ORDINARY
        }


@pytest.mark.parametrize(
    "line", ["... rest of the file unchanged ...", "[... existing content unchanged ...]", "<!-- rest of the page -->"]
)
def test_prose_files_hold_placeholders_only_between_dots_or_brackets(line):
    assert find_placeholder("README.md", code(line), "old\n") is not None


@pytest.mark.parametrize("line", ["// ...", "# ...", "/* ... */", "<!-- ... -->", "{/* ... */}", "    // \u2026"])
def test_dots_alone_in_a_comment_count_when_the_file_shrinks(line):
    longer = code("fn middle() { let something = 1; }")
    assert find_placeholder("src/a.rs", code(line), longer) is not None
    assert find_placeholder("src/a.rs", code(line), "short\n") is None
    assert find_placeholder("src/a.rs", code(line), None) is None


@pytest.mark.parametrize("line", ["#     ...", "    #     ...", "//   ..."])
def test_dots_in_code_that_is_commented_out_are_no_placeholder(line):
    assert find_placeholder("a.py", code(line), code("fn middle() { let something = 1; }")) is None


def test_what_the_old_file_had_already_is_no_placeholder():
    line = "// ... existing code ..."
    assert find_placeholder("src/a.rs", code(line), code(line) + "fn more() {}\n") is None
    assert find_placeholder("src/a.rs", code(line) + code(line), code(line)) == (4, line)


def test_the_line_of_the_placeholder_is_told():
    text = "a\nb\r\nc\n\n  // ... existing code ...\nd"
    assert find_placeholder("a.js", text, None) == (4, "// ... existing code ...")


@pytest.mark.parametrize(
    "text",
    [
        "... " * 500_000,
        "existing " * 250_000,
        "...\n" * 500_000,
        "// ... existing " * 120_000,
        "// ... rest of the " + "a " * 70 + "\n" + ("// ... rest of the a a a a a a a a a\n" * 20_000),
        "x = 1  # nothing here at all\n" * 100_000,
        "# " + "the " * 30 + "\n" + ("# the the the the the the other other other \n" * 20_000),
    ],
    ids=["dots", "words", "lines of dots", "one long line", "near misses", "plain", "articles"],
)
def test_the_time_is_linear_in_the_size(text):
    start = time.process_time()
    find_placeholder("a.rs", text, "old")
    assert time.process_time() - start < 5
