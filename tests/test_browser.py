"""Open the pages of built books in headless Chromium with the network blocked.

Skipped where Chromium or its driver is not installed (Debian: `chromium` and `chromium-driver`).
The repository's own book is opened too, where `make book` has built it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import small_book
from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.support.wait import WebDriverWait as Wait

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
DRIVER = shutil.which("chromedriver")
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--window-size=1300,1000", "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip
PATIENCE = 240  # seconds for one step; it takes under one on an idle machine
LOCAL = ("file:", "data:", "blob:", "about:", "chrome:", "chrome-untrusted:")
OWN_BOOK = small_book.ROOT / "_build" / "html"
BUILT = sorted((OWN_BOOK / "book").rglob("*.html"))
MOVED = {page: to[1] for page in BUILT if (to := re.search('url=([^"]+)"', page.read_text()[:400]))}
"""Old addresses, and where each leads."""
OWN_PAGES = [page for page in BUILT if page not in MOVED]

# Resolves once charts and formulas have been drawn, with what a reader would miss. A folded chart,
# or one in another tab, is drawn when a reader opens it; so here everything is opened. Where the
# first chart stands is measured before that. A chart that is not drawn in time is reported.
LOOK = """
const done = arguments[arguments.length - 1];
const deadline = Date.now() + 120000;
let first = null;
const size = (element) => {
  const box = element ? element.getBoundingClientRect() : { width: 0, height: 0 };
  return Math.round(Math.min(box.width, box.height));
};
const report = () => done({
  first,
  charts: [...document.querySelectorAll(".mnmt-chart")].map((chart) => ({
    drawn: size(chart.querySelector(".mnmt-live svg, .mnmt-live canvas")),
    marks: chart.querySelectorAll(".mnmt-live svg path, .mnmt-live svg text").length,
    still: chart.querySelector(".mnmt-static").naturalWidth,
    hidden: chart.querySelector(".mnmt-static").hidden,
  })),
  formulas: [...document.querySelectorAll(".math")].map((formula) => ({
    drawn: size(formula.querySelector("mjx-container svg")),
    error: formula.querySelector("mjx-merror, [data-mml-node=merror]") !== null,
    text: formula.textContent.slice(0, 40),
  })),
});
const wait = (ready, then) => {
  if (ready() || Date.now() > deadline) then();
  else setTimeout(() => wait(ready, then), 20);
};
const maths = () => !document.querySelector(".math") || (window.MathJax && MathJax.startup);
const loaded = () => document.documentElement.dataset.mnmtCharts && maths();
const each = (selector, act) => document.querySelectorAll(selector).forEach(act);
const drawn = () => document.querySelectorAll(".mnmt-chart:not([data-drawn])").length === 0;
const open = () => {
  const shown = [...document.querySelectorAll(".mnmt-chart")].filter(
    (chart) => chart.checkVisibility() && !chart.closest("details:not([open])"),
  );
  first = shown.length ? shown[0].getBoundingClientRect().top + window.scrollY : 0;
  each("article details:not(.vega-embed > details)", (fold) => (fold.open = true));
  each("article .toggle-hidden", (fold) => fold.classList.remove("toggle-hidden"));
  each(".sd-tab-content", (tab) => (tab.style.display = "block"));
  wait(drawn, () => Promise.resolve(maths().promise).then(report));
};
wait(loaded, () => Promise.resolve(maths().promise).then(open));
"""


def start(profile: Path) -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in (*OPTIONS, f"--user-data-dir={profile}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    driver.set_script_timeout(PATIENCE)
    driver.command_executor.client_config.timeout = PATIENCE
    return driver


@pytest.fixture(scope="module")
def started() -> Iterator[list[webdriver.Chrome]]:
    drivers: list[webdriver.Chrome] = []
    yield drivers
    for driver in drivers:
        driver.quit()


@pytest.fixture
def browser(
    started: list[webdriver.Chrome], tmp_path_factory: pytest.TempPathFactory
) -> webdriver.Chrome:
    """One Chromium for all tests. A tab that crashed in one test is not left to the next."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no Chromium with chromedriver found: pages were NOT opened in a browser")
    try:
        started[-1].execute_script("return 0")
    except (IndexError, WebDriverException):
        started.append(start(tmp_path_factory.mktemp("profile")))
    return started[-1]


