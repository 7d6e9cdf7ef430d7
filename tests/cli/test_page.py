"""The page of `lcc explain --html`, in a real browser: what it shows, and that it can be used by keyboard."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.browser import chromium
from cli.cli_world import World
from cli.report_world import ONE_OF_EACH, large_report, pair, read_decision, report_of
from cli.rounds_session import cost_by_hand, saved_by_hand, write_session
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from lcc.contract.decision import Keep
from lcc.contract.reasons import Reason
from lcc.explain.html import FATES, page
from lcc.sessions.spent import read_savings, savings_of

HOSTILE = '</script><script>document.title="taken"</script><img src=x onerror=document.title="taken">&quot;<!--'


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def show(browser: webdriver.Chrome, tmp_path: Path) -> Any:
    def open_page(report: dict[str, Any]) -> webdriver.Chrome:
        file = tmp_path / "page.html"
        file.write_text(page(report))
        browser.get("about:blank")
        for log in ("browser", "performance"):  # what was logged before is none of this page's
            browser.get_log(log)
        browser.get(file.as_uri())
        return browser

    return open_page


def text_of(browser: webdriver.Chrome, element_id: str) -> str:
    return browser.find_element(By.ID, element_id).text


def pixels(png: bytes) -> set[bytes]:
    """The colours of a screenshot, four bytes (or three) each; enough of PNG for what Chromium writes."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    position, packed, width, channels = 8, b"", 0, 4
    while position < len(png):
        (size,) = struct.unpack(">I", png[position : position + 4])
        kind, body = png[position + 4 : position + 8], png[position + 8 : position + 8 + size]
        if kind == b"IHDR":
            width, channels = struct.unpack(">I", body[:4])[0], {2: 3, 6: 4}[body[9]]
        elif kind == b"IDAT":
            packed += body
        position += size + 12
    raw, row = zlib.decompress(packed), width * channels
    above, seen = bytearray(row), set()
    for start in range(0, len(raw), row + 1):
        line = bytearray(raw[start + 1 : start + 1 + row])
        _unfilter(raw[start], line, above, channels)
        seen.update(bytes(line[at : at + channels]) for at in range(0, row, channels * 3))
        above = line
    return seen


