"""The broker inside the test process: several at once, restarted, failing, and gone without a trace."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.model.config import BadSettings
from penstock.testing import EmbeddedBroker, broker
from tests.patience import within

QUIET = {"log_level": 0}


def put(bootstrap: str, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(within(30)) == 0


def get(bootstrap: str, topic: str, count: int) -> list[bytes]:
    # Without groups there is nobody to commit to, and librdkafka would wait for one when it closes.
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "any", "enable.auto.commit": False, **QUIET})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        return [record.value() for record in consumer.consume(count, timeout=30)]
    finally:
        consumer.close()


def test_brokers_stand_side_by_side_and_share_nothing() -> None:
    with broker() as one, broker() as other:
        assert one.bootstrap_servers != other.bootstrap_servers
        put(one.bootstrap_servers, "t", b"one")
        put(other.bootstrap_servers, "t", b"other")
        assert get(one.bootstrap_servers, "t", 1) == [b"one"]
        assert get(other.bootstrap_servers, "t", 1) == [b"other"]


def test_a_restart_keeps_data_and_port() -> None:
    with broker() as running:
        before = running.bootstrap_servers
        put(before, "t", b"first")
        running.restart()
        assert running.bootstrap_servers == before
        put(before, "t", b"second")
        assert get(before, "t", 2) == [b"first", b"second"]


def test_settings_are_kafkas_names_with_python_values() -> None:
    with broker({"num.partitions": 4, "auto.create.topics.enable": False}) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers, **QUIET})
        admin.create_topics([NewTopic("t")])["t"].result(within(30))
        assert len(admin.list_topics("t", timeout=within(30)).topics["t"].partitions) == 4
        assert admin.list_topics("absent", timeout=within(30)).topics["absent"].error is not None


def test_data_stays_in_a_directory_of_ones_own(tmp_path: Path) -> None:
    for count in (1, 2):
        with broker(data_dir=str(tmp_path)) as running:
            assert running.data_dir == str(tmp_path)
            put(running.bootstrap_servers, "t", b"x")
            assert len(get(running.bootstrap_servers, "t", count)) == count


def test_health_is_where_it_says() -> None:
    with broker() as running, urllib.request.urlopen(f"{running.admin_url}/readyz", timeout=within(10)) as reply:
        assert json.load(reply)["status"] == "ready"


def test_what_keeps_it_from_starting_is_raised_where_it_was_started() -> None:
    with pytest.raises(BadSettings, match=r"did you mean log\.segment\.bytes"), broker({"log.segment.byte": 1}):
        pass


def test_a_directory_in_use_is_refused_and_its_owner_not_disturbed(tmp_path: Path) -> None:
    with broker(data_dir=str(tmp_path)) as owner:
        with pytest.raises(Exception, match="is in use by another process"), broker(data_dir=str(tmp_path)):
            pass
        put(owner.bootstrap_servers, "t", b"still here")


def test_it_stops_when_the_test_fails() -> None:
    with pytest.raises(ZeroDivisionError), broker() as running:
        _ = 1 / 0
    assert not running.running


def test_stopping_and_starting_twice_is_fine(tmp_path: Path) -> None:
    running = EmbeddedBroker(str(tmp_path), {})
    running.stop()
    running.start()
    running.start()
    running.stop()
    running.stop()
    assert not running.running


def test_it_may_be_used_inside_a_running_loop() -> None:
    async def main() -> str:
        with broker() as running:
            host, _, port = running.bootstrap_servers.partition(":")
            _, writer = await asyncio.open_connection(host, int(port))
            writer.close()
            await writer.wait_closed()
            return running.bootstrap_servers

    assert asyncio.run(main()).startswith("127.0.0.1:")


COMES_AND_GOES = """
import contextlib, gc, os, threading
from penstock.model.config import BadSettings
from penstock.testing import broker

def open_files():
    gc.collect()
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    return {link: os.readlink(link) for link in links if os.path.exists(link)}

with broker():
    pass  # loads what stays loaded
before = open_files()
with broker() as running:
    running.restart()
with contextlib.suppress(BadSettings), broker({"nonsense": 1}):
    print("a setting that does not exist was taken")
print(*(path for link, path in open_files().items() if link not in before), sep="\\n", end="")
print(*(thread.name for thread in threading.enumerate() if thread is not threading.main_thread()), sep="\\n", end="")
"""


def test_no_thread_file_or_socket_stays_behind() -> None:
    """In a process of its own: brokers that other tests share have threads that come when there is work."""
    done = subprocess.run([sys.executable, "-c", COMES_AND_GOES], capture_output=True, text=True, timeout=within(60))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_no_warning_is_left_for_the_end_of_the_process() -> None:
    script = "from penstock.testing import broker\nwith broker() as b:\n    b.restart()\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=within(60)
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_plugin_costs_other_test_suites_nothing() -> None:
    script = "import sys, penstock.testing.plugin\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=within(60), check=True
    )
    assert (
        set(done.stdout.split())
        & {"uvloop", "penstock.server", "penstock.model.ids", "penstock.model.ports", "asyncio"}
        == set()
    )


def test_the_fixture_is_a_fresh_broker(penstock_broker: EmbeddedBroker) -> None:
    admin = AdminClient({"bootstrap.servers": penstock_broker.bootstrap_servers, **QUIET})
    assert not admin.list_topics(timeout=within(30)).topics