@pytest.fixture(scope="session")
def first_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_book.build(tmp_path_factory.getbasetemp() / "small-book")


def requests(browser: webdriver.Chrome) -> list[str]:
    """The addresses asked for since the last call."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]


def open_and_check(browser: webdriver.Chrome, page: Path) -> dict:
    """Open a page; every chart and formula must be drawn, and no request leave the machine."""
    assert page.is_file()
    requests(browser), browser.get_log("browser")
    browser.get(page.as_uri())
    seen = browser.execute_async_script(LOOK)
    for chart in seen["charts"]:
        assert chart["drawn"] > 50 and chart["marks"] > 3, chart
        assert chart["still"] > 50 and chart["hidden"], chart
    for formula in seen["formulas"]:
        assert formula["drawn"] > 0 and not formula["error"], formula
    asked = requests(browser)
    assert page.as_uri() in asked
    assert [url for url in asked if not url.startswith(LOCAL)] == []
    severe = [
        entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"
    ]
    assert severe == []
    return seen


def test_charts_and_formulas_are_drawn_offline(browser: webdriver.Chrome, first_page: Path) -> None:
    assert len(open_and_check(browser, first_page)["formulas"]) == 1
    seen = open_and_check(browser, first_page.with_name("chart.html"))
    assert (len(seen["charts"]), len(seen["formulas"])) == (1, 3)
    open_and_check(browser, first_page.with_name("system.html"))


def test_the_search_works_offline(browser: webdriver.Chrome, first_page: Path) -> None:
    browser.get(f"{(first_page.parents[1] / 'search.html').as_uri()}?q=law")
    hits = "#search-results li > a"
    Wait(browser, PATIENCE).until(lambda _: browser.find_elements("css selector", hits))
    pages = [each.get_attribute("href") for each in browser.find_elements("css selector", hits)]
    assert any("/book/first.html" in page for page in pages)


def test_the_print_shows_the_still_chart(browser: webdriver.Chrome, first_page: Path) -> None:
    open_and_check(browser, first_page.with_name("chart.html"))
    live, still = (
        browser.find_element("css selector", f".mnmt-{name}") for name in ("live", "static")
    )
    assert live.is_displayed() and not still.is_displayed()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert still.is_displayed() and not live.is_displayed()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_without_scripts_the_still_chart_shows(browser: webdriver.Chrome, first_page: Path) -> None:
    chart = first_page.with_name("chart.html").read_text(encoding="utf-8")
    bare = first_page.with_name("bare.html")
    bare.write_text(re.sub(r"<script.*?</script>", "", chart, flags=re.DOTALL), encoding="utf-8")
    browser.get(bare.as_uri())
    live, still = (
        browser.find_element("css selector", f".mnmt-{name}") for name in ("live", "static")
    )
    Wait(browser, PATIENCE).until(lambda _: still.is_displayed())  # once the picture is decoded
    assert not live.is_displayed()


def test_a_table_is_sorted_by_its_heads(browser: webdriver.Chrome, first_page: Path) -> None:
    open_and_check(browser, first_page.with_name("chart.html"))
    heads = browser.find_elements("css selector", ".mnmt-table th button")

    def column(index: int) -> list[str]:
        cells = browser.find_elements("css selector", f".mnmt-table td:nth-child({index})")
        return [cell.text for cell in cells]

    assert column(2) == ["20", "1,000", "3"]
    heads[1].click()
    assert column(2) == ["3", "20", "1,000"]
    heads[1].click()
    assert column(2) == ["1,000", "20", "3"]
    heads[2].click()
    assert column(3) == ["-1", "0.5", "–"]
    heads[2].click()
    assert column(3) == ["0.5", "-1", "–"]  # what is missing stays last
    heads[3].click()
    assert column(4) == ["-10.0*", "-0.8(*)", "+0.0"]  # by number, whatever its mark


NO_MOTION = """
const style = document.createElement("style");
const still = "transition: none !important; animation: none !important;";
style.textContent = `*, ::before, ::after { ${still} }`;
document.head.append(style);
"""
NARROW = """
const small = [...document.querySelectorAll(".mnmt-live svg text")]
  .filter((text) => text.textContent.trim() && text.closest("svg").clientWidth)
  .map((text) => {
    const { a, b } = text.getScreenCTM(); // text of an axis may be turned
    return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
  });
