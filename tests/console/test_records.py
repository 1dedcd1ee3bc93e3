"""Pages of records are the log, whatever it holds; searches and tails say what they saw and what they did not."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from penstock.blocking import Admin, Producer
from penstock.testing import EmbeddedBroker
from tests.console.running import RunningConsole
from tests.patience import wait_for

TAB = "a-tab-that-reads-records"
JSON = {"content-type": "application/json"}


def offsets(page: dict[str, Any]) -> list[tuple[int, int]]:
    return [(each["partition"], int(each["offset"])) for each in page["records"]]


@pytest.fixture(scope="module")
def thirty(node: EmbeddedBroker) -> str:
    """Thirty records in three partitions, one a millisecond."""
    with Admin(**node.client_settings) as admin:
        admin.create_topic("thirty", 3, 1)
    with Producer(**node.client_settings) as producer:
        for number in range(30):
            producer.send(
                "thirty",
                json.dumps({"n": number}),
                key=f"k{number}",
                partition=number % 3,
                timestamp=1_700_000_000_000 + number,
            )
    return "thirty"


def test_the_newest_come_in_the_order_of_time_and_lead_back_to_the_oldest(console: RunningConsole, thirty: str) -> None:
    page = console.get(f"topics/{thirty}/records", limit=7)
    seen = offsets(page)
    assert [json.loads(each["value"]["text"])["n"] for each in page["records"]] == list(range(23, 30))
    assert page["reached"] == "limit"
    while page["previous"]:
        page = console.get(f"topics/{thirty}/records", limit=7, cursor=page["previous"], back=1)
        seen = offsets(page) + seen
    assert seen == [(number % 3, number // 3) for number in range(30)]
    assert page["reached"] == "start"


def test_pages_forwards_have_every_record_once(console: RunningConsole, thirty: str) -> None:
    page = console.get(f"topics/{thirty}/records", limit=4, **{"from": "oldest"})
    seen = offsets(page)
    while page["more"]:
        page = console.get(f"topics/{thirty}/records", limit=4, cursor=page["next"])
        assert page["records"]
        seen += offsets(page)
    assert seen == [(number % 3, number // 3) for number in range(30)]
    assert page["reached"] == "end"
    again = console.get(f"topics/{thirty}/records", cursor=page["next"])
    assert (again["records"], again["reached"]) == ([], "end")


def test_places_to_begin(console: RunningConsole, thirty: str) -> None:
    def first(**query: Any) -> list[tuple[int, int]]:
        return offsets(console.get(f"topics/{thirty}/records", limit=3, **query))

    assert first(**{"from": "offset:9"}) == [(0, 9), (1, 9), (2, 9)]
    assert first(**{"from": "offset:4", "partition": "1"}) == [(1, 4), (1, 5), (1, 6)]
    assert first(**{"from": f"time:{1_700_000_000_020}"}) == [(2, 6), (0, 7), (1, 7)]
    assert first(**{"from": "time:2000-01-01", "partition": "0,2"}) == [(0, 0), (2, 0), (0, 1)]
    assert console.refusal(f"topics/{thirty}/records", **{"from": "offset:x"}) == (400, "bad_request")
    assert console.refusal(f"topics/{thirty}/records", **{"from": "nowhere"}) == (400, "bad_request")
    assert console.refusal(f"topics/{thirty}/records", cursor="nonsense") == (400, "bad_request")
    assert console.refusal(f"topics/{thirty}/records", partition="7") == (404, "unknown_topic")
    assert console.refusal("topics/nowhere/records") == (404, "unknown_topic")


def test_a_log_with_holes_is_paged_through_to_its_end(console: RunningConsole, node: EmbeddedBroker) -> None:
    """The ends of transactions are offsets without a record, and so is what was aborted to who reads committed ones."""
    with Admin(**node.client_settings) as admin:
        admin.create_topic("holes", 1, 1)
    with Producer(transactional_id="holes", **node.client_settings) as producer:
        for number in range(20):
            producer.begin()
            producer.send("holes", b"%d" % number).result()
            producer.commit() if number % 10 == 0 else producer.abort()
    query = {"isolation": "read_committed", "limit": 3}
    page = console.get("topics/holes/records", **query)
    assert [each["value"]["text"] for each in page["records"]] == ["0", "10"]
    assert page["previous"] is None
    page = console.get("topics/holes/records", **query, **{"from": "oldest"})
    assert ([each["value"]["text"] for each in page["records"]], page["more"]) == (["0", "10"], False)
    page = console.get("topics/holes/records", limit=100)
    assert [each["value"]["text"] for each in page["records"]] == [str(number) for number in range(20)]
    assert console.refusal("topics/holes/records/0/1") == (404, "not_found"), "an end of a transaction is no record"


def test_what_is_stored_is_shown_as_what_it_is(console: RunningConsole, node: EmbeddedBroker) -> None:
    stored = {
        "json": b'{"n": 12345678901234567890123, "f": 1.10}',
        "text": "grüß <script>alert(1)</script>".encode(),
        "bytes": b"\xff\x00\x01",
        "broken": b'{"a": ',
        "empty": b"",
        "number": b"9007199254740993",
    }
    with Admin(**node.client_settings) as admin:
        admin.create_topic("kinds", 1, 1)
    with Producer(**node.client_settings) as producer:
        for name, value in stored.items():
            producer.send("kinds", value, key=name, headers=[("h", b"\xfe"), ("h", None)])
        producer.send("kinds", None, key="tombstone")
    records = console.get("topics/kinds/records", **{"from": "oldest"})["records"]
    told = {each["key"]["text"]: each["value"] for each in records}
    assert {name: (value["as"], value["text"]) for name, value in told.items()} == {
        "json": ("json", stored["json"].decode()),
        "text": ("text", stored["text"].decode()),
        "bytes": ("hex", "ff0001"),
        "broken": ("text", '{"a": '),
        "empty": ("text", ""),
        "number": ("json", "9007199254740993"),
        "tombstone": (None, None),
    }
    assert [each["value"]["as"] for each in records[0]["headers"]] == ["hex", None]


def test_a_large_value_is_cut_and_has_an_address_of_its_own(console: RunningConsole, node: EmbeddedBroker) -> None:
    large = b"x" * 900_000
    with Admin(**node.client_settings) as admin:
        admin.create_topic("large", 1, 1)
    with Producer(**node.client_settings) as producer:
        producer.send("large", large, key=b"\x00\xff")
    record = console.get("topics/large/records")["records"][0]
    assert (record["value"]["cut"], record["value"]["size"], len(record["value"]["text"])) == (True, 900_000, 64 << 10)
    whole = console.get("topics/large/records/0/0")["record"]
    assert (whole["value"]["cut"], len(whole["value"]["text"])) == (False, 900_000)
    raw = console.client.get("api/v1/topics/large/records/0/0", params={"raw": "value"})
    assert (raw.content, raw.headers["content-type"]) == (large, "application/octet-stream")
    assert "attachment" in raw.headers["content-disposition"]
    assert console.client.get("api/v1/topics/large/records/0/0", params={"raw": "key"}).content == b"\x00\xff"
    assert console.refusal("topics/large/records/0/1") == (404, "not_found")


def test_new_records_are_stored_as_they_were_sent(console: RunningConsole, node: EmbeddedBroker) -> None:
    with Admin(**node.client_settings) as admin:
        admin.create_topic("sent", 2, 1)
    body = (
        '{"records": ['
        '{"key": "k", "value": {"n": 12345678901234567890, "f": 1.10}, "partition": 1, "timestamp": "1700000000000"},'
        '{"value": "text", "headers": [{"name": "h", "value": "1"}, {"name": "n", "value": null}], "partition": 1},'
        f'{{"key_base64": "{base64.b64encode(bytes([255, 0])).decode()}", "value": null, "partition": 1}},'
        '{"key": "last", "headers": [{"name": "b", "value_base64": "/w=="}], "partition": 1}'
        "]}"
    )
    reply = console.client.post("api/v1/topics/sent/records", content=body, headers=JSON)
    assert reply.status_code == 200, reply.text
    assert [(each["partition"], each["offset"]) for each in reply.json()["results"]] == [
        (1, str(at)) for at in range(4)
    ]
    records = console.get("topics/sent/records", **{"from": "oldest"})["records"]
    assert [each["value"]["text"] for each in records if each["timestamp"] == "1700000000000"] == [
        '{"n": 12345678901234567890, "f": 1.10}'
    ]
    by_offset = {each["offset"]: each for each in records}
    assert by_offset["1"]["headers"][1]["value"]["as"] is None
    assert (by_offset["2"]["key"]["text"], by_offset["2"]["value"]["as"]) == ("ff00", None)
    assert (by_offset["3"]["value"]["as"], by_offset["3"]["headers"][0]["value"]["text"]) == (None, "ff")
    lines = console.client.post(
        "api/v1/topics/sent/records",
        content='{"value": 1}\n\n{"value": 2, "partition": 0}\n',
        headers={"content-type": "application/x-ndjson"},
    )
    assert len(lines.json()["results"]) == 2


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"value": "v", "partition": 9}, "bad_request"),
        ({"value": "v", "color": "red"}, "bad_request"),
        ({"value": "v", "value_base64": "AA=="}, "bad_request"),
        ({"value_base64": "%%%"}, "bad_request"),
        ({"value": "v", "timestamp": -1}, "bad_request"),
        ({"value": "v", "headers": [1]}, "bad_request"),
        ({"records": []}, "bad_request"),
        ([{"value": 1}] * 1_001, "bad_request"),
    ],
)
def test_what_is_no_record_is_not_sent(console: RunningConsole, thirty: str, body: Any, code: str) -> None:
    before = console.get(f"topics/{thirty}/partitions")["partitions"]
    assert console.refusal(f"topics/{thirty}/records", "POST", body) == (400, code)
    assert [each["end"] for each in console.get(f"topics/{thirty}/partitions")["partitions"]] == [
        each["end"] for each in before
    ]


def test_sending_makes_no_topic(console: RunningConsole) -> None:
    assert console.refusal("topics/not-made/records", "POST", {"value": "v"}) == (404, "unknown_topic")


def searched(console: RunningConsole, topic: str, **order: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The hits of a search, and the last that it told."""
    hits: list[dict[str, Any]] = []
    with console.events(TAB) as events:
        next(events)
        told = console.send("POST", f"tabs/{TAB}/subscriptions", {"kind": "search", "topic": topic, **order})
        for name, data in events:
            if name == "search" and data["id"] == told["id"]:
                hits += data["hits"]
                if data["state"] == "stopped":
                    return hits, data
    raise AssertionError("the stream ended before the search")


