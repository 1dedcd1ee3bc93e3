"""Kafka's files and ours after the same produces: byte-equal, and the same to kafka-dump-log.

dump-log complains on stderr of things that are no fault (a segment that does not start at 0 looks non-consecutive), so
the measure is Kafka's own file of the same content.
"""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.compat.apache.node import ApacheKafka
from tests.compat.apache.tools import Outcome, run_tool
from tests.compat.conftest import target_class
from tests.compat.fill import TOPICS, fill
from tests.compat.processes import wait_for

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

BROKEN = re.compile(r"Error at|isvalid: false|[Cc]ould not|Exception|Mismatch", re.ASCII)
FILLED = [topic for topic in TOPICS if topic != "empty"]
# A snapshot of the metadata is taken after so many bytes of its log; a few topics are enough to reach this.
EARLY_SNAPSHOT = {"metadata.log.max.record.bytes.between.snapshots": "2000"}


class Pair(NamedTuple):
    """Two data directories with the same topics and produces, both cleanly stopped."""

    ours: Path
    theirs: Path


@pytest.fixture(scope="module")
def pair(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    homes = []
    for kind, name in ((target_class(pytestconfig), "ours"), (ApacheKafka, "theirs")):
        with kind(tmp_path_factory.mktemp(name), properties=EARLY_SNAPSHOT) as node:
            fill(node.bootstrap)
            wait_for("a metadata snapshot", partial(metadata_snapshots, node.data_dir), timeout_s=60)
            homes.append(node.data_dir)
    return Pair(*homes)


def metadata_snapshots(data: Path) -> list[Path]:
    """The snapshots that the running node made; the one of offset 0 came with the format."""
    return [path for path in sorted((data / "__cluster_metadata-0").glob("*.checkpoint")) if path.name[:20] != "0" * 20]


def partition(data: Path, topic: str) -> Path:
    return data / f"{topic}-0"


@pytest.mark.parametrize("topic", TOPICS)
def test_the_same_produces_make_the_same_files(pair: Pair, topic: str) -> None:
    ours, theirs = ({path.name: path for path in partition(data, topic).iterdir()} for data in pair)
    assert sorted(ours) == sorted(theirs)
    # The topic's id is all that differs.
    different = [name for name in ours if ours[name].read_bytes() != theirs[name].read_bytes()]
    assert different == ["partition.metadata"]
    form = r"version: 0\ntopic_id: [\w-]{22}"
    assert re.fullmatch(form, theirs["partition.metadata"].read_text().strip("\n"))
    assert re.fullmatch(form, ours["partition.metadata"].read_text().strip("\n"))


@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"]
)
def test_the_checkpoints_of_a_stopped_node_say_the_same(pair: Pair, name: str) -> None:
    ours, theirs = (checkpoint(data / name) for data in pair)
    assert ours == theirs


def checkpoint(path: Path) -> dict[str, str]:
    """The lines of an offset checkpoint; their order has no meaning."""
    version, count, *lines = path.read_text().splitlines()
    assert (version, int(count)) == ("0", len(lines))
    return dict(line.rsplit(" ", 1) for line in lines)


def dump(files: list[Path], *options: str) -> Outcome:
    assert files, "nothing to dump"
    return run_tool("kafka-dump-log", *options, "--files", ",".join(map(str, files)), timeout_s=120)


def same_judgement(pair: Pair, pattern: str, *options: str, per_topic: bool = True) -> tuple[str, str]:
    """Dumps the files of both: nothing is broken, the complaints are the same. Returns both outputs, paths equal."""
    outputs = []
    for data in pair:
        places = [partition(data, topic) for topic in FILLED] if per_topic else [data / "__cluster_metadata-0"]
        outcome = dump([file for place in places for file in sorted(place.glob(pattern))], *options)
        assert not BROKEN.search(outcome.stdout), BROKEN.search(outcome.stdout)
        outputs.append([text.replace(str(data), "DATA") for text in (outcome.stdout, outcome.stderr)])
    (ours, our_complaints), (theirs, their_complaints) = outputs
    # The tool keeps its complaints in a hash map by path, so their order is chance.
    assert sorted(our_complaints.splitlines()) == sorted(their_complaints.splitlines())
    return ours, theirs


@pytest.mark.parametrize("pattern", ["*.log", "*.index", "*.timeindex", "*.snapshot"])
def test_dump_log_reads_the_files_of_a_partition_alike(pair: Pair, pattern: str) -> None:
    options = ("--deep-iteration", "--print-data-log") if pattern == "*.log" else ()
    ours, theirs = same_judgement(pair, pattern, *options)
    assert ours == theirs


