"""The page in a real browser: Chromium without a window, from file://, with a hostile run and a long one on it."""

import base64
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import Run
from fleet_out import write_fleet
from page_runs import EVIL, IMAGE, NAME, embellish, hostile_run, long_run, write_page

selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1400,900",
)

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="there is no chromium or no chromedriver here")


class Browser:
    """A page in Chromium."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path) -> None:
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(page.as_uri())

    def run(self, script: str) -> Any:
        return self.driver.execute_script(f"return {script}")

    def command(self, name: str, **parameters: Any) -> Any:
        return self.driver.execute_cdp_cmd(name, parameters)

    def look(self, width: int, scheme: str = "light", media: str = "") -> None:
        """Give the page a width, a colour scheme and a medium."""
        self.command(
            "Emulation.setEmulatedMedia",
            media=media,
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)

    def requests(self) -> list[str]:
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = CHROMIUM or ""
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = selenium.Chrome(options=options, service=Service(DRIVER))
    yield Browser(driver)
    driver.quit()


MADE: dict[str, Path] = {}


@pytest.fixture
def page(
    browser: Browser, project_folder: Path, run_code_commit: Run, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The page of the hostile run, made once, open in the browser."""
    if "page" not in MADE:
        folder = hostile_run(project_folder, run_code_commit)
        embellish(
            folder,
            model=f"m{EVIL}",
            message=f"It passes {IMAGE}",
            warnings=[{"kind": "other", "message": EVIL, "path": ""}],
            root=f"/{IMAGE}",
        )
        target = tmp_path_factory.mktemp("page") / 'a "page" <b>%23#.html'
        MADE["page"] = write_page(project_folder, target, run_code_commit)
    browser.look(1400)
    browser.open(MADE["page"])
    return MADE["page"]


