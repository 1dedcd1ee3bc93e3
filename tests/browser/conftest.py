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


@pytest.fixture(scope="module", params=["light", "dark"] if SOAKING else ["light"])
def scheme(request: pytest.FixtureRequest) -> str:
    """Of a tab. Each has a node of its own: tests count what is there."""
    return str(request.param)


@pytest.fixture(scope="module")
def node(scheme: str) -> Iterator[EmbeddedBroker]:
    with broker({"delete.topic.enable": True}) as running:
        yield running


@pytest.fixture(scope="module")
def console(node: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    with console_process(node.bootstrap_servers, log=tmp_path_factory.mktemp("console") / "log") as process:
        yield process


@pytest.fixture
def looking(scheme: str, chromium: Browser, console: ConsoleProcess) -> Iterator[Eyes]:
    with eyes(chromium, console.address, color_scheme=scheme) as tab:
        yield tab
