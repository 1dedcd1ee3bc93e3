"""What a driver hears of its queries on its way to groups and the internal topic; Spark's words are made up here."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest

from penstock.blocking import Admin, Consumer, Producer
from penstock.model.ids import TopicPartition
from penstock.spark.naming import INTERNAL_TOPIC
from penstock.spark.offsets import StreamOffset
from penstock.spark.progress.publishing import COMMIT_AGAIN_S, QUERIES_MAX, Publishing, Run
from penstock.spark.progress.records import ExpectationCount, ProgressRecord
from penstock.testing import EmbeddedBroker, broker
from tests.patience import wait_for, within

PATIENCE_S = 20.0
A0 = TopicPartition("a", 0)


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedBroker]:
    with broker() as found:
        with Admin(bootstrap_servers=found.bootstrap_servers) as admin:
            admin.create_topic("a", 1)
        with Producer(bootstrap_servers=found.bootstrap_servers) as producer:
            for _ in range(100):
                producer.send("a", b"v")
            producer.flush()
        yield found


@pytest.fixture
def publishing() -> Iterator[Publishing]:
    found = Publishing()
    yield found
    found.close()


def words(bootstrap: str, name: str, batch: int, end: int) -> str:
    offset = StreamOffset({A0: end}, {"a": "id"}, bootstrap=bootstrap).to_json()
    source = {"endOffset": offset, "latestOffset": {"a": {"0": 100}}}
    return json.dumps(
        {
            "id": "id-" + name,
            "runId": "run-" + name,
            "name": name,
            "batchId": batch,
            "timestamp": "",
            "sources": [source],
        }
    )


def hear(publishing: Publishing, bootstrap: str, name: str, batch: int, end: int) -> None:
    def change(run: Run) -> None:
        run.told(words(bootstrap, name, batch, end), late_rows=0)

    publishing.post("run-" + name, change, lambda: Run("shop", "", name, "id-" + name, "run-" + name))


def wait_until(true: Callable[[], bool]) -> None:
    wait_for("what was waited for", true, timeout_s=PATIENCE_S)


def committed(running: EmbeddedBroker, name: str) -> int | None:
    with Admin(bootstrap_servers=running.bootstrap_servers) as admin:
        found = admin.group_offsets(f"spark-{name}").get(A0)
    return found.offset if found else None


def told(running: EmbeddedBroker, name: str) -> list[dict[str, object]]:
    with Consumer(bootstrap_servers=running.bootstrap_servers) as consumer:
        consumer.assign([(INTERNAL_TOPIC, 0)])
        consumer.seek_to_start()
        end = consumer.end_offsets((INTERNAL_TOPIC, 0))[TopicPartition(INTERNAL_TOPIC, 0)]
        records = []
        while consumer.position((INTERNAL_TOPIC, 0)) < end:
            records += consumer.poll(timeout_ms=200)
    return [json.loads(record.value or b"") for record in records if record.key == f"progress/shop/{name}".encode()]


def test_every_batch_is_committed_and_the_last_word_is_told(running: EmbeddedBroker, publishing: Publishing) -> None:
    for batch in range(20):
        hear(publishing, running.bootstrap_servers, "fast", batch, 50 + batch)
    wait_until(lambda: committed(running, "fast") == 69)
    assert publishing.flush(within(PATIENCE_S))
    records = told(running, "fast")
    assert records[-1]["batch_id"] == 19
    assert len(records) < 20


def test_late_rows_of_batches_whose_news_were_replaced_are_counted_too() -> None:
    run = Run("shop", "", "late", "id-late", "run-late")
    for batch, late_rows in enumerate((3, 0, 4)):
        run.told(words("b:1", "late", batch, 10), late_rows)
    run.hear()
    assert run.record is not None
    assert (run.record.batch_id, run.record.late_rows) == (2, 7)


def test_broken_rules_of_batches_whose_news_were_replaced_are_counted_too() -> None:
    run = Run("shop", "", "ruled", "id-ruled", "run-ruled")
    for batch, broken in enumerate((3, 0, 4)):
        news = json.loads(words("b:1", "ruled", batch, 10))
        run.told(json.dumps({**news, "observedMetrics": {"expect.orders": {"rows": 5, "small": broken}}}), 0)
    run.hear()
    assert run.record is not None
    assert run.record.expectations == (ExpectationCount("orders", "small", 15, 7),)
    assert ProgressRecord.of_json(json.loads(json.dumps(run.record.to_json()))) == run.record


def test_the_end_of_a_query_is_told_at_once(running: EmbeddedBroker, publishing: Publishing) -> None:
    hear(publishing, running.bootstrap_servers, "ending", 1, 10)
    assert publishing.flush(within(PATIENCE_S))

    def change(run: Run) -> None:
        run.ended, run.error = True, "it broke"

    publishing.post("run-ending", change)
    assert publishing.flush(within(PATIENCE_S))
    last = told(running, "ending")[-1]
    assert (last["batch_id"], last["active"], last["error"]) == (1, False, "it broke")
    assert publishing._runs == {}


def test_a_query_that_failed_before_its_first_batch_is_told_at_home(
    running: EmbeddedBroker, publishing: Publishing
) -> None:
    def change(run: Run) -> None:
        run.ended, run.error = True, "no such topic"

    home = running.bootstrap_servers
    publishing.post("run-early", change, lambda: Run("shop", home, "early", "id-early", "run-early"))
    assert publishing.flush(within(PATIENCE_S))
    (only,) = told(running, "early")
    assert (only["batch_id"], only["active"], only["error"]) == (-1, False, "no such topic")


def test_the_reason_of_a_failure_is_told_and_not_the_beginning_of_sparks_words() -> None:
    run = Run("shop", "b:1", "failed", "id-failed", "run-failed")
    frames = "".join(f'  File "/home/ann/steps.py", line {line}, in deep\n' for line in range(200))
    run.error = (
        "org.apache.spark.sql.streaming.StreamingQueryException: [STREAM_FAILED] Query [id = x] terminated with "
        f"exception: Traceback (most recent call last):\n{frames}KeyError: 'amount'\n SQLSTATE: 38000\n"
        "=== Streaming Query ===\n"
    )
    run.end()
    assert run.record is not None
    assert run.record.error == "KeyError: 'amount' (steps.py, line 199, in deep)"


def test_an_idle_query_commits_again_before_its_offsets_are_forgotten(running: EmbeddedBroker) -> None:
    now_s = 0.0
    publishing = Publishing(lambda: now_s)
    hear(publishing, running.bootstrap_servers, "idle", 1, 10)
    wait_until(lambda: committed(running, "idle") == 10)
    with Admin(bootstrap_servers=running.bootstrap_servers) as admin:
        admin.delete_group("spark-idle")

    def idle(run: Run) -> None:
        run.idle = True

    publishing.post("run-idle", idle)
    assert publishing.flush(within(PATIENCE_S))
    assert committed(running, "idle") is None
    now_s = COMMIT_AGAIN_S
    publishing.post("run-idle", idle)
    wait_until(lambda: committed(running, "idle") == 10)
    publishing.close()


def test_words_of_spark_that_are_not_understood_are_passed_over(
    running: EmbeddedBroker, publishing: Publishing, caplog: pytest.LogCaptureFixture
) -> None:
    def change(run: Run) -> None:
        run.news = '{"sources": 7}'

    publishing.post("run-odd", change, lambda: Run("shop", "", "odd", "id-odd", "run-odd"))
    assert publishing.flush(within(PATIENCE_S))
    assert "is not understood" in caplog.text


def test_posting_never_waits_for_a_broker_that_is_away(publishing: Publishing) -> None:
    begun = time.monotonic()
    for batch in range(200):
        hear(publishing, "127.0.0.1:1", "away", batch, batch)
    assert time.monotonic() - begun < within(1.0)
    assert len(publishing._runs) == 1


def test_only_so_many_queries_are_remembered(publishing: Publishing) -> None:
    for number in range(QUERIES_MAX + 5):
        publishing.post(f"r{number}", lambda _: None, lambda: Run("shop", "", "many", "id", "run"))
    assert len(publishing._runs) <= QUERIES_MAX
    assert publishing.dropped == 5


def test_a_source_may_name_its_group_or_be_quiet() -> None:
    run = Run("shop", "", "q", "id", "run")
    sources = [
        StreamOffset({A0: 5}, bootstrap="here:1", query="mine"),
        StreamOffset({A0: 6}, bootstrap="here:1", quiet=True),
        StreamOffset({A0: 7}, bootstrap="there:1"),
    ]
    told = {"id": "id", "runId": "run", "name": "q", "batchId": 0, "timestamp": ""}
    run.news = json.dumps({**told, "sources": [{"endOffset": each.to_json()} for each in sources]})
    run.hear()
    assert run.offsets == {("here:1", "mine", False): {A0: 5}, ("there:1", "q", False): {A0: 7}}
    assert run.bootstraps == ["here:1", "there:1"]


@pytest.mark.parametrize("by", ["the pipeline", "the environment"])
def test_a_secured_cluster_is_told_with_the_login(
    by: str, publishing: Publishing, monkeypatch: pytest.MonkeyPatch
) -> None:
    with broker(secure=True) as secured:
        login = {name: str(value) for name, value in secured.client_settings.items() if name != "bootstrap_servers"}
        if by == "the pipeline":
            publishing.log_in(secured.bootstrap_servers, login)
        else:
            monkeypatch.setenv("PENSTOCK_CLIENT_CONFIG", str(secured.client_files.java))
        with Admin(**secured.client_settings) as admin:
            admin.create_topic("a", 1)
            with Producer(**secured.client_settings) as producer:
                producer.send("a", b"v").result()
            hear(publishing, secured.bootstrap_servers, "kept", 1, 1)
            wait_until(lambda: A0 in admin.group_offsets("spark-kept"))
            assert publishing.flush(within(PATIENCE_S))
            assert INTERNAL_TOPIC in {topic.name for topic in admin.topics(internal=True)}


def test_a_login_that_cannot_be_read_stops_nobody(
    running: EmbeddedBroker, publishing: Publishing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CLIENT_CONFIG", "/nowhere/client.properties")
    hear(publishing, running.bootstrap_servers, "without", 1, 3)
    wait_until(lambda: committed(running, "without") == 3)