@pytest.fixture
def long_page(
    browser: Browser, project_folder: Path, run_code_commit: Run, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The page of a run of sixteen files that fails after much output, made once, open in the browser."""
    if "long" not in MADE:
        long_run(project_folder, run_code_commit)
        MADE["long"] = write_page(project_folder, tmp_path_factory.mktemp("long") / "page.html", run_code_commit)
    browser.look(1280)
    browser.open(MADE["long"])
    yield MADE["long"]
    browser.driver.execute_script("localStorage.clear()")


@pytest.mark.slow
def test_it_opens_without_a_complaint_and_asks_the_network_for_nothing(browser: Browser, page: Path):
    assert [entry["message"] for entry in browser.driver.get_log("browser")] == []
    assert [url for url in browser.requests() if not url.startswith(("data:", "chrome://"))] == [page.as_uri()]
    assert browser.run("performance.getEntriesByType('resource').length") == 0


def test_hostile_content_is_text_and_runs_nothing(browser: Browser, page: Path):
    assert browser.run("typeof window.hacked") == "undefined"
    text = browser.run("document.body.textContent")
    for foreign in (EVIL, IMAGE, NAME, "</td></table></script>", "</style><style>* { display: none }"):
        assert foreign in text
    assert browser.run("document.scripts.length") == 1
    assert browser.run("document.querySelectorAll('img, iframe, object, embed, link, base').length") == 0
    assert browser.run("[...document.links].filter(link => !/^(file|https?):/.test(link.protocol)).length") == 0
    assert browser.run("getComputedStyle(document.querySelector('main')).display") == "block"


def test_the_policy_stops_what_would_get_in(browser: Browser, page: Path):
    for attack in (
        "let s = document.createElement('script'); s.textContent = 'window.hacked = 8'; document.body.append(s)",
        "document.body.insertAdjacentHTML('beforeend', '<img src=http://127.0.0.1:9/x onerror=window.hacked=9>')",
        "document.body.insertAdjacentHTML('beforeend', '<style>main { display: none }</style>')",
        "document.querySelector('main').setAttribute('style', 'display: none')",
    ):
        browser.driver.execute_script(attack)
    assert browser.run("typeof window.hacked") == "undefined"
    assert browser.run("getComputedStyle(document.querySelector('main')).display") == "block"
    assert [url for url in browser.requests() if url.startswith("http") and "127.0.0.1" not in url] == []
    blocked = "".join(entry["message"] for entry in browser.driver.get_log("browser"))
    assert blocked.count("Content Security Policy") >= 4


@pytest.mark.slow
def test_the_command_that_undoes_the_run_is_copied(browser: Browser, long_page: Path):
    browser.driver.find_element("id", "copy").click()
    browser.driver.implicitly_wait(1)
    assert browser.driver.find_elements("xpath", "//button[text()='Copied']")


@pytest.mark.sweep
def test_files_are_ticked_off_and_stay_so(browser: Browser, long_page: Path):
    ticked = "[...document.querySelectorAll('.viewed input')].filter(tick => tick.checked).length"
    closed = "[...document.querySelectorAll('#changes details.file:not([open])')].map(file => file.id)"
    assert (browser.run(ticked), browser.run(closed)) == (0, [])
    browser.run("document.querySelectorAll('.index input')[2].click()")
    browser.driver.find_element("css selector", "#file-5 .viewed").click()
    assert (browser.run(ticked), browser.run(closed)) == (4, ["file-3", "file-5"])
    browser.open(long_page)
    assert (browser.run(ticked), browser.run(closed)) == (4, ["file-3", "file-5"])
    browser.driver.find_element("css selector", "#file-5 .viewed").click()
    assert (browser.run(ticked), browser.run(closed)) == (2, ["file-3"])


@pytest.mark.sweep
@pytest.mark.parametrize("width", [400, 1280])
def test_a_link_lands_where_it_says_and_unfolds_it(browser: Browser, long_page: Path, width: int):
    browser.look(width)
    browser.driver.implicitly_wait(1)
    at_end = "Math.ceil(scrollY + innerHeight) >= document.documentElement.scrollHeight"
    for anchor in ("file-9", "file-16", "build-2", "attempt-1-file-2"):
        browser.run(f"location.assign('#{anchor}')")
        assert browser.driver.find_elements("css selector", f"details[open]#{anchor}, details[open] #{anchor}")
        top = browser.run(f"Math.round(document.getElementById('{anchor}').getBoundingClientRect().top)")
        assert top == 0 or (browser.run(at_end) and 0 <= top < 900), anchor


@pytest.mark.slow
@pytest.mark.parametrize("link", [True, False])
def test_the_output_opens_at_the_error(browser: Browser, long_page: Path, link: bool):  # noqa: FBT001 - a table's column
    box = "document.querySelector('#attempt-{} pre.output')"
    if link:
        browser.driver.find_element("link text", "Full output").click()
    else:
        browser.driver.find_element("css selector", "#attempt-1 > summary").click()
    for number in (1, 2) if not link else (2,):
        found = box.format(number)
        assert browser.run(f"{found}.clientHeight / parseFloat(getComputedStyle({found}).lineHeight)") == pytest.approx(
            30, abs=1.5
        )
        places = [f"{found}{line}.getBoundingClientRect()" for line in (".querySelector('.error')", "")]
        assert browser.run(f"{places[1]}.top < {places[0]}.top && {places[0]}.bottom < {places[1]}.bottom")
    assert browser.run("document.querySelector('#attempt-2 .error').dataset.n") == "200001"


@pytest.mark.sweep
def test_the_start_of_a_run_has_its_time_zone(browser: Browser, long_page: Path):
    assert re.search("(?!AM|PM)[A-Z]{3,}[^ ]*$", browser.run("document.querySelector('time').textContent"))


@pytest.mark.sweep
@pytest.mark.parametrize("which", ["page", "long_page"])
def test_nothing_sticks_out(browser: Browser, which: str, request: pytest.FixtureRequest, whole: bool):  # noqa: FBT001 - a fixture
    request.getfixturevalue(which)
    browser.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    outside = (
        "[...document.querySelectorAll('body *')].filter(one => one.getBoundingClientRect().right > innerWidth + 1)"
    )
    for width in (360, 400, 768, 1400, 2560) if whole else (360, 1400):
        browser.look(width)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run(f"{outside}.map(one => one.outerHTML.slice(0, 80))") == []


def test_sides_stand_beside_each_other_or_on_narrow_screens_above(browser: Browser, page: Path):
    places = """(() => {
        const change = document.querySelector("#file-2 .x");
        return [...change.querySelectorAll("td:not(.e)")].map((cell) => {
            const { x, y } = cell.getBoundingClientRect();
            return [cell.cellIndex, Math.round(x), Math.round(y)];
        });
    })()"""
    wide = browser.run(places)
    assert [place[0] for place in wide] == [0, 1, 0, 1, 1, 1]
    assert wide[0][1] < wide[1][1]
    assert wide[0][2] == wide[1][2]
    browser.look(360)
    narrow = sorted(browser.run(places), key=lambda place: place[2])
    assert [place[0] for place in narrow] == [0, 0, 1, 1, 1, 1]
    assert len({place[1] for place in narrow}) == 1


def test_the_lines_of_a_deleted_file_look_deleted(browser: Browser, page: Path):
    cell = "document.querySelector('.diff.gone td[data-n]')"
    assert browser.run(f"getComputedStyle({cell}).backgroundColor") == "rgb(255, 235, 233)"
    assert browser.run(f"getComputedStyle({cell}, '::after').content") == '"\u2212"'


def test_dark_and_light_follow_the_reader_with_distinct_surfaces(browser: Browser, page: Path):
    surfaces = (
        "['body', 'header', '.file summary'].map(one => getComputedStyle(document.querySelector(one)).backgroundColor)"
    )
    seen = []
    for scheme in ("light", "dark"):
        browser.look(1400, scheme)
        seen += browser.run(surfaces)
    assert seen[0] == "rgb(255, 255, 255)"
    assert seen[3] == "rgb(13, 17, 23)"
    assert len(set(seen)) == 6


@pytest.mark.slow
def test_a_failed_build_is_red_in_the_chart(browser: Browser, long_page: Path):
    fill = "getComputedStyle(document.querySelector('.chart .bar-build-failed')).fill"
    assert browser.run(fill) == "rgb(207, 34, 46)"


@pytest.mark.slow
def test_print_is_light_unfolded_and_without_controls(browser: Browser, page: Path):
    browser.look(1400, "dark", "print")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    pdf = base64.b64decode(browser.command("Page.printToPDF", printBackground=True)["data"])
    assert pdf.startswith(b"%PDF")
    folded = browser.run("document.querySelectorAll('details:not([open])').length")
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.run("document.querySelectorAll('details:not([open])').length") == 0
    browser.run("window.dispatchEvent(new Event('afterprint'))")
    assert browser.run("document.querySelectorAll('details:not([open])').length") == folded > 0


def test_everything_has_a_name_for_those_who_do_not_see_it(browser: Browser, page: Path):
    nodes = browser.command("Accessibility.getFullAXTree")["nodes"]
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"] and "role" in node
    ]
    roles = {role for role, _ in named}
    assert {"banner", "navigation", "main", "contentinfo", "heading", "table", "region", "checkbox"} <= roles
    unnamed = [role for role, name in named if role in ("link", "button", "image", "region", "checkbox") and not name]
    assert unnamed == []
    levels = browser.run("[...document.querySelectorAll('main h2, main h3, h1')].map(head => head.tagName)")
    assert levels[0] == "H1"
    assert browser.run("document.documentElement.lang") == "en"


def test_it_can_be_read_without_its_script(browser: Browser, page: Path):
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page)
    finally:
        browser.command("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.run("document.querySelectorAll('#changes details.file[open]').length") == 3
    hidden = "[...document.querySelectorAll('button, .viewed')].map(one => one.checkVisibility())"
    assert set(browser.run(hidden)) == {False}


@pytest.mark.slow
def test_the_page_of_a_fleet_sorts_and_filters_and_fits_every_width(browser: Browser, tmp_path: Path):
    page = write_fleet(tmp_path / "out") / "index.html"
    shown = "[...document.querySelectorAll('.tasks tbody tr:not([hidden])')].map(row => row.cells[1].innerText.split('\\n')[0].trim())"
    browser.look(1280)
    browser.open(page)
    assert browser.run(shown) == ["b", "c", "d", "a", "e"]
    for click, order in (("Cost", "cdaeb"), ("Cost", "beacd"), ("Time", "cdeba"), ("Task", "abcde")):
        browser.driver.find_element("xpath", f"//th/button[text()='{click}']").click()
        assert "".join(browser.run(shown)) == order
    for word, tasks in (("build failed", "b"), ("not set up", "cd"), ("green", "ae"), ("", "abcde")):
        browser.driver.find_element("css selector", f"#results button[data-word='{word}']").click()
        assert "".join(browser.run(shown)) == tasks
    for width in (400, 1280, 2560):
        browser.look(width)
        assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("typeof window.hacked") == "undefined"
    assert [entry["message"] for entry in browser.driver.get_log("browser")] == []
    assert [url for url in browser.requests() if not url.startswith(("data:", "chrome://"))] == [page.as_uri()]
