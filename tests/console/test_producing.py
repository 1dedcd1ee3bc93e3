"""What is sent over HTTP is stored as it was sent, once, and what was stored can be sent again byte for byte."""

from __future__ import annotations

import base64
import json
import random
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from penstock.blocking import Admin, Consumer, Producer
from penstock.client.admin import ConfigResource
from penstock.testing import EmbeddedBroker
from tests.console.running import RunningConsole

JSON = {"content-type": "application/json"}
NDJSON = {"content-type": "application/x-ndjson"}
Stored = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]


@pytest.fixture(scope="module")
def admin(node: EmbeddedBroker) -> Iterator[Admin]:
    with Admin(**node.client_settings) as found:
        yield found


@pytest.fixture
def topic(admin: Admin, request: pytest.FixtureRequest) -> str:
    name = f"made-{abs(hash(request.node.name)) % 10**9}-{random.randrange(10**9)}"
    admin.create_topic(name, 1, 1)
    return name


def stored(node: EmbeddedBroker, topic: str) -> list[Stored]:
    with Admin(**node.client_settings) as admin:
        count = admin.describe_topic(topic).partitions[0].end
    found: list[Stored] = []
    with Consumer(topic, offset_reset="earliest", **node.client_settings) as consumer:
        while len(found) < count:
            found += [(each.key, each.value, list(each.headers)) for each in consumer.poll(timeout_ms=1_000)]
    return found


def send(console: RunningConsole, topic: str, body: str, **headers: str) -> httpx.Response:
    return console.client.post(f"api/v1/topics/{topic}/records", content=body, headers={**JSON, **headers})


def cluster_of(console: RunningConsole) -> str:
    return str(console.get("v3/clusters")["data"][0]["cluster_id"])


def send_v3(console: RunningConsole, topic: str, body: str) -> tuple[int, list[dict[str, Any]]]:
    path = f"api/v1/v3/clusters/{cluster_of(console)}/topics/{topic}/records"
    reply = console.client.post(path, content=body, headers=JSON)
    return reply.status_code, [json.loads(line) for line in reply.text.splitlines()]


def test_no_object_is_taken_for_anything_but_itself(console: RunningConsole, node: EmbeddedBroker, topic: str) -> None:
    values = [
        '{"type": "STRING", "data": "x"}',
        '{"type": "JSON"}',
        '{"type":"BINARY","data":"/w=="}',
        '{"records": [1]}',
        "1" * 5_000,
        "1e999",
        "[1, 2.0 ]",
        "true",
    ]
    reply = send(console, topic, "[" + ",".join(f'{{"value": {value}}}' for value in values) + "]")
    assert reply.status_code == 200, reply.text
    assert [value for _, value, _ in stored(node, topic)] == [value.encode() for value in values]


def test_one_record_and_an_object_of_records_may_have_confluents_form(
    console: RunningConsole, node: EmbeddedBroker, topic: str
) -> None:
    """An object of nothing but a known type and data; anything near to it is what it is."""
    for body in (
        '{"key": {"type": "STRING", "data": "k"}, "value": {"type": "JSON", "data": {"n": 1}}, "partition_id": 0}',
        '{"records": [{"value": {"type": "BINARY", "data": "/wA="}}, {"value": {"type": "AVRO", "data": 1}}]}',
        '{"value": {"type": "JSON"}}',
    ):
        reply = send(console, topic, body)
        assert reply.status_code == 200, reply.text
    assert [(key, value) for key, value, _ in stored(node, topic)] == [
        (b"k", b'{"n": 1}'),
        (None, b"\xff\x00"),
        (None, b'{"type": "AVRO", "data": 1}'),
        (None, b'{"type": "JSON"}'),
    ]


def test_one_a_list_and_lines(console: RunningConsole, node: EmbeddedBroker, topic: str) -> None:
    sent = [
        send(console, topic, '{"value": "one"}'),
        send(console, topic, '[{"value": "two"}, {"value_base64": "/wA=", "key": ""}]'),
        send(console, topic, '{"value": null, "key": "k"}\n\n{"value": "a\\u2028b\\r"}\r\n', **NDJSON),
        send(console, topic, '{"records": [{"value": 1, "headers": {"a": "b"}}]}'),
    ]
    assert [[each["offset"] for each in reply.json()["results"]] for reply in sent] == [
        ["0"],
        ["1", "2"],
        ["3", "4"],
        ["5"],
    ]
    assert stored(node, topic) == [
        (None, b"one", []),
        (None, b"two", []),
        (b"", b"\xff\x00", []),
        (b"k", None, []),
        (None, "a\u2028b\r".encode(), []),
        (None, b"1", [("a", b"b")]),
    ]