def _unfilter(kind: int, line: bytearray, above: bytearray, step: int) -> None:
    for at in range(len(line)):
        left = line[at - step] if at >= step else 0
        corner = above[at - step] if at >= step else 0
        guess = {0: 0, 1: left, 2: above[at], 3: (left + above[at]) // 2}.get(kind)
        if guess is None:
            estimate = left + above[at] - corner
            guess = min((left, above[at], corner), key=lambda value: abs(estimate - value))
        line[at] = (line[at] + guess) & 255


def test_the_page_is_written_and_private(world: World) -> None:
    """--html writes one file; the report may be on standard input; - is standard output."""
    (world.folder / "report.json").write_text(json.dumps(report_of(ONE_OF_EACH)))

    ran = world.lcc("explain", "report.json", "--html", "page.html")
    piped = world.lcc("explain", "-", "--html", "-", stdin=(world.folder / "report.json").read_bytes())

    assert ran.code == piped.code == 0, ran.err
    assert (world.folder / "page.html").stat().st_mode & 0o777 == 0o600
    assert piped.out == (world.folder / "page.html").read_bytes()
    assert world.lcc("explain", "report.json", "--html", "report.json").code == 2


def test_it_shows_what_was_removed(show: Any) -> None:
    """The figures, the goal, a chip for each fate, a row for each tool, every reason in words."""
    browser = show(report_of(ONE_OF_EACH))

    assert text_of(browser, "goal") == "mend the voucher totals"
    assert "73.8 %" in text_of(browser, "tiles")
    assert "7,464" in text_of(browser, "tiles")
    chips = browser.find_elements(By.CSS_SELECTOR, "[data-fate]")
    assert [chip.get_attribute("data-fate") for chip in chips] == list(FATES)
    assert "mcp__tracker__get" in text_of(browser, "bytool")
    assert "never touched" in text_of(browser, "bytool")
    assert "the file on disk held exactly this output" in text_of(browser, "went")
    assert "it is the latest error" in text_of(browser, "stayed")
    assert browser.get_log("browser") == []


def test_the_timeline_is_drawn_in_the_colours_of_the_fates(show: Any) -> None:
    """Looked up in the picture itself: solid bars for what stays, one colour a fate."""
    browser = show(report_of(ONE_OF_EACH))
    browser.find_element(By.ID, "track").send_keys(Keys.HOME)

    seen = pixels(browser.find_element(By.ID, "bars").screenshot_as_png)

    for fate in ("pinned", "kept", "disk", "stash"):
        name = f"--{fate}"
        value = browser.execute_script(
            "return getComputedStyle(document.documentElement).getPropertyValue(arguments[0]).trim()", name
        )
        wanted = bytes.fromhex(value.lstrip("#"))
        assert any(colour[:3] == wanted for colour in seen), fate


def test_the_search_filters_bars_and_list(show: Any) -> None:
    """By tool, path, command, id, note; all words must fit; Esc clears."""
    browser = show(report_of(ONE_OF_EACH))
    body = browser.find_element(By.TAG_NAME, "body")

    body.send_keys("/")
    browser.switch_to.active_element.send_keys("read MAIL")

    assert text_of(browser, "found").startswith("2 of 9 calls")
    assert len(browser.find_elements(By.CSS_SELECTOR, "#rows .row")) == 2
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert text_of(browser, "found") == ""
    assert len(browser.find_elements(By.CSS_SELECTOR, "#rows .row")) == 9


def test_chips_reasons_and_tools_filter(show: Any) -> None:
    """Each narrows the list; a second click takes it back."""
    browser = show(report_of(ONE_OF_EACH))

    browser.find_element(By.CSS_SELECTOR, "[data-fate=stash]").click()
    assert [row.text.split("\n")[1] for row in browser.find_elements(By.CSS_SELECTOR, "#rows .row")] == ["Bash"]
    browser.find_element(By.CSS_SELECTOR, "[data-fate=stash]").click()
    browser.find_element(By.CSS_SELECTOR, "#went button").click()
    assert "1 of 9" in text_of(browser, "found")
    browser.find_element(By.ID, "clear").click()
    browser.find_element(By.CSS_SELECTOR, "#bytool button").click()
    assert "3 of 9" in text_of(browser, "found")


def test_a_filter_that_nothing_fits_says_so(show: Any) -> None:
    """And offers the way out."""
    browser = show(report_of(ONE_OF_EACH))
    browser.find_element(By.ID, "search").send_keys("no such thing")

    assert "No call fits" in text_of(browser, "none")
    browser.find_element(By.CSS_SELECTOR, "[data-clear]").click()
    assert len(browser.find_elements(By.CSS_SELECTOR, "#rows .row")) == 9


def test_the_timeline_is_used_by_keyboard(show: Any) -> None:
    """Arrows move, Shift jumps to removals, the detail and the spoken value follow."""
    browser = show(report_of(ONE_OF_EACH))
    track = browser.find_element(By.ID, "track")

    track.send_keys(Keys.ARROW_RIGHT)
    assert "1 · Glob" in text_of(browser, "detail")
    track.send_keys(Keys.SHIFT + Keys.ARROW_RIGHT)
    detail = text_of(browser, "detail")
    assert "2 · Read" in detail
    assert "[removed: re-read src/cart.py to recover; content verified on disk at compaction time]" in detail
    assert "read src/cart.py" in detail
    assert track.get_attribute("aria-valuenow") == "2"
    assert "pointer to a file" in (track.get_attribute("aria-valuetext") or "")
    track.send_keys(Keys.END)
    assert "9 · Bash" in text_of(browser, "detail")
    track.send_keys(Keys.ARROW_LEFT)
    assert "8 · Read" in text_of(browser, "detail")


def test_a_pointer_leads_to_the_result_that_it_points_at(show: Any) -> None:
    """One click from the deduped call to the one that was kept."""
    browser = show(report_of(ONE_OF_EACH))
    browser.find_element(By.ID, "search").send_keys("toolu_3")
    browser.find_element(By.CSS_SELECTOR, "#rows .row").click()

    browser.find_element(By.CSS_SELECTOR, "#detail .link").click()

    assert "8 · Read" in text_of(browser, "detail")


def test_the_list_is_used_by_keyboard(show: Any) -> None:
    """Largest removals first; arrows, End and Home; the row in question is marked."""
    browser = show(report_of(ONE_OF_EACH))
    rows = browser.find_element(By.ID, "list")

    rows.send_keys(Keys.ARROW_DOWN)
    assert "2 · Read" in text_of(browser, "detail")
    rows.send_keys(Keys.ARROW_DOWN)
    selected = browser.find_element(By.CSS_SELECTOR, "#rows [aria-selected=true]")
    assert selected.get_attribute("id") == rows.get_attribute("aria-activedescendant") == "row-2"
    rows.send_keys(Keys.END)
    rows.send_keys(Keys.HOME)
    assert "2 · Read" in text_of(browser, "detail")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_reader_s_scheme_and_can_be_changed(show: Any, browser: webdriver.Chrome, scheme: str) -> None:
    """Dark and light; text and ground stand far enough apart in both."""
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    show(report_of(ONE_OF_EACH))
    theme = "return document.documentElement.dataset.theme"

    assert browser.execute_script(theme) == scheme
    assert contrast(browser, "body", "body") > 12
    assert contrast(browser, "#from", "body") > 4.5
    browser.find_element(By.ID, "theme").click()
    assert browser.execute_script(theme) != scheme
    assert contrast(browser, "#from", "body") > 4.5


def contrast(browser: webdriver.Chrome, text: str, ground: str) -> float:
    """The contrast ratio of WCAG between a text's colour and a ground's."""
    style = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    shades = []
    for selector, name in ((text, "color"), (ground, "backgroundColor")):
        written = browser.execute_script(style, selector, name)
        parts = [int(part) / 255 for part in written[written.index("(") + 1 : -1].split(",")[:3]]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        shades.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(shades) + 0.05) / (min(shades) + 0.05)