def test_a_search_finds_what_it_was_asked_for_and_says_why_it_stopped(console: RunningConsole, thirty: str) -> None:
    hits, last = searched(console, thirty, where="value.n >= 10 and value.n < 13")
    assert sorted(json.loads(each["value"]["text"])["n"] for each in hits) == [10, 11, 12]
    assert (last["why"], last["scanned"], last["next"]) == ("end", "30", None)
    hits, last = searched(console, thirty, contains="k29")
    assert [each["key"]["text"] for each in hits] == ["k29"]
    search = {"kind": "search", "topic": thirty}
    assert console.refusal("tabs/a-tab-without-stream/subscriptions", "POST", search) == (409, "conflict")


def test_a_search_goes_on_from_where_it_stopped(console: RunningConsole, thirty: str) -> None:
    found: list[int] = []
    cursor = None
    for _ in range(20):
        hits, last = searched(console, thirty, where="value.n > -1", limits={"hits": 4}, cursor=cursor)
        found += [json.loads(each["value"]["text"])["n"] for each in hits]
        cursor = last["next"]
        if cursor is None:
            break
        assert last["why"] == "hits"
    assert sorted(found) == list(range(30)), "each of them once"


def test_what_is_no_condition_is_told_with_its_place(console: RunningConsole, thirty: str) -> None:
    told = console.send("POST", "conditions/check", {"where": "value.n >"})
    assert told["ok"] is False
    assert told["error"]["params"]["at"] == 9
    record = {"topic": thirty, "partition": 0, "offset": "3"}
    assert console.send("POST", "conditions/check", {"where": "value.n == 9", "record": record})["matches"] is True
    assert console.send("POST", "conditions/check", {"where": 'key == "k8"', "record": record})["matches"] is False
    slow = console.send("POST", "conditions/check", {"where": 'value matches "(?=a)b"'})
    assert "look-around" in slow["error"]["message"]


