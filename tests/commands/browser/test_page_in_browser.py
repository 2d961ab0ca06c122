"""The page in a real browser: Chromium without a window, from file://, with a hostile run on it."""

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import Run
from page_runs import EVIL, IMAGE, NAME, embellish, hostile_run, write_page

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

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def look(self, width: int, scheme: str = "light", media: str = "") -> None:
        """Give the page a width, a colour scheme and a medium."""
        self.command(
            "Emulation.setEmulatedMedia",
            media=media,
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)

    @property
    def focused(self) -> str:
        return self.run("document.activeElement.closest('details') ? document.activeElement.closest('details').id : ''")

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
    if not MADE:
        folder = hostile_run(project_folder, run_code_commit)
        embellish(folder, model=f"m{EVIL}", message=f"It passes {IMAGE}", warnings=[EVIL], root=f"/{IMAGE}")
        target = tmp_path_factory.mktemp("page") / 'a "page" <b>%23#.html'
        MADE["page"] = write_page(project_folder, target, run_code_commit)
    browser.look(1400)
    browser.open(MADE["page"])
    return MADE["page"]


def test_it_opens_without_a_complaint_and_asks_the_network_for_nothing(browser: Browser, page: Path):
    assert [entry["message"] for entry in browser.driver.get_log("browser")] == []
    assert [url for url in browser.requests() if not url.startswith("data:")] == [page.as_uri()]
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


def test_keys_go_from_file_to_file_and_fold_them(browser: Browser, page: Path):
    files = browser.run("[...document.querySelectorAll('details.file')].map(file => file.id)")
    assert len(files) == 7
    browser.press("j")
    assert browser.focused == files[0]
    browser.press("j", "j")
    assert browser.focused == files[2]
    top = browser.run("document.activeElement.getBoundingClientRect().top")
    assert browser.run("document.querySelector('nav').getBoundingClientRect().bottom") - 1 <= top < 300
    browser.press("k")
    assert browser.focused == files[1]
    is_open = f"document.getElementById('{files[1]}').open"
    browser.press("o")
    assert browser.run(is_open) is False
    browser.press("o")
    assert browser.run(is_open) is True
    browser.press("O")
    assert browser.run("document.querySelectorAll('details.file[open]').length") == 0
    browser.press("O")
    assert browser.run("document.querySelectorAll('details.file[open]').length") == 7
    browser.press(*"jjjjjjjjj")
    assert browser.focused == files[-1]


def test_keys_go_from_section_to_section(browser: Browser, page: Path):
    browser.press("n", "n")
    first = browser.run("document.activeElement.id")
    browser.press("n")
    assert browser.run("document.activeElement.id") != first
    browser.press("p")
    assert browser.run("document.activeElement.id") == first


def test_help_opens_closes_and_turns_the_keys_off(browser: Browser, page: Path):
    from selenium.webdriver.common.keys import Keys

    shown = "document.getElementById('help').open"
    browser.press("?")
    assert browser.run(shown) is True
    browser.press("j")
    assert browser.focused == ""
    browser.press(Keys.ESCAPE)
    assert browser.run(shown) is False
    browser.driver.find_element("id", "keys").click()
    assert browser.run(shown) is True
    browser.driver.find_element("id", "keys-on").click()
    browser.press(Keys.ESCAPE, "j")
    assert browser.focused == ""


def test_what_has_the_focus_can_be_seen(browser: Browser, page: Path):
    browser.press("j")
    assert browser.run("getComputedStyle(document.activeElement).outlineWidth") == "3px"
    assert browser.run("getComputedStyle(document.activeElement).outlineOffset") == "-3px"  # its file clips it


def test_a_link_unfolds_its_file(browser: Browser, page: Path):
    browser.press("O")
    browser.run("document.querySelector('.index a').click()")
    browser.driver.implicitly_wait(1)
    assert browser.driver.find_elements("css selector", "details#result-file-1[open]")


@pytest.mark.parametrize("width", [360, 768, 1400, 2560])
def test_nothing_sticks_out(browser: Browser, page: Path, width: int):
    browser.look(width)
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_sides_stand_beside_each_other_or_on_narrow_screens_above(browser: Browser, page: Path):
    places = """(() => {
        const change = document.querySelector("#attempt-2-file-2 .x");
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


def test_dark_and_light_follow_the_reader(browser: Browser, page: Path):
    grounds = []
    for scheme in ("light", "dark"):
        browser.look(1400, scheme)
        grounds.append(browser.run("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(255, 255, 255)", "rgb(13, 17, 23)"]


def test_print_is_light_unfolded_and_without_controls(browser: Browser, page: Path):
    browser.look(1400, "dark", "print")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    browser.press("O")
    pdf = base64.b64decode(browser.command("Page.printToPDF", printBackground=True)["data"])
    assert pdf.startswith(b"%PDF")
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.run("document.querySelectorAll('details:not([open])').length") == 0
    browser.run("window.dispatchEvent(new Event('afterprint'))")
    assert browser.run("document.querySelectorAll('details.file[open]').length") == 0


def test_everything_has_a_name_for_those_who_do_not_see_it(browser: Browser, page: Path):
    nodes = browser.command("Accessibility.getFullAXTree")["nodes"]
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"] and "role" in node
    ]
    roles = {role for role, _ in named}
    assert {"banner", "navigation", "main", "contentinfo", "heading", "table", "region"} <= roles
    unnamed = [role for role, name in named if role in ("link", "button", "image", "region", "dialog") and not name]
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
    assert browser.run("document.querySelectorAll('details.file[open]').length") == 7
    assert browser.run("document.getElementById('keys').hidden") is True
