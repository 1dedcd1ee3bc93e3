from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from penstock.testing import EmbeddedBroker, broker
from tests.browser.eyes import ConsoleProcess, Eyes, console_process, eyes, launch


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


@pytest.fixture
def looking(chromium: Browser, console: ConsoleProcess) -> Iterator[Eyes]:
    with eyes(chromium, console.address) as tab:
        yield tab
