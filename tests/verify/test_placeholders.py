"""What stands for code that was left out, and what only looks like it."""

import time

import pytest

from code_commit.verify.placeholders import find_placeholder

UNMISTAKABLE = [
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


@pytest.mark.parametrize(("path", "line"), ORDINARY)
def test_ordinary_code_and_prose_are_no_placeholders(path, line):
    assert find_placeholder(path, code(line), None) is None
    assert find_placeholder(path, code(line), "fn first() {}\n") is None


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