def test_a_tail_tells_what_comes_and_counts_what_it_leaves_out(console: RunningConsole, node: EmbeddedBroker) -> None:
    with Admin(**node.client_settings) as admin:
        admin.create_topic("tailed", 2, 1)
    with Producer(**node.client_settings) as producer, console.events(TAB) as events:
        next(events)
        producer.send("tailed", b"before", partition=0)
        producer.flush()
        told = console.send("POST", f"tabs/{TAB}/subscriptions", {"kind": "tail", "topic": "tailed"})
        first = next(data for name, data in events if name == "tail")
        assert (first["records"], first["positions"]) == ([], {"0": "1", "1": "0"})
        for number in range(3_000):
            producer.send("tailed", b"%d" % number, partition=number % 2)
        producer.flush()
        shown, data = 0, first
        while int(data["seen"]) < 3_000:
            data = next(data for name, data in events if name == "tail")
            shown += len(data["records"])
        assert int(data["shown"]) == shown
        assert int(data["shown"]) + int(data["skipped"]) == 3_000
        assert int(data["skipped"]) > 0
        console.send("DELETE", f"tabs/{TAB}/subscriptions/{told['id']}")
        assert console.refusal(f"tabs/{TAB}/subscriptions/none", "DELETE") == (404, "not_found")


