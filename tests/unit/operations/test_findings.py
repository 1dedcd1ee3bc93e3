"""The doctor's words, from facts alone."""

from __future__ import annotations

import socket
import threading
from typing import get_args

import pytest

from penstock.client.admin import LogDirInfo
from penstock.operations.diagnosis import findings
from penstock.operations.diagnosis.probe import Answer, Knock, knock
from penstock.operations.health import Reason
from penstock.security.weak_settings import Weakness
from penstock.testing import broker

OURS = dict.fromkeys(findings.NEEDED, (2, 5))


@pytest.mark.parametrize("answer", get_args(Answer))
def test_every_answer_but_a_good_one_has_words(answer: Answer) -> None:
    found = findings.bootstrap_finding("h:1", Knock(answer))
    if answer == "kafka":
        assert found is None
    else:
        assert found is not None
        assert (found.level, found.kind) == ("problem", f"bootstrap_{answer}")
        assert "h:1" in found.what
        assert found.why
        assert found.attempt


@pytest.mark.parametrize(
    ("days", "level"), [(365, None), (30, None), (29, "notice"), (7, "notice"), (6, "problem"), (-1, "problem")]
)
def test_a_certificate_is_told_before_it_ends(days: int, level: str | None) -> None:
    found = findings.certificate_finding("h:1", "CN=node-1", days)
    assert (found and found.level) == level


def test_a_weak_setting_is_a_notice() -> None:
    (found,) = findings.weak_findings(1, [Weakness("super.users", "too many")])
    assert (found.level, found.what) == ("notice", "super.users of broker 1: too many")


def test_an_advertised_localhost_is_told_to_be_the_clients_own() -> None:
    assert findings.advertised_finding(1, "h:1", "b:1", Knock("kafka")) is None
    found = findings.advertised_finding(1, "localhost:9092", "b:1", Knock("refused"))
    assert found is not None
    assert "the client's own machine" in found.what
    assert "advertised.listeners" in found.attempt


def test_versions_must_overlap() -> None:
    served = {**OURS, "Fetch": (6, 9), "Produce": (0, 1)}
    del served["Metadata"]
    found = findings.version_findings(1, served, OURS)
    assert [each.what for each in found] == [
        "broker 1 does not serve Metadata",
        "broker 1 serves Produce 0-1, this client knows 2-5",
        "broker 1 serves Fetch 6-9, this client knows 2-5",
    ]


@pytest.mark.parametrize(
    "kind",
    [
        "no_controller",
        "voters_behind",
        "voters_replaced",
        "brokers_down",
        "damaged",
        "leaderless",
        "under_min_isr",
        "under_replicated",
        "late_transactions",
        "offline_dirs",
    ],
)
def test_every_reason_of_ill_health_has_words(kind: str) -> None:
    (found,) = findings.health_findings([Reason(kind, "something", ["x"])])
    assert (found.kind, found.what) == (kind, "something: x")


def test_a_disk_that_fills_up_is_named() -> None:
    dirs = {
        1: [LogDirInfo("/low", None, 100, 9, []), LogDirInfo("/fine", None, 100, 10, [])],
        2: [LogDirInfo("/gone", "KAFKA_STORAGE_ERROR", 100, 0, []), LogDirInfo("/untold", None, -1, -1, [])],
    }
    (found,) = findings.disk_findings(dirs)
    assert found.what == "/low of broker 1 has 9 % free"


def test_lag_is_a_notice_with_the_way_out() -> None:
    idle, busy = findings.lag_findings({"idle": (11, 0), "busy": (12, 2), "fine": (10, 0)}, 10)[::-1]
    assert (idle.level, idle.what) == ("notice", "group idle is 11 records behind; it has no members")
    assert "with 2 members it is slower" in busy.what


@pytest.mark.parametrize(("difference_ms", "found"), [(999, False), (-999, False), (1_100, True), (-5_000, True)])
def test_clocks_differ_or_not(difference_ms: float, found: bool) -> None:
    assert (findings.clock_finding(difference_ms, 0) is not None) is found
    assert findings.clock_finding(difference_ms, 5_000) is None


def test_a_broker_answers_a_knock() -> None:
    with broker() as running:
        host, _, port = running.bootstrap_servers.partition(":")
        assert knock(host, int(port)).answer == "kafka"


@pytest.mark.parametrize(
    ("reply", "answer"), [(b"", "closed"), (b"\x15\x03\x03\x00\x02\x02\x46\x00", "tls"), (b"SSH-2.0-x\r\n", "silent")]
)
def test_strangers_are_told_apart(reply: bytes, answer: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    peer, _ = listening.accept()
                except OSError:
                    return
                with peer:
                    peer.recv(100)
                    peer.sendall(reply)

        threading.Thread(target=serve, daemon=True).start()
        assert knock("127.0.0.1", listening.getsockname()[1], timeout_s=1).answer == answer
