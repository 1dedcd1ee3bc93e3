"""The same commands against a node of ours and against Apache Kafka say the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing import broker
from tests.cli.command import penstock
from tests.compat.apache.node import ApacheKafka

pytestmark = pytest.mark.compat

STORY = [
    (("topic", "create", "clicks", "-p", "3", "-c", "retention.ms=86400000"), ""),
    (("topic", "list", "--format", "json"), ""),
    (("produce", "clicks", "-f", r"%k %v\n", "-F", r"%p@%o %k\n", "-H", "h:1", "-z", "zstd"), "a 1\nb 2\nc 3\nd 4\n"),
    (("produce", "clicks", "-f", "json"), '{"key_base64": "/w==", "value": null, "timestamp": 1700000000000}\n'),
    (("topic", "describe", "clicks", "--format", "json"), ""),
    (("consume", "clicks", "-e", "-f", r"%p@%o %k{hex} %v %h{%k=%v}\n"), ""),
    (("consume", "clicks", "-o", "-1:end", "-f", r"%p@%o\n"), ""),
    (("consume", "clicks", "-o", "@1600000000000:1700000000001", "-f", r"%k{hex}\n"), ""),
    (("consume", "clicks", "-g", "classic", "-n", "5", "-f", r"%p@%o\n"), ""),
    (("consume", "clicks", "-g", "new", "--protocol", "consumer", "-n", "5", "-f", r"%p@%o\n"), ""),
    (("group", "list", "--format", "json"), ""),
    (("group", "describe", "classic", "--format", "json"), ""),
    (("group", "describe", "new", "--format", "json"), ""),
    (("group", "seek", "classic", "--to", "start", "--yes", "--format", "json"), ""),
    (("group", "seek", "copy", "--to-group", "new", "--yes"), ""),
    (("group", "lag", "classic", "--format", "json"), ""),
    (("group", "offset-delete", "copy", "--topic", "clicks:0", "--yes"), ""),
    (("group", "delete", "copy", "--yes"), ""),
    (("group", "describe", "copy"), ""),
    (("topic", "trim", "clicks", "-y"), ""),
    (("topic", "add-partitions", "clicks", "-p", "4"), ""),
    (("topic", "add-partitions", "clicks", "-p", "2"), ""),
    (("topic", "alter", "clicks", "-c", "retention.ms=soon"), ""),
    (("cluster", "config", "set", "log.retention.ms=600000"), ""),
    (("cluster", "config", "get", "log.retention.ms"), ""),
    (("cluster", "health", "--format", "json"), ""),
    (("doctor",), ""),
    (("topic", "delete", "clicks", "-y"), ""),
    (("topic", "describe", "clicks"), ""),
]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    node = ApacheKafka(tmp_path_factory.mktemp("kafka"))
    node.format()
    node.start()
    try:
        yield node.bootstrap
    finally:
        node.stop()


@pytest.fixture(scope="module")
def ours() -> Iterator[str]:
    with broker() as running:
        yield running.bootstrap_servers


def told(bootstrap: str, home: Path) -> list[tuple[str, int, str, str]]:
    """What every command says, without what cannot be the same: ids, times, ports."""
    environment = {"XDG_CONFIG_HOME": str(home), "PENSTOCK_BOOTSTRAP": bootstrap}
    story = []
    for arguments, stdin in STORY:
        said = penstock(*arguments, stdin=stdin, environment=environment)
        out = said.out
        if "json" in arguments and out.startswith(("[", "{")):
            out = json.dumps(_plain(json.loads(out)), indent=1, sort_keys=True)
        elif arguments[0] == "consume":
            out = "\n".join(sorted(out.splitlines()))  # partitions come in any order
        elif arguments == ("doctor",):
            out = out.splitlines()[-1]
        # Brokers word a refusal as they like; its code is what counts.
        words = said.err if not said.code else re.findall(r"\([A-Z_]+\)$", said.err.strip())
        story.append((" ".join(arguments), said.code, _without_ids(out), _without_ids(str(words))))
    return story


def _plain(data: object) -> object:
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items() if key not in ("id", "member_id", "timestamp")}
    return [_plain(item) for item in data] if isinstance(data, list) else data


def _without_ids(text: str) -> str:
    text = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", text)
    return re.sub(r"[A-Za-z0-9_-]{22}\b", "ID", text)


def test_every_command_says_the_same_of_both(ours: str, theirs: str, tmp_path: Path) -> None:
    for mine, other in zip(told(ours, tmp_path), told(theirs, tmp_path), strict=True):
        assert mine == other
