"""A page in a real browser, with everything that went wrong in it, and a console as the process that users run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Playwright, expect

from tests.patience import within

WAIT_S = 15
NO_CHROMIUM = (
    "these tests look through Debian's chromium, which is not here: apt-get install chromium (make setup tries)"
)


def launch(playwright: Playwright) -> Browser:
    """The browser of the system: none is fetched."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    assert path is not None, NO_CHROMIUM
    # Its sandbox cannot be had in containers, where tests run as root; what it looks at is ours.
    return playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.geteuid() == 0 else [])


class Eyes:
    """One tab. `faults` is what a person would find in the browser's console."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address = page, address.rstrip("/")
        self.faults: list[str] = []
        self.pardoned: list[str] = []
        page.set_default_timeout(within(WAIT_S) * 1000)
        expect.set_options(timeout=within(WAIT_S) * 1000)
        page.on("console", self._told)
        page.on("pageerror", lambda error: self.faults.append(f"{error}"))

    def _told(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.text} {message.location.get('url', '')}")

    def pardon(self, pattern: str) -> None:
        """A refusal that the test asks for: browsers write every status of 400 and more into their console."""
        self.pardoned.append(pattern)

    def unpardoned(self) -> list[str]:
        return [fault for fault in self.faults if not any(re.search(pattern, fault) for pattern in self.pardoned)]

    def open(self, path: str) -> None:
        self.page.goto(self.address + path)
        expect(self.heading).to_be_visible()

    @property
    def heading(self) -> Locator:
        return self.page.get_by_role("heading", level=1)

    def settled(self) -> None:
        """Nothing of the page is on its way any more."""
        expect(self.page.locator(".skeleton")).to_have_count(0)

    def row(self, text: str) -> Locator:
        return self.page.get_by_role("row").filter(has_text=text)

    @property
    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    @property
    def path(self) -> str:
        return self.page.url.removeprefix(self.address)


@contextmanager
def eyes(browser: Browser, address: str, **about: object) -> Iterator[Eyes]:
    """A tab of a person of its own; what went wrong in it fails the test."""
    given = {"locale": "en", "timezone_id": "UTC", "viewport": {"width": 1360, "height": 860}, **about}
    context = browser.new_context(**given)  # type: ignore[arg-type]
    try:
        looking = Eyes(context.new_page(), address)
        yield looking
        assert looking.unpardoned() == []
    finally:
        context.close()


class ConsoleProcess:
    """`penstock console`, on a port that it keeps when it is started again."""

    def __init__(self, bootstrap: str, *options: str, log: Path, environment: Mapping[str, str] | None = None) -> None:
        self._options = ["-b", bootstrap, "--every", "500ms", "--name", "local", *options]
        self._log, self._environment = log, environment
        self._process: subprocess.Popen[str] | None = None
        self.address, self._port = "", "0"

    def start(self) -> None:
        audit = str(self._log.with_name("audit.log"))
        penstock = str(Path(sys.executable).parent / "penstock")
        command = [penstock, "console", "--port", self._port, "--audit-log", audit, *self._options]
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, **(self._environment or {})}
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(r"(http://\S+?:(\d+))(\S*)", line)
        assert found, f"{line!r} {self._log.read_text(encoding='utf-8')}"
        self.address, self._port = found[1] + found[3].rstrip("/"), found[2]

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        self._process.wait(timeout=within(20))
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None


@contextmanager
def console_process(bootstrap: str, *options: str, log: Path) -> Iterator[ConsoleProcess]:
    process = ConsoleProcess(bootstrap, *options, log=log)
    process.start()
    try:
        yield process
    finally:
        process.stop()
