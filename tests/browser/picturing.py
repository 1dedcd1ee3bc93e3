"""`python -m tests.browser.picturing [FOLDER]`: the pictures of the console in docs/images/console, of a shop at work.

A real `penstock dev` with its console, producers, groups of which one cannot keep up, an agent and, where there is
Java, a pipeline. When charts have something to show, a minute and a half later, each page is pictured as on a desk.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, sync_playwright

from penstock.blocking import Consumer, Producer
from tests.browser.eyes import Eyes, eyes, launch
from tests.browser.small_png import small
from tests.docs.session import free_port
from tests.patience import wait_for, within

OUT: Final = Path(__file__).resolve().parents[2] / "docs" / "images" / "console"
VIEW: Final = {"width": 1280, "height": 800}
BYTES_MAX: Final = 150_000
POINTS: Final = 9
"""Of ten seconds each: from so many on a chart shows something."""
BIN: Final = Path(sys.executable).parent

TOPICS: Final = {
    "orders": 6, "clicks": 12, "payments": 6, "stock.changes": 4, "stock.levels": 4, "mails": 3, "audit": 1,
    "web.access": 6, "web.errors": 3, "sessions": 8, "returns": 3, "prices": 2,
}  # fmt: skip
COUNTRIES: Final = ("it", "nl", "de", "fr", "pt", "at", "es", "pl")
ITEMS: Final = ("espresso", "flat white", "cappuccino", "filter", "cold brew", "chai")

PICTURES: Final = {
    "overview": "/",
    "map": "/map",
    "topics": "/topics",
    "messages": "/topics/orders/messages",
    "partitions": "/topics/orders/partitions",
    "config": "/topics/orders/config",
    "groups": "/groups",
    "group": "/groups/billing",
    "pipelines": "/pipelines",
    "pipeline": "/pipelines/shop",
    "tables": "/tables",
    "table": "/tables/orders",
    "agents": "/agents",
    "events": "/events",
}
SHOP: Final = """\
name = "shop"
bootstrap = "{bootstrap}"
warehouse = "lake"

[sources.orders]
topic = "orders"
format = "json"
schema = "id BIGINT, country STRING, item STRING, amount DOUBLE, at TIMESTAMP"
start = "earliest"
dead_letters = "topic:orders.dead"

[sinks.orders]
from = "orders"
table = "orders"
partition_by = ["country"]
"""
AGENT: Final = """\
name = "web-1"
bootstrap = "{bootstrap}"

[inputs.access]
type = "tail"
paths = ["*.log"]
topic = "web.access"
"""


class Shop:
    """Whoever sends and reads, in threads, until the block is left."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self._bootstrap, self._folder, self._over = bootstrap, folder, threading.Event()
        works = [(self._sell, ()), (self._write_log, ())]
        works += [(self._read, each) for each in (("dashboard", "clicks", 0.0), ("billing", "orders", 0.05))]
        self._threads = [threading.Thread(target=work, args=given, daemon=True) for work, given in works]

    def __enter__(self) -> Shop:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(within(30))

    def _sell(self) -> None:
        chance, number = random.Random(7), 0
        with Producer(bootstrap_servers=self._bootstrap) as producer:
            while not self._over.wait(0.1):
                for _ in range(chance.randrange(20, 60)):
                    number += 1
                    for topic in ("orders", *chance.choices(list(TOPICS), k=3)):
                        producer.send(topic, self._order(number, chance), key=f"customer-{number % 997}".encode())

    def _order(self, number: int, chance: random.Random) -> bytes:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        text = (
            f'{{"id": {number}, "country": "{chance.choice(COUNTRIES)}", "item": "{chance.choice(ITEMS)}",'
            f' "amount": {chance.uniform(2, 30):.2f}, "at": "{at}"}}'
        )
        return text.encode()

    def _write_log(self) -> None:
        with (self._folder / "shop.log").open("a") as log:
            while not self._over.wait(0.2):
                log.write(f"{time.strftime('%H:%M:%S')} GET /coffee 200\n" * 20)
                log.flush()

    def _read(self, group: str, topic: str, pause_s: float) -> None:
        keywords = {"bootstrap_servers": self._bootstrap, "group_id": group, "offset_reset": "earliest"}
        # An explanation looks for three seconds: whoever commits less often seems to stand still.
        with Consumer(topic, **keywords, auto_commit_interval_ms=1_000) as consumer:
            while not self._over.is_set():
                consumer.poll(timeout_ms=500, max_records=20 if pause_s else 5_000)
                self._over.wait(pause_s)


