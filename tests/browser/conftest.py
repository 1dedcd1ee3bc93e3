from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from penstock.testing import EmbeddedBroker, broker
from tests.browser.eyes import ConsoleProcess, Eyes, console_process, eyes, launch
from tests.faults.counts import SOAKING


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker({"delete.topic.enable": True}) as running:
        yield running


@pytest.fixture(scope="module")
def console(node: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    with console_process(node.bootstrap_servers, log=tmp_path_factory.mktemp("console") / "log") as process:
        yield process


@pytest.fixture(params=["light", "dark"] if SOAKING else ["light"])
def looking(request: pytest.FixtureRequest, chromium: Browser, console: ConsoleProcess) -> Iterator[Eyes]:
    with eyes(chromium, console.address, color_scheme=request.param) as tab:
        yield tab