return {width: document.documentElement.scrollWidth, smallest: Math.min(99, ...small)};
"""
# Formulas, charts and tables that a box cuts off and that cannot be scrolled; folds are open.
CUT = """
document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
const folded = document.querySelectorAll(".toggle-hidden");
folded.forEach((fold) => fold.classList.remove("toggle-hidden"));
const frame = (element) => {
  for (let box = element.parentElement; box; box = box.parentElement) {
    const how = getComputedStyle(box).overflowX;
    if (how !== "visible") return how === "hidden" ? box.getBoundingClientRect().right : Infinity;
  }
  return Infinity;
};
return [...document.querySelectorAll("mjx-container, .mnmt-live svg, table")]
  .filter((element) => element.getBoundingClientRect().right > frame(element) + 1)
  .map((element) => element.textContent.slice(0, 80));
"""
# What a page says, without code and data.
PROSE = """
const page = document.querySelector("article").cloneNode(true);
page.querySelectorAll("pre, script, style, .sig").forEach((code) => code.remove());
return page.textContent;
"""
PHONE = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}


def serious_faults(browser: webdriver.Chrome) -> list[str]:
    """What axe-core finds that is serious: rule, and the first element."""
    violations = Axe().run(browser, None, {"resultTypes": ["violations"]})["violations"]
    return [
        f"{fault['id']}: {fault['nodes'][0]['html'][:200]}"
        for fault in violations
        if fault["impact"] in ("serious", "critical")
    ]


@pytest.mark.skipif(not OWN_PAGES, reason="the book is not built: run `make book` first")
@pytest.mark.parametrize("page", OWN_PAGES, ids=lambda page: page.relative_to(OWN_BOOK).as_posix())
def test_a_page_of_the_book_is_drawn_offline_and_can_be_read(
    browser: webdriver.Chrome, page: Path
) -> None:
    assert page.stat().st_size < 1_500_000
    seen = open_and_check(browser, page)
    # What a page displays where it has nothing to say: the name of an object, for empty Markdown.
    prose = browser.execute_script(PROSE)
    assert "IPython.core.display" not in prose
    assert not re.search(r"\bnan\b", prose)
    if "recipes" not in page.parts:  # which begin with the commands
        assert seen["first"] < 2000  # on the first or second screen
    browser.execute_script(NO_MOTION)  # else the colours are judged half-way
    for theme in ("light", "dark"):
        browser.execute_script(f"document.documentElement.dataset.theme = '{theme}'")
        assert serious_faults(browser) == [], theme
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    try:
        open_and_check(browser, page)
        narrow = browser.execute_script(NARROW)
        cut = browser.execute_script(CUT)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert narrow["width"] <= PHONE["width"] and narrow["smallest"] >= 10, narrow
    assert cut == []


@pytest.mark.skipif(not OWN_PAGES, reason="the book is not built: run `make book` first")
def test_old_addresses_lead_to_pages() -> None:
    assert MOVED
    assert [page for page, to in MOVED.items() if not (page.parent / to).exists()] == []


# Moves the slider of the importance to its end, and resolves with what the chart then says.
SLIDE = """
const [name, done] = arguments;
const slider = document.querySelector(`.mnmt-live input[name=${name}]`);
slider.value = slider.max;
slider.dispatchEvent(new Event("input"));
setTimeout(() => done(document.querySelector(".mnmt-live svg").textContent), 500);
"""


@pytest.mark.skipif(not OWN_PAGES, reason="the book is not built: run `make book` first")
def test_the_planner_follows_its_sliders(browser: webdriver.Chrome) -> None:
    open_and_check(browser, OWN_BOOK / "book" / "paper-a" / "planner.html")
    before = browser.find_element("css selector", ".mnmt-live svg").text
    after = browser.execute_async_script(SLIDE, "importance")
    assert "best 0." in before and "best 0.9" in after
    assert "(extrapolated)" in browser.execute_async_script(SLIDE, "size")
