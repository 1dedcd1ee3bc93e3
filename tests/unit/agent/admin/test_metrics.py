"""`/metrics` is what Prometheus reads: every metric has its help and type once, and labels hold any name."""

from __future__ import annotations

import re
from dataclasses import replace

from penstock.agent.admin.metrics import names, page
from penstock.agent.admin.snapshot import InputSnapshot, Snapshot
from penstock.agent.counting import TransactionsStatus
from penstock.agent.inputs.input import FileStatus, SlotStatus

SNAPSHOT = Snapshot(
    'a"b',
    version="1",
    brokers_up=True,
    up_s=1.5,
    inputs={
        "access": InputSnapshot("tail", events=12, details=[FileStatus('/log/"x"\n\udcff', 30, 20, 10)]),
        "api": InputSnapshot("http", refused=3),
        "db": InputSnapshot("postgres", slot=SlotStatus("penstock_db", True, 400, 70_000, "unreserved")),
    },
)


def test_every_metric_is_explained_once_and_named() -> None:
    text = page(SNAPSHOT)
    typed = re.findall(r"^# TYPE (\S+) (?:counter|gauge)$", text, re.M)
    assert typed == names()
    assert re.findall(r"^# HELP (\S+) \S", text, re.M) == typed
    used = {re.match(r"[a-z_]+", line)[0] for line in text.splitlines() if line[0] != "#"}  # type: ignore[index]  # all match
    assert used == set(typed)


def test_values_carry_the_names_of_their_inputs() -> None:
    text = page(SNAPSHOT)
    assert 'penstock_agent_events_total{input="access",type="tail"} 12\n' in text
    assert 'penstock_agent_refused_total{input="api",type="http"} 3\n' in text
    assert "penstock_agent_broker_up 1\n" in text
    assert 'penstock_agent_slot_lag_bytes{input="db",slot="penstock_db"} 400\n' in text
    assert 'penstock_agent_slot_kept_bytes{input="db",slot="penstock_db"} 70000\n' in text
    assert 'penstock_agent_slot_at_risk{input="db",slot="penstock_db"} 1\n' in text
    assert "penstock_agent_up_seconds 1.5\n" in text
    assert 'penstock_agent_info{name="a\\"b",version="1"} 1\n' in text


def test_files_are_told_only_when_asked_for_whatever_their_names() -> None:
    assert "file_size" not in page(SNAPSHOT)
    text = page(SNAPSHOT, files=True)
    assert 'penstock_agent_file_safe_bytes{input="access",path="/log/\\"x\\"\\n?"} 10\n' in text
    assert re.findall(r"^# TYPE (\S+)", text, re.M) == names(files=True)
    text.encode()


def test_an_agent_in_transactions_tells_how_they_ended() -> None:
    transactions = TransactionsStatus("penstock-agent/a/m", "__penstock_agent", 3, 17, 2, 0.25)
    told = page(replace(SNAPSHOT, transactions=transactions)).splitlines()
    for line in (
        "penstock_agent_exactly_once 1",
        "penstock_agent_transactions_committed_total 17",
        "penstock_agent_transactions_aborted_total 2",
        "penstock_agent_last_commit_age_seconds 0.25",
    ):
        assert line in told
    assert "penstock_agent_exactly_once 0" in page(SNAPSHOT).splitlines()
