"""Somebody who may use one topic and nothing else: every page is a page to them, and says what is not theirs to see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from penstock.blocking import Admin, Producer
from penstock.client.admin import Acl, AclFilter
from penstock.client.admin.scram_users import ScramPassword
from penstock.model.ids import TopicPartition
from penstock.testing import EmbeddedBroker, broker
from tests.browser.eyes import Eyes, eyes
from tests.console.running import RunningConsole, running, settings_for

NAME, PASSWORD, TOPIC = "one-topic", "right and long enough", "lent"
PAGES = [
    "/", "/map", "/brokers/1", "/topics", "/topics/lent", "/topics/lent/messages", "/topics/lent/partitions",
    "/topics/lent/consumers", "/topics/lent/config", "/topics/lent/access", "/topics/unlent", "/groups", "/groups/lent",
    "/groups/unlent", "/pipelines", "/pipelines/any", "/tables", "/tables/any", "/agents", "/follow", "/access",
    "/events",
]  # fmt: skip
REFUSED = r"Failed to load resource: the server responded with a status of 40[34]"


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedBroker]:
    with broker(secure=True) as found, Admin(**found.client_settings) as admin:
        admin.alter_scram_users([ScramPassword(NAME, PASSWORD)]).checked()
        rules = [Acl(f"User:{NAME}", "read", kind, TOPIC) for kind in ("topic", "group")]
        admin.create_acls(rules).checked()
        for topic in (TOPIC, "unlent"):
            admin.create_topic(topic, 2, 1)
            with Producer(**found.client_settings) as producer:
                for number in range(5):
                    producer.send(topic, f"record {number} of {topic}", partition=0)
        # Both groups read both topics: the group of this person reads what this person may not see as well.
        for group in (TOPIC, "unlent"):
            admin.alter_group_offsets(group, {TopicPartition(topic, 0): 2 for topic in (TOPIC, "unlent")})
        yield found


@pytest.fixture(scope="module")
def guarded(secured: EmbeddedBroker) -> Iterator[RunningConsole]:
    with running(settings_for(secured.client_settings, login="kafka"), ready_path="session") as found:
        yield found


@pytest.fixture
def person(chromium: Browser, guarded: RunningConsole) -> Iterator[Eyes]:
    with eyes(chromium, guarded.address) as tab:
        tab.pardon(r"status of 401")
        tab.open("/topics")
        tab.page.get_by_label("User").fill(NAME)
        tab.page.get_by_label("Password").fill(PASSWORD)
        tab.page.get_by_role("button", name="Log in").click()
        expect(tab.row(TOPIC)).to_be_visible()
        yield tab


def test_every_page_is_a_page_to_who_may_see_little(person: Eyes) -> None:
    person.pardon(REFUSED)
    for path in PAGES:
        person.open(path)
        person.settled()
        expect(person.page.get_by_role("main")).not_to_contain_text("Cannot read")
        assert "undefined" not in person.page.get_by_role("main").inner_text(), path
        if "unlent" not in path:
            assert "unlent" not in person.page.get_by_role("main").inner_text(), path
        assert person.unpardoned() == [], path


def test_what_is_not_known_is_not_called_bad(person: Eyes) -> None:
    person.open("/")
    health = person.page.get_by_role("region", name="Health")
    expect(health).to_contain_text("is told to those who may describe it")
    expect(health).not_to_have_class("health bad")
    expect(health).to_have_class("health quiet")
    person.open(f"/groups/{TOPIC}")
    panel = person.page.locator(".panel").filter(has=person.page.get_by_role("heading", name="Lag over time"))
    expect(panel).to_contain_text("you may not see all that is in it")


def test_who_logs_in_again_hears_what_happens_at_once(person: Eyes, secured: EmbeddedBroker) -> None:
    """The stream of the login before ends when the next one has begun: its good-bye must not end the new one."""
    person.pardon(r"status of 40[13]")
    person.page.get_by_role("button", name="Log out").click()
    person.page.get_by_label("User").fill(NAME)
    person.page.get_by_label("Password").fill(PASSWORD)
    person.page.get_by_role("button", name="Log in").click()
    expect(person.row(TOPIC)).to_be_visible()
    person.page.get_by_role("navigation", name="Pages").get_by_role("link", name="Events").click()
    expect(person.heading).to_have_text("Events")
    with Admin(**secured.client_settings) as admin:
        admin.grow_topic(TOPIC, len(admin.describe_topic(TOPIC).partitions) + 1)
    expect(person.page.get_by_text(f"topic {TOPIC} has 3 partitions, after 2")).to_be_visible()


def test_what_is_taken_away_leaves_the_page(person: Eyes, secured: EmbeddedBroker) -> None:
    person.pardon(r"status of 40[134]")
    person.open(f"/topics/{TOPIC}/messages")
    expect(person.page.get_by_text(f"record 0 of {TOPIC}")).to_be_visible()
    with Admin(**secured.client_settings) as admin:
        admin.delete_acls([AclFilter(principal=f"User:{NAME}", resource="topic")]).checked()
        try:
            expect(person.page.get_by_text(f"record 0 of {TOPIC}")).to_have_count(0)
            person.open("/topics")
            expect(person.page.get_by_role("main")).not_to_contain_text(TOPIC)
        finally:
            admin.create_acls([Acl(f"User:{NAME}", "read", "topic", TOPIC)]).checked()