def test_nobody_waits_for_too_much(console: RunningConsole, thirty: str) -> None:
    with console.events(TAB) as events:
        next(events)
        tail = {"kind": "tail", "topic": thirty}
        for _ in range(4):
            console.send("POST", f"tabs/{TAB}/subscriptions", tail)
        assert console.refusal(f"tabs/{TAB}/subscriptions", "POST", tail) == (429, "too_many")
        assert console.refusal(f"tabs/{TAB}/subscriptions", "POST", {**tail, "kind": "x"}) == (400, "bad_request")

    def free() -> bool:
        with console.events(TAB) as events:
            next(events)
            reply = console.client.post(f"api/v1/tabs/{TAB}/subscriptions", json=tail)
            return reply.status_code == 200

    assert wait_for("a tab that went to have left its places", free, timeout_s=30)


LONG = "9" * 5_000


@pytest.mark.parametrize("number", [LONG, "²", "1_0", "-1", "٣", str(1 << 63), ""])
def test_numbers_that_are_none_are_told_as_such(console: RunningConsole, thirty: str, number: str) -> None:
    records = f"topics/{thirty}/records"
    gets: list[tuple[str, dict[str, Any]]] = [
        (records, {"limit": number}),
        (records, {"from": f"offset:{number}"}),
        (f"{records}/{number or 'x'}/0", {}),
        (f"{records}/0/{number or 'x'}", {}),
        ("topics", {"offset": number}),
        (f"brokers/{number or 'x'}", {}),
        (f"brokers/{number or 'x'}/config", {}),
        ("groups/g/explain", {"seconds": number}),
    ]
    if number:
        gets.append((records, {"partition": number}))
    if number not in ("-1", "٣", str(1 << 63)):
        gets.append((records, {"from": f"time:{number}x"}))
    for path, query in gets:
        status = console.client.get(f"api/v1/{path}", params=query).status_code
        assert status == 400, (path, query)
    posts: list[tuple[str, Any]] = [
        (f"topics/{thirty}/trim", {"before": {"0": number}, "confirm": thirty}),
        (f"topics/{thirty}/trim", {"before": {number: "0"}, "confirm": thirty}),
        ("groups/g/reset", {"offsets": {thirty: {"0": number}}}),
        ("groups/g/reset", {"offsets": {thirty: {number: "0"}}}),
        ("groups/g/reset", {"to": f"offset:{number}x"}),
        ("transactions/abort", {"topic": thirty, "partition": 0, "start_offset": number}),
        (records, {"value": "v", "timestamp": number}),
        ("conditions/check", {"where": "size > 0", "record": {"topic": thirty, "partition": 0, "offset": number}}),
    ]
    for path, body in posts:
        assert console.refusal(path, "POST", body)[0] == 400, (path, body)


@pytest.mark.parametrize(
    "body",
    [
        f'{{"before": {{"0": {LONG}}}, "confirm": "thirty"}}',
        '{"before": {"0": 1e400}, "confirm": "thirty"}',
        '{"before": {"0": NaN}, "confirm": "thirty"}',
        '{"before": {"0": true}, "confirm": "thirty"}',
    ],
)
def test_json_numbers_beyond_all_bounds_are_refused(console: RunningConsole, thirty: str, body: str) -> None:
    reply = console.client.post(f"api/v1/topics/{thirty}/trim", content=body, headers=JSON)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "bad_request")


@pytest.mark.parametrize("seconds", ["NaN", "Infinity", "-Infinity", '"nan"', '"inf"', "1e999", "true", LONG])
def test_the_bounds_of_a_search_are_numbers(console: RunningConsole, thirty: str, seconds: str) -> None:
    with console.events(TAB) as events:
        next(events)
        body = f'{{"kind": "search", "topic": "{thirty}", "limits": {{"seconds": {seconds}}}}}'
        reply = console.client.post(f"api/v1/tabs/{TAB}/subscriptions", content=body, headers=JSON)
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "bad_request")
