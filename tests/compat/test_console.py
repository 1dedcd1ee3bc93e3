"""The console's lags beside those of kafka-consumer-groups: of readers that are behind, of trimmed logs, of members."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.compat.apache.tools import Tools
from tests.compat.test_groups import PROTOCOLS, drain, groups, put, rows
from tests.compat.test_records import create
from tests.console.running import RunningConsole, running, settings_for

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def console(bootstrap: str) -> Iterator[RunningConsole]:
    with running(settings_for({"bootstrap_servers": bootstrap})) as found:
        yield found


def told_by_tool(tools: Tools, group: str) -> list[tuple[str, ...]]:
    described = groups(tools, "--describe", "--group", group)
    return rows(described, "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")


def told_by_page(console: RunningConsole, group: str) -> list[tuple[str, ...]]:
    return sorted(
        (each["topic"], str(each["partition"]), each["committed"], each["end"], each["lag"])
        for each in console.get(f"groups/{group}")["partitions"]
    )


def check(tools: Tools, console: RunningConsole, group: str, topic: str) -> int:
    """The list, the group's page and the topic's page say what the tool says; the sum is answered."""
    told = told_by_tool(tools, group)
    total = sum(int(lag) for *_, lag in told)
    assert told_by_page(console, group) == told
    console.wait("groups", lambda page: [row["lag"] for row in page["items"]] == [str(total)], q=group)
    (read,) = [each for each in console.get(f"topics/{topic}/consumers")["groups"] if each["group"] == group]
    assert (
        sorted(
            (topic, str(each["partition"]), each["committed"], each["end"], each["lag"]) for each in read["partitions"]
        )
        == told
    )
    return total


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_lags_are_those_of_kafkas_own_tool(tools: Tools, console: RunningConsole, topic: str, protocol: str) -> None:
    group = f"lag-of-{topic}"
    create(tools, topic, 3)
    put(tools, topic, 50)
    drain(tools, topic, group, protocol, 50)
    assert check(tools, console, group, topic) == 0
    put(tools, topic, 30)
    assert check(tools, console, group, topic) == 30
    groups(tools, "--group", group, "--topic", topic, "--reset-offsets", "--to-offset", "1", "--execute")
    assert check(tools, console, group, topic) == 80 - 3
    groups(tools, "--group", group, "--topic", topic, "--reset-offsets", "--to-latest", "--execute")
    assert check(tools, console, group, topic) == 0