def test_two_thousand_calls_stay_smooth(show: Any) -> None:
    """Only rows in sight are in the page, a key or a filter is handled within a frame or few, and both ends show."""
    report = large_report(2000)
    browser = show(report)
    track = browser.find_element(By.ID, "track")

    assert len(browser.find_elements(By.CSS_SELECTOR, "#rows .row")) < 40
    assert browser.find_element(By.ID, "overview").is_displayed()
    track.send_keys(Keys.END)
    assert "2,000 · " in text_of(browser, "detail")
    assert browser.execute_script("return arguments[0].scrollLeft", track) > 0
    nodes = browser.execute_script("return document.getElementsByTagName('*').length")
    assert nodes < 1500
    browser.find_element(By.ID, "search").send_keys("pytest")
    expected = sum("pytest" in str(record["subject"]) for record in report["decisions"])
    assert text_of(browser, "found").startswith(f"{expected} of 2,000 calls")
    assert browser.get_log("browser") == []


def test_it_fits_a_narrow_window(show: Any, browser: webdriver.Chrome) -> None:
    """Nothing stands out at the side."""
    size = browser.get_window_size()
    browser.set_window_size(500, 900)
    try:
        show(large_report(300))
        wide = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    finally:
        browser.set_window_size(size["width"], size["height"])

    assert wide[0] <= wide[1]