@contextmanager
def process(*words: str, folder: Path, log: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command of ours, beside everything else."""
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    environment.pop("PENSTOCK_NO_CONSOLE", None)
    with (folder / log).open("wb") as out:
        running = subprocess.Popen(
            [str(BIN / "penstock"), *words], cwd=folder, stdout=out, stderr=subprocess.STDOUT, env=environment
        )
    try:
        yield running
    finally:
        running.terminate()
        running.wait(within(60))


def said(path: Path, pattern: str) -> str:
    found = wait_for(f"{path.name} to say {pattern}", lambda: re.search(pattern, path.read_text()), timeout_s=60)
    assert found is not None
    return str(found[1])


def has_a_past(address: str) -> bool:
    with urllib.request.urlopen(f"{address}api/v1/overview", timeout=within(10)) as reply:
        history = json.load(reply)["history"]
    return sum(point is not None for point in history["records_out"]) >= POINTS


def is_served(address: str, path: str) -> bool:
    """Whether there is something behind a page: its parts have addresses of the same first word."""
    first = path.split("/")[1] or "overview"
    try:
        with urllib.request.urlopen(f"{address}api/v1/{first.replace('events', 'log')}", timeout=within(30)):
            return True
    except urllib.error.HTTPError:
        return False


def picture(looking: Eyes, name: str, path: str, folder: Path) -> Path:
    looking.open(path)
    looking.settled()
    if name == "messages":
        looking.page.get_by_role("row").nth(1).click()
        looking.settled()
    out = folder / f"{name}.png"
    out.write_bytes(small(looking.page.screenshot(animations="disabled")))
    assert out.stat().st_size <= BYTES_MAX, f"{out.name} has {out.stat().st_size:,} bytes"
    return out


def pictures(browser: Browser, address: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with eyes(browser, address, viewport=VIEW, color_scheme="light") as looking:
        for name, path in PICTURES.items():
            if not is_served(address, path):
                print(f"{name}.png: left out, nothing is served for {path}", flush=True)
                continue
            out = picture(looking, name, path, folder)
            print(f"{out.name}: {out.stat().st_size:,} bytes", flush=True)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    port = free_port()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        nodes = ["--nodes", "3", "--data-dir", "data"]
        stack.enter_context(process("dev", *nodes, "--port", str(port), folder=home, log="dev.txt"))
        address = said(home / "dev.txt", r"console +(http://\S+)")
        bootstrap = f"127.0.0.1:{port}"
        said(home / "dev.txt", r"(\n  try )")
        for topic, partitions in TOPICS.items():
            command = ["topic", "create", topic, "-p", str(partitions), "-r", "3", "-b", bootstrap]
            subprocess.run([str(BIN / "penstock"), *command], check=True, stdout=subprocess.DEVNULL)
        (home / "shop.toml").write_text(SHOP.format(bootstrap=bootstrap))
        (home / "agent.toml").write_text(AGENT.format(bootstrap=bootstrap))
        stack.enter_context(Shop(bootstrap, home))
        stack.enter_context(process("agent", "run", "-c", "agent.toml", folder=home, log="agent.txt"))
        if shutil.which("java"):
            stack.enter_context(process("pipeline", "run", "shop.toml", "--quiet", folder=home, log="pipeline.txt"))
        wait_for("charts to have a past", lambda: has_a_past(address), timeout_s=240)
        with sync_playwright() as playwright:
            browser = launch(playwright)
            pictures(browser, address, folder)
            browser.close()


if __name__ == "__main__":
    main()