@pytest.mark.parametrize("pattern", ["*.index", "*.timeindex"])
def test_indexes_pass_the_sanity_check(pair: Pair, pattern: str) -> None:
    ours, theirs = same_judgement(pair, pattern, "--index-sanity-check")
    assert ours == theirs
    verdicts = [line.rsplit(pattern[1:], 1)[1] for line in ours.splitlines() if not line.startswith("Dumping")]
    assert set(verdicts) <= {" passed sanity check.", " is empty."}


@pytest.mark.parametrize("pattern", ["*.index", "*.timeindex"])
def test_indexes_agree_with_their_logs(pair: Pair, pattern: str) -> None:
    ours, theirs = same_judgement(pair, pattern, "--verify-index-only")
    assert ours == theirs


# ---------------------------------------------------------------- the metadata log

# What the same requests must have written on any node. The rest (registrations, producer ids, no-ops) depends on time.
COMPARED = {"TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD"}


def payloads(output: str) -> list[dict[str, object]]:
    """The decoded metadata records of a dump."""
    return [json.loads(line.partition("payload: ")[2]) for line in output.splitlines() if "payload: {" in line]


def without_ids(records: list[dict[str, object]]) -> list[str]:
    """The compared records with each uuid replaced by the order in which it first appeared."""
    text = "\n".join(json.dumps(record, sort_keys=True) for record in records if record["type"] in COMPARED)
    seen: dict[str, str] = {}
    named = re.sub(r'"([\w-]{22})"', lambda match: seen.setdefault(match[1], f'"id {len(seen)}"'), text)
    return named.splitlines()


def test_the_metadata_log_is_decoded_and_holds_the_same_topics(pair: Pair) -> None:
    ours, theirs = same_judgement(pair, "*.log", "--cluster-metadata-decoder", per_topic=False)
    assert without_ids(payloads(ours)) == without_ids(payloads(theirs))
    assert len(without_ids(payloads(ours))) > 2 * len(TOPICS)


def test_the_metadata_log_begins_as_kafkas_does(pair: Pair) -> None:
    ours, theirs = same_judgement(pair, "*.log", "--cluster-metadata-decoder", per_topic=False)
    for output in (ours, theirs):
        control = re.findall(r"(LeaderChange|KRaftVersion|KRaftVoters):? \{", output)
        assert control[:3] == ["LeaderChange", "KRaftVersion", "KRaftVoters"]
        types = [record["type"] for record in payloads(output) if record["type"] != "NO_OP_RECORD"]
        last = types.index("END_TRANSACTION_RECORD")
        assert types[0] == "BEGIN_TRANSACTION_RECORD"
        assert set(types[1:last]) == {"FEATURE_LEVEL_RECORD", "CONFIG_RECORD"}
        assert types[last + 1 : last + 3] == ["REGISTER_CONTROLLER_RECORD", "REGISTER_BROKER_RECORD"]


def test_record_versions_are_those_of_the_metadata_version(pair: Pair) -> None:
    ours, theirs = same_judgement(pair, "*.log", "--cluster-metadata-decoder", per_topic=False)
    our_versions, their_versions = (
        {(record["type"], record["version"]) for record in payloads(output)} for output in (ours, theirs)
    )
    assert our_versions <= their_versions | {("PARTITION_CHANGE_RECORD", 2)}


def test_metadata_snapshots_are_decoded_and_hold_the_same_topics(pair: Pair) -> None:
    newest = []
    for data in pair:
        outcome = dump([metadata_snapshots(data)[-1]], "--cluster-metadata-decoder")
        assert not BROKEN.search(outcome.stdout), BROKEN.search(outcome.stdout)
        assert outcome.stderr == ""
        assert re.search(r"SnapshotHeader \{", outcome.stdout)
        assert re.search(r"SnapshotFooter \{", outcome.stdout)
        newest.append([record["type"] for record in payloads(outcome.stdout)])
    ours, theirs = ([kind for index, kind in enumerate(types) if kind not in types[:index]] for types in newest)
    # A node that took its snapshot a moment later than the other has a topic more: the order of kinds is what counts.
    shared = set(ours) & set(theirs)
    assert {"FEATURE_LEVEL_RECORD", "REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD"} <= shared
    assert [kind for kind in ours if kind in shared] == [kind for kind in theirs if kind in shared]


def test_the_formatted_checkpoints_are_decoded(pair: Pair) -> None:
    for name, kinds in (("__cluster_metadata-0/" + "0" * 20 + "-" + "0" * 10, "KRaftVoters"), ("bootstrap", "payload")):
        ours, theirs = (dump([data / f"{name}.checkpoint"], "--cluster-metadata-decoder") for data in pair)
        assert not BROKEN.search(ours.stdout), BROKEN.search(ours.stdout)
        assert ours.stderr.replace(str(pair.ours), "DATA") == theirs.stderr.replace(str(pair.theirs), "DATA")
        assert kinds in ours.stdout
        assert kinds in theirs.stdout
