"""`penstock pipeline …`: what it prints where and its exit codes; one life of a pipeline in real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyarrow.dataset import dataset

from penstock.processes import birth_of
from penstock.spark.pipeline import home
from penstock.spark.pipeline.home import Home, Progress, SinkProgress, State
from penstock.spark.progress.records import PartitionProgress
from penstock.spark.values.dead_letters import DeadLetters
from penstock.spark.values.letters import DeadLetter, Reader
from tests.cli.command import Said, penstock
from tests.compat.processes import wait_for

NOWHERE = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A state directory of the test's own; no process that is named in it outlives the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield
    for place in home.homes():
        found = place.state()
        if found is not None and found.alive and found.pid != os.getpid():
            os.kill(found.pid, signal.SIGKILL)
            with suppress(ProcessLookupError):
                os.killpg(found.driver_pid, signal.SIGKILL)


@pytest.fixture
def topic(bootstrap: str) -> str:
    name = f"p-{uuid.uuid4().hex[:12]}"
    penstock("topic", "create", name, "-p", "2", "-b", bootstrap)
    return name


def send(bootstrap: str, topic: str, *ids: int) -> None:
    rows = [json.dumps({"id": i, "country": "nl", "at": "2026-11-01T10:00:00Z"}) for i in ids]
    assert penstock("produce", topic, "-b", bootstrap, stdin="\n".join(rows)).code == 0


def pipeline(*arguments: str | Path, stdin: str = "", cwd: Path | None = None) -> Said:
    return penstock("pipeline", *arguments, stdin=stdin, cwd=cwd)


def state(pid: int, **changes: object) -> State:
    values = {"name": "orders", "state": home.RUNNING, "born": birth_of(pid), "file": "/p.toml", "bootstrap": "b:1"}
    return State(
        pid=pid, host="h", digest="d", master="local", warehouse="w",
        started_ms=0, **{**values, **changes},  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_first_file_is_valid_and_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    said = pipeline("init", file, "-b", "broker:9092")
    assert (said.code, said.out) == (0, "")
    assert 'bootstrap = "broker:9092"' in file.read_text()
    assert pipeline("validate", file) == (0, "", f"{file} is fine\n")
    again = pipeline("init", file)
    assert (again.code, again.err) == (1, f"penstock: {file} is there already; --force replaces it\n")


def test_a_first_file_has_the_columns_of_the_topic(bootstrap: str, topic: str, tmp_path: Path) -> None:
    send(bootstrap, topic, 1, 2, 3)
    said = pipeline("init", tmp_path / "p.toml", "--topic", topic, "-b", bootstrap)
    assert said.code == 0
    assert "3 records looked at" in said.err
    assert 'schema = "id BIGINT, country STRING, at TIMESTAMP"' in (tmp_path / "p.toml").read_text()


def test_validate_tells_every_mistake_with_its_place_and_fails(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text('name = "p"\n[sources.a]\ntpic = "t"\n[sinks.b]\nfrom = "c"\nconsole = true\n')
    said = pipeline("validate", file)
    assert said.code == 1
    assert said.out.splitlines() == [
        f"{file}:2:1: sources.a has none of topic, topics, pattern and table: exactly one says what to read",
        f"{file}:3:1: 'tpic' means nothing in sources.a; did you mean 'topic'?",
        f"{file}:5:1: sink b reads 'c', which is neither a source nor a step; there is 'a'",
    ]
    data = pipeline("validate", file, "--format", "json").data
    assert [(each["line"], each["severity"]) for each in data] == [(2, "error"), (3, "error"), (5, "error")]
    assert pipeline("run", file).code == 1


BROKEN_SQL = """\
name = "p"
[sources.orders]
topic = "orders"
format = "json"
schema = "id BIGINT, country STRING"
[[steps]]
name = "few"
sql = "SELECT id, contry FROM orders"
[sinks.out]
from = "few"
console = true
"""


def test_validate_finds_columns_that_are_not_there_without_a_broker(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(BROKEN_SQL)
    said = pipeline("validate", file)
    assert said.code == 1
    assert said.out.startswith(f"{file}:8:19: step few: the SQL names a column that its input has not")
    assert "Did you mean one of the following? [`country`, `id`]" in said.out
    assert said.err == f"{file} has 1 mistake\n"
    assert pipeline("validate", file, "--no-deep") == (0, "", f"{file} is fine\n")


def test_without_java_validate_says_that_sql_was_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "p.toml"
    file.write_text(BROKEN_SQL)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    said = pipeline("validate", file)
    assert (said.code, said.out) == (0, "")
    assert "warning: the SQL of p.toml was not checked: Spark needs Java 17 or newer, but JAVA_HOME=" in said.err
    insisted = pipeline("validate", file, "--deep")
    assert insisted.code == 1
    assert insisted.err.startswith("penstock: Spark needs Java 17 or newer")


def test_a_warning_is_no_failure(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    pipeline("init", file)
    file.write_text(file.read_text() + '[sources.idle]\ntopic = "x"\n')
    said = pipeline("validate", file)
    assert said.code == 0
    assert "warning: " in said.err
    assert "source idle goes to no sink" in said.err


@pytest.mark.parametrize("arguments", [("validate",), ("run", "--once"), ("reset", "--yes")])
def test_without_the_extra_the_way_to_get_it_is_told(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    file = tmp_path / "p.toml"
    pipeline("init", file)
    command, *flags = arguments
    without = "import sys; sys.modules['pyspark'] = None; from penstock.cli.main import main; main(sys.argv[1:])"
    said = subprocess.run(
        [sys.executable, "-c", without, "pipeline", command, str(file), *flags],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr == "penstock: pyspark is not installed: pip install 'penstock[spark]'\n"


def test_a_missing_topic_is_told_before_spark_starts(bootstrap: str, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    pipeline("init", file, "-b", bootstrap)
    file.write_text(file.read_text().replace('topic = "orders"', f'topic = "{topic}s"'))
    said = pipeline("run", file)
    assert said.code == 3
    assert f"{file}:12: source orders reads topic '{topic}s', which is not there; did you mean '{topic}'?" in said.err
    found = pipeline("status", "p", "-b", bootstrap)
    assert found.code == 10
    assert "p  (failed, last on" in found.out


def test_a_broker_that_is_not_there_and_java_that_is_not_there(
    bootstrap: str, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "p.toml"
    pipeline("init", file, "-b", NOWHERE)
    said = pipeline("run", file)
    assert said.code == 5
    assert f"no broker answers at {NOWHERE}" in said.err
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    said = pipeline("run", file)
    assert said.code == 1
    assert "Spark needs Java 17 or newer, but JAVA_HOME=" in said.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--from", "earliest"), "--from is for --backfill"),
        (("--backfill",), "--backfill needs --from"),
        (("--backfill", "--from", "yesterday"), "'yesterday' is no time"),
        (("--sink", "lak"), "has no sink 'lak'; did you mean 'lake'?"),
        (("--backfill", "--from", "earliest", "--detach"), "--backfill ends by itself"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    pipeline("init", tmp_path / "p.toml")
    said = pipeline("run", tmp_path / "p.toml", *arguments)
    assert said.code == 2
    assert words in said.err


def test_a_pipeline_that_nobody_knows_is_not_found(bootstrap: str) -> None:
    for command in ("status", "stop"):
        said = pipeline(command, "nothing", "-b", bootstrap)
        assert (said.code, said.err) == (3, "penstock: no pipeline 'nothing' is known\n")
    assert pipeline("reset", "nothing").code == 3
    assert pipeline("list", "-b", NOWHERE).code == 5


def test_a_process_that_died_is_not_taken_for_one_that_runs(bootstrap: str) -> None:
    Home("orders").write_state(state(os.getpid(), born="another-boot/7"))
    (found,) = [each for each in pipeline("list", "--format", "json", "-b", bootstrap).data if each["name"] == "orders"]
    assert found["state"] == "died"
    assert pipeline("stop", "orders", "-b", bootstrap).err == "orders is not running: it is died\n"


def test_lag_is_that_of_now_and_not_of_the_last_batch(bootstrap: str, topic: str) -> None:
    places = tuple(PartitionProgress(topic, number, 0, 0) for number in range(2))
    sink = SinkProgress("lake", "table", "t", "failed", "orders-lake", batch_id=0, partitions=places)
    Home("orders").write_progress(Progress(1, home.FAILED, (sink,)))
    Home("orders").write_state(state(os.getpid(), state=home.STOPPED, bootstrap=bootstrap))
    send(bootstrap, topic, 1, 2, 3)
    assert pipeline("status", "orders", "--format", "json", "-b", bootstrap).data["lag"] == 3
    listed = pipeline("list", "--format", "json", "-b", bootstrap).data
    assert [each["lag"] for each in listed if each["name"] == "orders"] == [3]
    Home("orders").write_state(state(os.getpid(), state=home.STOPPED, bootstrap=NOWHERE))
    away = pipeline("status", "orders", "-b", bootstrap)
    assert f"the lag is that of the last batch: no broker answers at {NOWHERE}" in away.err


def test_check_holds_a_pipeline_to_what_its_file_promises(bootstrap: str, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "orders.toml"
    pipeline("init", file, "--topic", topic, "-b", bootstrap)
    promised = file.read_text().replace("[sinks.lake]", '[sinks.lake]\nfresh_within = "1 hour"')
    file.write_text(promised)
    never = pipeline("check", file, "--format", "json")
    assert (never.code, never.data[0]["met"], never.data[0]["fresh_s"]) == (10, False, None)
    places = tuple(PartitionProgress(topic, number, 0, 0) for number in range(2))
    sink = SinkProgress("lake", "table", "t", "stopped", "orders-lake", batch_id=0, partitions=places)
    Home("orders").write_progress(Progress(1, home.STOPPED, (sink,)))
    Home("orders").write_state(state(os.getpid(), state=home.STOPPED, bootstrap=bootstrap))
    assert pipeline("check", file).code == 0
    send(bootstrap, topic, 1, 2, 3)
    waiting = pipeline("check", file, "--format", "json")
    assert (waiting.code, 0 < waiting.data[0]["fresh_s"] < 3_600) == (0, True)
    file.write_text(promised.replace("1 hour", "1 millisecond"))
    missed = pipeline("check", file)
    assert missed.code == 10
    assert "and 1 ms is promised" in missed.out
    file.write_text(promised.replace('fresh_within = "1 hour"', ""))
    nothing = pipeline("check", file)
    assert (nothing.code, 'promises anything: fresh_within = "30 seconds" would' in nothing.err) == (0, True)


def test_reset_says_what_it_means_before_it_asks(bootstrap: str, tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    pipeline("init", file, "-b", bootstrap)
    offsets = tmp_path / "lake" / "_checkpoints" / "p" / "lake" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").touch()
    refused = pipeline("reset", file, stdin="n\n")
    assert refused.code == 1
    assert "lake  -      begins anew at earliest: table orders has no offsets and is filled" in refused.err
    assert offsets.exists()
    Home("p").write_state(state(os.getpid(), name="p", file=str(file)))
    assert "p is running on h: `penstock pipeline stop p` first" in pipeline("reset", file, "--yes").err
    Home("p").write_state(state(os.getpid(), name="p", file=str(file), state=home.STOPPED))
    assert pipeline("reset", "p", "--yes").code == 0
    assert not offsets.exists()


@pytest.mark.timeout(300)
def test_a_detached_pipeline_outlives_its_driver_and_stops_when_told(
    bootstrap: str, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "alive.toml"
    send(bootstrap, topic, 1, 2, 3)
    pipeline("init", file, "--topic", topic, "-b", bootstrap)
    file.write_text(file.read_text().replace('"10 seconds"', '"continuous"'))
    started = pipeline("run", file, "--detach", "--master", "local[2,4]", "--format", "json")
    assert (started.code, started.data["state"] in ("starting", "running")) == (0, True), started.err
    place = Home("alive")

    def ids() -> list[int]:
        table = DeltaTable(f"{tmp_path}/lake/{topic.replace('-', '_')}")
        return sorted(dataset(table.file_uris(), format="parquet").to_table().column("id").to_pylist())

    def done(rows: int) -> State | None:
        """The state once a driver has told of so many rows."""
        progress, found = place.progress(), place.state()
        return found if progress is not None and sum(sink.rows for sink in progress.sinks) == rows else None

    try:
        first = wait_for("three rows", lambda: done(3), timeout_s=60)
        again = pipeline("run", file)
        assert (again.code, "alive runs on this machine already" in again.err) == (1, True)
        os.kill(first.driver_pid, signal.SIGKILL)
        send(bootstrap, topic, 4)
        second = wait_for("the row that came meanwhile", lambda: done(1), timeout_s=90)
        assert (second.restarts, second.driver_pid != first.driver_pid) == (1, True)
        assert ids() == [1, 2, 3, 4]
        found = pipeline("status", "alive", "--format", "json", "-b", bootstrap)
        assert (found.code, found.data["state"], found.data["sinks"][0]["state"]) == (0, "running", "running")
    finally:
        stopped = pipeline("stop", "alive", "-b", bootstrap)
    assert (stopped.code, stopped.err) == (0, "alive is stopped\n")


@pytest.mark.parametrize("room", ["pipeline", "agent"])
def test_a_file_that_is_no_text_is_no_bug_of_ours(tmp_path: Path, room: str) -> None:
    file = tmp_path / "f.toml"
    file.write_bytes(b'name = "x"\n\xff\n')
    said = penstock(room, "validate", file)
    assert (said.code, said.err) == (1, f"penstock: {file}:2: this is not UTF-8 text: invalid start byte\n")


def test_dead_letters_are_counted_and_then_sent_back(bootstrap: str, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "mended.toml"
    file.write_text(
        f'name = "mended"\nbootstrap = "{bootstrap}"\n[sources.orders]\ntopic = "{topic}"\nformat = "json"\n'
        'schema = "id BIGINT"\ndead_letters = "table:dead"\n[sinks.lake]\nfrom = "orders"\ntable = "orders"\n'
    )
    letters = [DeadLetter(topic, 0, offset, None, b"k", b"{}", (), "not JSON: it was") for offset in (4, 5)]
    DeadLetters.of(f"table:{tmp_path}/lake/dead").deliver(letters, Reader("q", 1))
    counted = pipeline("redrive", file, "--source", "orders", "--dry-run")
    assert counted.out.splitlines() == [
        "TOPIC           LETTERS",
        f"{topic}  2",
        "",
        "LETTERS  WHY",
        "2        not JSON: it was",
    ]
    assert counted.err == f"2 letters of table:{tmp_path}/lake/dead would be sent\n"
    assert penstock("consume", topic, "-e", "-b", bootstrap).out == ""
    sent = pipeline("redrive", file, "--source", "orders", "--limit", "1", "--format", "json")
    assert (sent.data["letters"], sent.data["by_target"], sent.data["done"]) == (1, {topic: 1}, False)
    assert "some may be left; the same command goes on" in sent.err
    assert [pipeline("redrive", file, "--source", "orders", "--format", "json").data["letters"] for _ in "ab"] == [1, 0]
    assert len(penstock("consume", topic, "-e", "-b", bootstrap).out.splitlines()) == 2
