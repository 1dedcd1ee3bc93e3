"""Pages of what is beside brokers, with a real table, a pipeline that tells of itself, and a record followed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from penstock.blocking import Admin, Producer
from penstock.model.ids import TopicPartition
from penstock.testing import EmbeddedBroker
from tests.browser.eyes import ConsoleProcess, Eyes, console_process, eyes
from tests.browser.test_pages import AXE, RULES
from tests.console.lakes import commit, pipeline_told, table_of, topic_id
from tests.patience import wait_for

PAGES = ("/pipelines", "/pipelines/orders", "/tables", "/tables/orders", "/agents",
         "/follow?topic=orders&partition=0&offset=3", "/topics/orders/partitions", "/groups")  # fmt: skip
HUGE = str((1 << 60) + 3)


@pytest.fixture(scope="module")
def lake(node: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    with Admin(**node.client_settings) as admin, Producer(**node.client_settings) as producer:
        admin.create_topic("orders", 1, 1)
        for number in range(20):
            producer.send("orders", f"order {number}", partition=0, headers=[("path", b"/var/log/a.log")])
        producer.flush()
        found = topic_id(admin, "orders")
        admin.alter_group_offsets("spark-orders-lake", {TopicPartition("orders", 0): 10})
        commit(table_of(folder, "orders", "orders"), "orders", found, 0, 10, batch=0)
    pipeline_told(node.client_settings, "orders", "orders", offset=10, end=20)
    with Producer(**node.client_settings, transactional_id="shop-1") as producer, producer.transaction():
        producer.send("orders", "last", partition=0)
    return folder


@pytest.fixture(scope="module")
def beside(node: EmbeddedBroker, lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    log = tmp_path_factory.mktemp("beside") / "log"
    given = ("--warehouse", str(lake), "--agent", "http://127.0.0.1:9")
    with console_process(node.bootstrap_servers, *given, log=log) as process:
        yield process


@pytest.fixture
def looking(chromium: Browser, beside: ConsoleProcess) -> Iterator[Eyes]:
    with eyes(chromium, beside.address) as tab:
        yield tab


def test_from_a_pipeline_to_its_table_and_into_it(looking: Eyes) -> None:
    looking.open("/pipelines")
    expect(looking.row("orders")).to_contain_text("running")
    looking.page.get_by_role("link", name="orders", exact=True).click()
    expect(looking.heading).to_have_text("orders")
    expect(looking.page.get_by_text("penstock pipeline stop orders")).to_be_visible()
    expect(looking.row("addBatch")).to_contain_text("40")
    looking.page.locator(".flow").get_by_role("link", name="orders").last.click()
    expect(looking.page.get_by_text("penstock lake show --warehouse")).to_be_visible()
    expect(looking.row("append")).to_contain_text("10")
    looking.page.get_by_label("SQL").fill('SELECT number, text FROM "orders" WHERE _offset = 3')
    looking.press("Control+Enter")
    expect(looking.row(HUGE)).to_contain_text("secret of orders 3")
    looking.page.get_by_role("button", name="Audit").click()
    looking.dialog.get_by_role("button", name="Audit").click()
    expect(looking.dialog.get_by_role("status")).to_contain_text("Nothing is missing")


def test_a_record_is_followed_from_its_page(looking: Eyes) -> None:
    looking.open("/topics/orders/messages?from=offset:3&partition=0&at=0:3")
    looking.page.locator('a[href*="follow?"]').click()
    way = looking.page.locator("ol.way")
    expect(way).to_contain_text("a line of /var/log/a.log")
    expect(way).to_contain_text("group spark-orders-lake has read past it")
    expect(way).to_contain_text("batch 0 of lake of pipeline orders had it")
    expect(way).to_contain_text(f'"number": "{HUGE}"')


def test_a_pipeline_is_stopped_from_its_page(looking: Eyes, beside: ConsoleProcess, node: EmbeddedBroker) -> None:
    pipeline_told(node.client_settings, "stops", "orders", offset=10, end=20, query_id="stops")
    # A page that is opened before the console has heard of it begins with a refusal, which a browser's console notes.
    address = f"{beside.address}/api/v1/pipelines/stops"
    wait_for("the console to hear of the pipeline", lambda: httpx.get(address).is_success, timeout_s=30)
    looking.open("/pipelines/stops")
    looking.page.get_by_role("button", name="Stop").click()
    expect(looking.dialog.get_by_text("penstock pipeline stop stops")).to_be_visible()
    looking.dialog.get_by_role("button", name="Stop").click()
    expect(looking.dialog.get_by_role("status")).to_be_visible()


def test_producers_transactions_and_silent_agents_are_shown(looking: Eyes) -> None:
    looking.open("/groups")
    expect(looking.row("shop-1")).to_contain_text("CompleteCommit")
    looking.open("/topics/orders/partitions")
    expect(looking.page.get_by_role("table", name="Producers").get_by_role("row").nth(1)).to_be_visible()
    looking.open("/agents")
    expect(looking.page.get_by_text("no agent answers at http://127.0.0.1:9")).to_be_visible()
    looking.open("/")
    expect(looking.page.get_by_role("link", name="orders").first).to_be_visible()


def test_they_can_be_used_by_everybody(chromium: Browser, beside: ConsoleProcess) -> None:
    with eyes(chromium, beside.address, color_scheme="dark") as looking:
        for path in PAGES:
            looking.open(path)
            looking.settled()
            looking.page.evaluate(AXE.read_text(encoding="utf-8") + ";0")
            found = looking.page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
            assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]] == [], path


def test_nothing_is_wider_than_a_phone(chromium: Browser, beside: ConsoleProcess) -> None:
    with eyes(chromium, beside.address, locale="zh-CN", viewport={"width": 360, "height": 740}) as looking:
        for path in PAGES:
            looking.open(path)
            looking.settled()
            assert looking.page.evaluate("document.documentElement.scrollWidth") <= 360, path


def test_without_anything_the_pages_say_what_fills_them(chromium: Browser, console: ConsoleProcess) -> None:
    with eyes(chromium, console.address) as looking:
        looking.open("/tables")
        expect(looking.page.get_by_text("penstock console --warehouse lake")).to_be_visible()
        looking.open("/agents")
        expect(looking.page.get_by_text("penstock console --agent http://localhost:9645")).to_be_visible()