def test_each_record_has_its_outcome(console: RunningConsole, admin: Admin, topic: str) -> None:
    large = "x" * 600_000
    admin.alter_configs({ConfigResource.topic(topic): {"max.message.bytes": "1000"}}).checked()
    reply = send(console, topic, json.dumps([{"value": large, "key": "k"}]))
    assert reply.status_code >= 400
    assert reply.json()["error"]["params"]["results"][0]["error"]["message"]


def test_a_key_makes_a_request_happen_once(console: RunningConsole, node: EmbeddedBroker, topic: str) -> None:
    first = send(console, topic, '{"value": "once"}', **{"idempotency-key": f"{topic}-1"})
    again = send(console, topic, '{"value": "once"}', **{"idempotency-key": f"{topic}-1"})
    assert (first.content, first.status_code) == (again.content, again.status_code)
    assert [each.headers.get("idempotency-replayed") for each in (first, again)] == [None, "true"]
    assert send(console, topic, '{"value": "other"}', **{"idempotency-key": f"{topic}-1"}).status_code == 422
    assert send(console, topic, '{"value": "x"}', **{"idempotency-key": "k" * 201}).status_code == 400
    # What failed as a whole was not done, and may be tried again under its key.
    missing = send(console, "no-such-topic", '{"value": "x"}', **{"idempotency-key": f"{topic}-2"})
    assert missing.status_code == 404
    many: list[httpx.Response] = []
    same = {"idempotency-key": f"{topic}-2"}
    threads = [
        threading.Thread(target=lambda: many.append(send(console, topic, '{"value": "at once"}', **same)))
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {each.content for each in many} == {many[0].content}
    assert [value for _, value, _ in stored(node, topic)] == [b"once", b"at once"]


def test_records_as_the_rest_api_of_confluent_has_them(
    console: RunningConsole, node: EmbeddedBroker, topic: str
) -> None:
    body = (
        '{"key": {"type": "STRING", "data": "k"}, "value": {"type": "JSON", "data": {"n":  12345678901234567890123}}}'
        '\n{"value": {"type": "BINARY", "data": "/w=="}, "headers": [{"name": "h", "value": "/g=="}, {"name": "n"}],'
        ' "partition_id": 0, "timestamp": "2026-01-31T12:00:00.5Z"}'
        '{"value": {"type": "AVRO", "data": 1}}'
        '{"value": {"type": "JSON"}}{"partition_id": 7}'
        '{"key": {"type": "STRING", "data": "gone"}, "value": {"type": "JSON", "data": null}}'
    )
    status, told = send_v3(console, topic, body)
    assert status == 200
    assert [each["error_code"] for each in told] == [200, 200, 422, 422, 400, 200]
    assert {name: told[0][name] for name in ("topic_name", "partition_id", "offset", "key", "value")} == {
        "topic_name": topic,
        "partition_id": 0,
        "offset": 0,
        "key": {"type": "STRING", "size": 1},
        "value": {"type": "JSON", "size": 31},
    }
    assert (told[1]["timestamp"], told[1]["cluster_id"]) == ("2026-01-31T12:00:00.500Z", cluster_of(console))
    assert stored(node, topic) == [
        (b"k", b'{"n":  12345678901234567890123}', []),
        (None, b"\xff", [("h", b"\xfe"), ("n", None)]),
        (b"gone", None, []),
    ]
    for wrong in ('{"value": 1}', "[]", '{"value": {"type": "STRING", "data": 1}}', '{"color": 1}', '{"value"', ""):
        status, told = send_v3(console, topic, wrong)
        assert (status >= 400, len(told), status) == (True, 1, told[0]["error_code"]), wrong
    assert send_v3(console, "no-such-topic", '{"value": {"type": "STRING", "data": "x"}}')[0] == 404
    other = f"api/v1/v3/clusters/other/topics/{topic}/records"
    assert console.client.post(other, content=body, headers=JSON).status_code == 404
    assert len(stored(node, topic)) == 3


HARD: list[Stored] = [
    (
        b"\xff\x00k",
        b"\x00\xff" * 10,
        [("null", None), ("bytes", b"\xfe\xff"), ("empty", b""), ("same", b"1"), ("same", b"2")],
    ),
    (None, None, []),
    (b"", b"", [("", b"")]),
    (b"k", b'{"n": 1e999, "n": 1}\r\n\x00', [("h", b"\r\n")]),
    ("ключ".encode(), b"x" * 200_000, [("large", b"y" * 100_000)]),
]


def test_what_is_sent_again_is_what_is_stored(
    console: RunningConsole, node: EmbeddedBroker, admin: Admin, topic: str
) -> None:
    admin.create_topic(f"{topic}-copy", 1, 1)
    with Producer(**node.client_settings) as producer:
        for key, value, headers in HARD:
            producer.send(topic, value, key=key, headers=headers)
    for offset in range(len(HARD)):
        path = f"topics/{topic}/records/0/{offset}/send"
        plan = console.send("POST", path, {"to": f"{topic}-copy", "dry_run": True})["plan"]
        key, value, headers = HARD[offset]
        sizes = (None if key is None else len(key), None if value is None else len(value), len(headers))
        assert (plan["key"], plan["value"], plan["headers"]) == sizes
        told = console.send("POST", path, {"to": f"{topic}-copy"})
        assert told["results"][0]["offset"] == str(offset)
    assert stored(node, f"{topic}-copy") == stored(node, topic) == HARD
    console.send("POST", f"topics/{topic}/records/0/0/send", {"value": "other", "headers": []})
    assert stored(node, topic)[-1] == (b"\xff\x00k", b"other", [])
    assert console.refusal(f"topics/{topic}/records/0/99/send", "POST", {})[0] == 404
    assert console.refusal(f"topics/{topic}/records/0/0/send", "POST", {"to": "no-such"})[0] == 404
    assert console.refusal(f"topics/{topic}/records/0/0/send", "POST", {"to": 1})[0] == 400
    assert console.refusal(f"topics/{topic}/records/0/0/send", "POST", {"valu": "x"})[0] == 400


def test_a_cursor_waits_for_what_comes(console: RunningConsole, node: EmbeddedBroker, topic: str) -> None:
    path = f"topics/{topic}/records"
    page = console.get(path, **{"from": "oldest"})
    assert page["records"] == []
    found: list[dict[str, Any]] = []
    waiting = threading.Thread(target=lambda: found.append(console.get(path, cursor=page["next"], wait=25)))
    waiting.start()
    with Producer(**node.client_settings) as producer:
        producer.send(topic, b"came")
    waiting.join(30)
    assert [each["value"]["text"] for each in found[0]["records"]] == ["came"]
    after = console.get(path, cursor=found[0]["next"], wait=1)
    assert (after["records"], after["next"]) == ([], found[0]["next"])


def test_a_cursor_that_is_too_long_for_an_address_goes_in_a_body(
    console: RunningConsole, admin: Admin, node: EmbeddedBroker
) -> None:
    admin.create_topic("broad", 40, 1)
    with Producer(**node.client_settings) as producer:
        for number in range(80):
            producer.send("broad", b"%d" % number, partition=number % 40, timestamp=1_700_000_000_000 + number)
    body: dict[str, Any] = {"from": "oldest", "limit": 30}
    seen: list[str] = []
    while True:
        page = console.send("POST", "topics/broad/read", body)
        seen += [each["value"]["text"] for each in page["records"]]
        if not page["more"]:
            break
        # As a cursor of very many partitions would be: it names some that are not there.
        told = json.loads(base64.urlsafe_b64decode(page["next"] + "=" * (-len(page["next"]) % 4)))
        told |= {str(partition): 1 << 40 for partition in range(1_000, 11_000)}
        long = base64.urlsafe_b64encode(json.dumps(told).encode()).rstrip(b"=").decode()
        assert len(long) > 1 << 16
        body = {"cursor": long, "limit": 30}
    assert seen == [str(number) for number in range(80)]
    assert console.refusal("topics/broad/read", "POST", {"cursor": ["x"]}) == (400, "bad_request")


def test_a_page_is_cut_to_its_room(console: RunningConsole, node: EmbeddedBroker, topic: str) -> None:
    with Producer(**node.client_settings) as producer:
        for _ in range(500):
            producer.send(topic, b"v" * 20_000, key=b"k" * 8_000, headers=[("h" * 1_000, b"w" * 8_000)] * 3)
    reply = console.client.get(f"api/v1/topics/{topic}/records", params={"limit": 500})
    assert reply.status_code == 200
    assert len(reply.content) < 12 << 20
    assert reply.json()["records"][0]["value"]["cut"]
