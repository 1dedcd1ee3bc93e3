"""Every page has its heading, in both languages, on a desk and on a phone, and the browser's console stays empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, expect

from penstock.blocking import Producer
from penstock.testing import EmbeddedBroker
from tests.browser.eyes import ConsoleProcess, Eyes, console_process, eyes
from tests.patience import factor

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
FIRST_PAINT_MS = 300

HEADINGS = {
    "/": ("Overview", "概览"),
    "/map": ("Map", "分布图"),
    "/brokers/1": ("Broker 1", "节点 1"),
    "/topics": ("Topics", "主题"),
    "/topics/orders/partitions": ("orders", "orders"),
    "/topics/orders/consumers": ("orders", "orders"),
    "/topics/orders/config": ("orders", "orders"),
    "/topics/orders/access": ("orders", "orders"),
    "/groups": ("Groups", "消费组"),
    "/access": ("Access", "权限"),
    "/events": ("Events", "事件"),
    "/follow": ("Follow a record", "追踪记录"),
}
LANGUAGES = {"en": 0, "zh-CN": 1}


@pytest.fixture(scope="module", autouse=True)
def orders(node: EmbeddedBroker) -> None:
    with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
        for number in range(30):
            producer.send("orders", f'{{"number": {number}}}'.encode(), key=b"k")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page_has_its_heading(chromium: Browser, console: ConsoleProcess, language: str) -> None:
    with eyes(chromium, console.address, locale=language) as looking:
        for path, headings in HEADINGS.items():
            looking.open(path)
            expect(looking.heading).to_have_text(headings[LANGUAGES[language]])
            looking.settled()
            assert looking.page.title() == f"{headings[LANGUAGES[language]]} · Penstock"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_can_be_used_by_everybody(chromium: Browser, console: ConsoleProcess, theme: str) -> None:
    """axe's rules for WCAG 2.2 AA: names, roles, contrast, order of headings, landmarks."""
    with eyes(chromium, console.address, color_scheme=theme) as looking:
        for path in HEADINGS:
            looking.open(path)
            looking.settled()
            looking.page.evaluate(AXE.read_text(encoding="utf-8") + ";0")
            found = looking.page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
            assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]] == [], path


def test_nothing_is_wider_than_a_phone(chromium: Browser, console: ConsoleProcess) -> None:
    with eyes(chromium, console.address, viewport={"width": 360, "height": 740}) as looking:
        for path in HEADINGS:
            looking.open(path)
            looking.settled()
            assert looking.page.evaluate("document.documentElement.scrollWidth") <= 360, path


def test_the_menu_of_a_phone_leads_on(chromium: Browser, console: ConsoleProcess) -> None:
    with eyes(chromium, console.address, viewport={"width": 360, "height": 740}) as looking:
        looking.open("/")
        looking.page.get_by_role("button", name="Menu").click()
        looking.page.get_by_role("navigation", name="Pages").get_by_role("link", name="Topics").click()
        expect(looking.heading).to_have_text("Topics")


def test_the_first_paint_is_quick(looking: Eyes) -> None:
    looking.open("/")  # what the browser keeps is there, as with anybody who has been here
    painted = []
    for _ in range(3):
        looking.open("/")
        entries = "performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)"
        painted += looking.page.evaluate(entries)
    assert min(painted) <= FIRST_PAINT_MS * factor()


def test_a_page_that_is_not_there_says_so(looking: Eyes) -> None:
    looking.page.goto(looking.address + "/nowhere")
    expect(looking.page.get_by_text("There is no such page")).to_be_visible()


def test_choices_are_kept(looking: Eyes) -> None:
    looking.open("/")
    looking.page.get_by_role("button", name="Settings").click()
    looking.dialog.get_by_label("Language").select_option("zh")
    looking.dialog.get_by_label("外观").select_option("dark")
    looking.press("Escape")
    expect(looking.heading).to_have_text("概览")
    looking.page.reload()
    expect(looking.heading).to_have_text("概览")
    assert looking.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert looking.page.evaluate("document.documentElement.lang") == "zh-CN"


@pytest.fixture(scope="module")
def below(node: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    log = tmp_path_factory.mktemp("below") / "log"
    with console_process(node.bootstrap_servers, "--base-path", "/kafka", log=log) as process:
        yield process


def test_it_works_below_a_path(chromium: Browser, below: ConsoleProcess) -> None:
    with eyes(chromium, below.address) as looking:
        asked: list[str] = []
        looking.page.on("request", lambda request: asked.append(request.url))
        looking.open("/topics")
        looking.page.get_by_role("link", name="orders", exact=True).click()
        expect(looking.heading).to_have_text("orders")
        looking.page.get_by_role("link", name="Partitions").click()
        looking.page.reload()
        expect(looking.row("Partition 0").first).to_be_visible()
        assert looking.path == "/topics/orders/partitions"
        asked_of_us = [url for url in asked if not url.startswith("data:")]
        assert [url for url in asked_of_us if not url.startswith(below.address + "/")] == []
        looking.pardon(r"/topics/orders/records")