def test_nothing_in_a_report_is_taken_as_markup(show: Any) -> None:
    """Hostile names of tools, files, reasons and goals are shown as they are."""
    found = pair(HOSTILE, HOSTILE, {"command": HOSTILE}, "x" * 3000)
    report = report_of(
        [(found, read_decision(HOSTILE)), (pair("t2", "toString", {}, "y" * 50), Keep(Reason(HOSTILE, "words")))],
        warnings=[HOSTILE],
        workspace_root=HOSTILE,
    )
    report["objective"] = HOSTILE
    browser = show(report)
    browser.find_element(By.ID, "track").send_keys(Keys.HOME)

    assert browser.title.startswith("lcc: </script>")
    assert HOSTILE in text_of(browser, "goal")
    assert HOSTILE in text_of(browser, "detail")
    assert browser.execute_script("return document.scripts.length") == 2
    assert browser.execute_script("return document.images.length") == 0
    assert browser.get_log("browser") == []


def test_nothing_is_loaded_from_anywhere(show: Any) -> None:
    """The browser asks for the file itself and for nothing else, and the page's own policy forbids the rest."""
    browser = show(report_of(ONE_OF_EACH))
    browser.find_element(By.ID, "track").send_keys(Keys.END)
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}

    assert asked == {browser.current_url}
    policy = browser.find_element(By.CSS_SELECTOR, "meta[http-equiv]").get_attribute("content")
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_a_session_without_calls_has_a_page(show: Any) -> None:
    """Nothing to draw is no fault."""
    browser = show(report_of([]))
    browser.find_element(By.ID, "track").send_keys(Keys.ARROW_RIGHT)

    assert "0 %" in text_of(browser, "tiles")
    assert "Nothing." in text_of(browser, "went")
    assert browser.get_log("browser") == []


def test_the_rounds_of_its_session_are_drawn(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """The context over time with a line at the compaction, and what that freed and saved, in its own light and dark."""
    found = read_savings(write_session(tmp_path / "session.jsonl"))
    file = tmp_path / "page.html"
    file.write_text(page(report_of([]), found))
    browser.get(file.as_uri())

    chart = browser.find_element(By.ID, "rounds-chart")
    assert len(chart.find_elements(By.CLASS_NAME, "mark")) == 1
    assert chart.size["height"] > 100
    assert "60,000 (60.0 %)" in text_of(browser, "rounds-table")
    assert "40,000 → 46,000" in text_of(browser, "rounds-table")
    assert "about 60 requests" in text_of(browser, "rounds-next")
    assert f"= {round(cost_by_hand()):,} tokens" in text_of(browser, "rounds-cost")
    assert f"Saved: about {round(saved_by_hand()):,}" in text_of(browser, "rounds-cost")
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def test_without_its_session_the_page_has_no_rounds(show: Any) -> None:
    """The report alone says nothing of requests."""
    assert not show(report_of([])).find_element(By.ID, "rounds").is_displayed()


def test_explain_finds_the_reports_session(world: World) -> None:
    """Where Claude Code has it; another may be named, and one that is not there is bad input."""
    world.compact("-o", "out.jsonl", "-r", "report.json")
    report = json.loads((world.folder / "report.json").read_text())
    kept = world.folder / "home" / ".claude" / "projects" / "-somewhere"
    write_session(kept / f"{report['session_id']}.jsonl")
    write_session(world.folder / "named.jsonl")

    found = world.lcc("explain", "report.json", "--html", "-").out
    named = world.lcc("explain", "report.json", "--html", "-", "--session", "named.jsonl").out
    missing = world.lcc("explain", "report.json", "--html", "-", "--session", "nowhere.jsonl")

    assert b'"marks":[10.0]' in found
    assert found == named
    assert (missing.code, "nowhere.jsonl: no such file" in missing.err) == (2, True)


@pytest.mark.parametrize("name", ["../secret", "a/b", "", ".", "x" * 200])
def test_a_reports_session_id_is_no_path(world: World, name: str) -> None:
    """A report may come from anywhere; an id that is no id is looked up nowhere."""
    kept = world.folder / "home" / ".claude" / "projects"
    write_session(kept / "secret.jsonl")
    (kept / "-p").mkdir()

    assert savings_of(name, world.environment()) is None
