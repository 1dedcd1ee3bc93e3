"""Every page in a language, a theme and a width: nothing is in the way of anybody, and all that is read is translated.

`make test` looks at the combination that is furthest from what other tests look at; `make soak PART=browser` at all.
"""

from __future__ import annotations

import itertools
import re

import pytest
from playwright.sync_api import Browser, expect

from penstock.blocking import Consumer, Producer
from penstock.testing import EmbeddedBroker
from tests.browser.eyes import ConsoleProcess, Eyes, eyes
from tests.browser.test_pages import AXE, HEADINGS, LANGUAGES, RULES
from tests.faults.counts import SOAKING

WIDTHS = {"desk": {"width": 1360, "height": 860}, "phone": {"width": 360, "height": 740}}
THEMES = ("light", "dark")
ALL = list(itertools.product(LANGUAGES, THEMES, WIDTHS))
COMBINATIONS = ALL if SOAKING else [("zh-CN", "dark", "phone")]
PAGES = {**HEADINGS, "/topics/orders/messages": ("orders", "orders"), "/groups/readers": ("readers", "readers")}
# What explains a lag is one with the command line's words, which are English: the page of limits says so.
EXPLAINED = "/groups/"
NOT_OURS = "code, pre, noscript, script, style, .doc"
# Names, commands and identifiers stay as they are: what a sentence in English has is several of its small words.
ENGLISH = re.compile(r"\b(?:the|of|and|is|are|this|that|with|from|to|in|no|its)\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def scheme() -> str:
    """Combinations have themes of their own."""
    return ""


@pytest.fixture(scope="module", autouse=True)
def orders(node: EmbeddedBroker) -> None:
    with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
        for number in range(30):
            producer.send("orders", f'{{"number": {number}}}'.encode(), key=b"k")
    with Consumer(
        "orders", bootstrap_servers=node.bootstrap_servers, group_id="readers", offset_reset="earliest"
    ) as consumer:
        for _ in zip(range(5), consumer, strict=False):
            pass


@pytest.mark.parametrize(("language", "theme", "width"), COMBINATIONS)
def test_every_page_in_a_language_a_theme_and_a_width(
    chromium: Browser, console: ConsoleProcess, language: str, theme: str, width: str
) -> None:
    with eyes(chromium, console.address, locale=language, color_scheme=theme, viewport=WIDTHS[width]) as looking:
        faults: list[object] = []
        for path, headings in PAGES.items():
            looking.open(path)
            expect(looking.heading).to_have_text(headings[LANGUAGES[language]])
            looking.settled()
            looking.page.evaluate(AXE.read_text(encoding="utf-8") + ";0")
            found = looking.page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
            faults += [(path, rule["id"], node["html"]) for rule in found["violations"] for node in rule["nodes"]]
            if looking.page.evaluate("document.documentElement.scrollWidth") > WIDTHS[width]["width"]:
                faults.append((path, "wider than the screen"))
            if language == "zh-CN" and not path.startswith(EXPLAINED):
                faults += [(path, "in English", line) for line in left_in_english(looking)]
        assert faults == []


def left_in_english(looking: Eyes) -> list[str]:
    """Lines of the page that are sentences of English. What brokers say of configs is theirs, in their language."""
    lines = looking.page.evaluate(
        """aside => [...document.querySelectorAll("body *")]
             .filter(each => each.children.length === 0 && !each.closest(aside))
             .map(each => each.textContent.trim())""",
        NOT_OURS,
    )
    return [line for line in lines if len(ENGLISH.findall(line)) >= 2]
