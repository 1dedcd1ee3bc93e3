"""`penstock produce`, `consume` and `tail`: records in, records out, nothing changed on the way."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from penstock.model.units import count
from tests.cli.command import DEADLINE_S, PENSTOCK, Running, penstock
from tests.compat.processes import wait_for
from tests.patience import within


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def filled(bootstrap: str, topic: str, *values: str, partitions: int = 1) -> None:
    assert penstock("topic", "create", topic, "-p", str(partitions), "-b", bootstrap).code == 0
    sent = penstock("produce", topic, "-b", bootstrap, stdin="".join(f"{value}\n" for value in values))
    assert (sent.code, sent.err) == (0, f"sent {count('record', len(values))}\n")


def test_lines_go_in_and_json_lines_come_out(bootstrap: str) -> None:
    filled(bootstrap, "in-out", "one", "two", "three")
    said = penstock("consume", "in-out", "-e", "-b", bootstrap)
    assert said.code == 0
    found = lines(said.out)
    assert [(r["topic"], r["partition"], r["offset"], r["key"], r["value"]) for r in found] == [
        ("in-out", 0, 0, None, "one"),
        ("in-out", 0, 1, None, "two"),
        ("in-out", 0, 2, None, "three"),
    ]
    assert all(isinstance(r["timestamp"], int) for r in found)


def test_json_lines_round_trip_between_topics(bootstrap: str) -> None:
    for topic in ("copied", "copy"):
        penstock("topic", "create", topic, "-b", bootstrap)
    given = [
        {"timestamp": 1_700_000_000_000, "key": "k", "value": "v", "headers": [{"key": "h", "value": None}]},
        {"timestamp": 1_700_000_000_001, "key_base64": "/w==", "value": None},
        {"timestamp": 1_700_000_000_002, "key": "", "value": ""},
        {"timestamp": 1_700_000_000_003, "key": None, "value_base64": "gIE="},
    ]
    text = "".join(f"{json.dumps(record)}\n" for record in given)
    assert penstock("produce", "copied", "-f", "json", "-b", bootstrap, stdin=text).code == 0
    first = penstock("consume", "copied", "-e", "-b", bootstrap).out
    assert penstock("produce", "copy", "-f", "json", "-b", bootstrap, stdin=first).code == 0
    second = penstock("consume", "copy", "-e", "-b", bootstrap).out
    assert lines(second.replace('"copy"', '"copied"')) == lines(first)
    assert [{k: v for k, v in r.items() if k not in ("topic", "partition", "offset")} for r in lines(first)] == given


def test_a_format_reads_keys_and_reports_deliveries(bootstrap: str) -> None:
    penstock("topic", "create", "formatted", "-p", "2", "-b", bootstrap)
    said = penstock(
        "produce", "formatted", "-f", r"%k=%v;", "-F", r"%t %p@%o %k %v %i\n", "-p", "1", "-H", "a:1", "-H", "b=2",
        "-b", bootstrap, stdin="x=1;y=2;",
    )  # fmt: skip
    assert said == (0, "formatted 1@0 x 1 1\nformatted 1@1 y 2 2\n", "sent 2 records\n")
    read = penstock("consume", "formatted", "-e", "-f", r"%p %k %v %h{[%k %v]}\n", "-b", bootstrap)
    assert read.out == "1 x 1 [a 1][b 2]\n1 y 2 [a 1][b 2]\n"


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec_packs(bootstrap: str, codec: str) -> None:
    topic = f"packed-{codec}"
    penstock("topic", "create", topic, "-b", bootstrap)
    assert penstock("produce", topic, "-z", codec, "-k", "key", "-b", bootstrap, stdin="v\n" * 100).code == 0
    assert penstock("consume", topic, "-e", "-f", "text", "-b", bootstrap).out == "v\n" * 100


def test_a_tombstone_is_null_and_an_empty_value_is_not(bootstrap: str) -> None:
    penstock("topic", "create", "graves", "-b", bootstrap)
    assert penstock("produce", "graves", "-k", "a", "-T", "-b", bootstrap, stdin="\n").code == 0
    assert penstock("produce", "graves", "-k", "a", "-b", bootstrap, stdin="\n").code == 0
    assert [r["value"] for r in lines(penstock("consume", "graves", "-e", "-b", bootstrap).out)] == [None, ""]


def test_a_topic_may_be_named_by_the_input(bootstrap: str) -> None:
    for topic in ("named-a", "named-b"):
        penstock("topic", "create", topic, "-b", bootstrap)
    said = penstock("produce", "-f", r"%t %v\n", "-b", bootstrap, stdin="named-a 1\nnamed-b 2\n")
    assert said.code == 0
    read = penstock("consume", "-r", "named-.*", "-e", "-f", r"%t %v\n", "-b", bootstrap)
    assert sorted(read.out.splitlines()) == ["named-a 1", "named-b 2"]
    assert penstock("produce", "-b", bootstrap, stdin="x\n").code == 2


@pytest.mark.parametrize(
    ("where", "expected"),
    [("start", "0123456789"), ("7", "789"), ("+8", "89"), ("-2", "89"), ("2:5", "234"), (":3", "012"),
     ("-3:end", "789"), ("@1000000000000", "0123456789"), ("@:-1h", ""), ("@-1h:end", "0123456789"), ("20:30", None)],
)  # fmt: skip
def test_every_kind_of_offset(bootstrap: str, where: str, expected: str | None) -> None:
    if penstock("topic", "describe", "digits", "-b", bootstrap).code:
        filled(bootstrap, "digits", *"0123456789")
    bounded = ["-e"] if ":" not in where else []
    if expected is None:
        with pytest.raises(subprocess.TimeoutExpired):  # offsets that are still to come are waited for
            subprocess.run([*PENSTOCK, "consume", "digits", "-o", where, "-b", bootstrap], timeout=2)
        return
    said = penstock("consume", "digits", "-o", where, *bounded, "-f", "%v", "-b", bootstrap)
    assert (said.code, said.out) == (0, expected)


def test_num_ends_it_and_partitions_choose(bootstrap: str) -> None:
    filled(bootstrap, "spread", *"abcdef", partitions=3)
    assert len(penstock("consume", "spread", "-n", "4", "-f", "text", "-b", bootstrap).out.split()) == 4
    only = lines(penstock("consume", "spread", "-p", "1", "-e", "-b", bootstrap).out)
    assert {r["partition"] for r in only} <= {1}
    assert penstock("consume", "spread", "-p", "9", "-e", "-b", bootstrap).code == 3


def test_shapes_for_people_and_programs(bootstrap: str) -> None:
    filled(bootstrap, "shapes", "a: b")
    assert penstock("consume", "shapes", "-e", "-f", "text", "-b", bootstrap).out == "a: b\n"
    assert penstock("consume", "shapes", "-e", "--pretty", "-b", bootstrap).out.startswith('{\n  "topic": "shapes",')
    yaml = penstock("consume", "shapes", "-e", "-f", "yaml", "-b", bootstrap).out
    assert yaml.startswith('---\ntopic: "shapes"\n')
    (meta,) = lines(penstock("consume", "shapes", "-e", "--meta-only", "-b", bootstrap).out)
    assert (meta["value_size"], meta["key_size"]) == (4, None)
    assert "value" not in meta


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_where_it_stopped(bootstrap: str, protocol: str) -> None:
    topic = f"shared-{protocol}"
    filled(bootstrap, topic, *"abcde")
    read = ("consume", topic, "-g", f"g-{protocol}", "--protocol", protocol, "-f", "%v", "-b", bootstrap)
    assert penstock(*read, "-n", "2").out == "ab"
    assert penstock(*read, "-n", "3").out == "cde"


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ((), "classic"),
        (("-X", "group.protocol=Consumer", "--balancer", "uniform"), "consumer"),
        (("-X", "group_protocol=consumer", "--protocol", "classic", "--balancer", "range"), "classic"),
        (("-X", "group_protocol=classic", "--protocol", "consumer"), "consumer"),
    ],
)
def test_a_groups_protocol_is_that_of_its_option_or_else_of_the_settings(
    bootstrap: str, given: tuple[str, ...], kind: str
) -> None:
    topic = group = f"protocol-{'-'.join(given).replace('=', '-') or 'unsaid'}"
    filled(bootstrap, topic, "x")
    assert penstock("consume", topic, "-g", group, *given, "-n", "1", "-f", "%v", "-b", bootstrap).out == "x"
    listed = penstock("group", "list", "--format", "json", "-b", bootstrap).data
    assert [each["type"] for each in listed if each["id"] == group] == [kind]


def test_where_a_new_group_begins_is_said_by_its_option_or_else_by_the_settings(bootstrap: str) -> None:
    filled(bootstrap, "begun", "x")
    read = ("consume", "begun", "-g", "begins", "-X", "auto_offset_reset=none", "-n", "1", "-f", "%v", "-b", bootstrap)
    refused = penstock(*read)
    assert refused.code == 1
    assert "offset_reset is none" in refused.err
    assert penstock(*read, "-o", "start").out == "x"


def test_tail_shows_the_last_and_then_the_next_until_ctrl_c(bootstrap: str, tmp_path: Path) -> None:
    filled(bootstrap, "tailed", *"abc", partitions=2)
    with Running("tail", "tailed", "-n", "2", "-f", "text", "-b", bootstrap, log=tmp_path / "log") as tail:
        tail.wait_to_say(r"c\n")
        penstock("produce", "tailed", "-b", bootstrap, stdin="later\n")
        tail.wait_to_say(r"later\n")
        assert tail.stop(signal.SIGINT) == 0
        assert tail.words.split() == ["b", "c", "later"]


def test_ctrl_c_ends_consume_and_produce_with_130(bootstrap: str, tmp_path: Path) -> None:
    filled(bootstrap, "endless", "x")
    with Running("consume", "endless", "-f", "text", "-b", bootstrap, log=tmp_path / "log") as consume:
        consume.wait_to_say(r"x\n")
        assert consume.stop(signal.SIGINT) == 130
    producer = subprocess.Popen(
        [*PENSTOCK, "produce", "endless", "-F", r"%v\n", "-b", bootstrap],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with producer:
        assert producer.stdin is not None
        assert producer.stdout is not None
        producer.stdin.write(b"typed\n")
        producer.stdin.flush()
        assert producer.stdout.readline() == b"typed\n"  # sent although the input goes on
        producer.send_signal(signal.SIGINT)
        _, words = producer.communicate(timeout=within(DEADLINE_S))
        assert producer.returncode == 130
        assert b"Traceback" not in words


def test_a_reader_that_has_enough_ends_it_quietly(bootstrap: str) -> None:
    filled(bootstrap, "plenty", *["some longer value than one letter"] * 5000)
    script = f"set -o pipefail; {' '.join(PENSTOCK)} consume plenty -e -f text -b {bootstrap} | head -n 1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=within(DEADLINE_S))
    assert (done.returncode, done.stdout, done.stderr) == (0, "some longer value than one letter\n", "")


def test_a_topic_that_is_not_there_is_told_at_once_or_made(bootstrap: str) -> None:
    for command in (("consume", "absent"), ("tail", "absent"), ("produce", "absent"), ("consume", "-r", "absent.*")):
        said = penstock(*command, "-b", bootstrap, stdin="x\n")
        assert (said.code, said.out) == (3, "")
        assert "absent" in said.err
    assert penstock("produce", "made", "--create", "-b", bootstrap, stdin="x\n").code == 0
    wait_for(
        "the topic", lambda: penstock("topic", "describe", "made", "-b", bootstrap).code == 0, timeout_s=DEADLINE_S
    )


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("produce", "t", "-f", "%k%v"), "nothing says where %k ends"),
        (("produce", "t", "-F", "%q"), "means nothing"),
        (("produce", "t", "-H", "x"), "is not KEY:VALUE"),
        (("produce", "t", "--delivery-timeout", "soon"), "is no duration"),
        (("consume", "t", "-o", "soon"), "is no offset"),
        (("consume", "t", "-f", "%"), "means nothing"),
        (("consume", "t", "-f", "text", "--pretty"), "goes with -f json"),
        (("consume", "t", "-f", "text", "--meta-only"), "goes with -f json"),
        (("consume", "t", "-g", "g", "-o", "5"), "-o is start or end"),
        (("consume", "t", "-g", "g", "-p", "5"), "exclude each other"),
        (("consume", "t", "--balancer", "range"), "go with --group"),
        (("consume", "t", "-X", "fetch_min_bites=1"), "fetch_min_bytes"),
        (("consume", "-r", "("), "no regular expression"),
    ],
)
def test_what_makes_no_sense_is_exit_code_2(bootstrap: str, arguments: tuple[str, ...], hint: str) -> None:
    said = penstock(*arguments, "-b", bootstrap)
    assert (said.code, said.out) == (2, "")
    assert hint in said.err


def test_input_that_breaks_off_sends_what_came_before_and_fails(bootstrap: str) -> None:
    penstock("topic", "create", "broken", "-b", bootstrap)
    said = penstock("produce", "broken", "-f", "json", "-b", bootstrap, stdin='{"value": "good"}\nbad\n')
    assert said.code == 1
    assert "line 2: not JSON" in said.err
    assert penstock("consume", "broken", "-e", "-f", "text", "-b", bootstrap).out == "good\n"


def test_a_record_that_is_too_large_is_named(bootstrap: str) -> None:
    penstock("topic", "create", "small", "-c", "max.message.bytes=1000", "-b", bootstrap)
    said = penstock("produce", "small", "-b", bootstrap, stdin="x" * 5000 + "\n")
    assert said.code == 1
    assert "small" in said.err


def test_settings_of_the_client_are_passed_on(bootstrap: str) -> None:
    filled(bootstrap, "tuned-client", "x")
    said = penstock("consume", "tuned-client", "-n", "1", "-X", "fetch.min.bytes=5", "-f", "%v", "-b", bootstrap)
    assert (said.code, said.out) == (0, "x")


def test_lines_without_a_key_go_evenly_to_all_partitions(bootstrap: str) -> None:
    filled(bootstrap, "even", *(f"line {number}" for number in range(100_000)), partitions=3)
    described = penstock("topic", "describe", "even", "--format", "json", "-b", bootstrap).data[0]
    counts = sorted(partition["end"] - partition["start"] for partition in described["partitions"])
    assert sum(counts) == 100_000
    assert counts[-1] < 1.3 * counts[0]


def test_only_records_for_which_a_condition_holds_are_printed(bootstrap: str) -> None:
    values = [json.dumps({"n": number, "country": "it" if number % 3 == 0 else "de"}) for number in range(30)]
    filled(bootstrap, "chosen", *values, "no JSON", partitions=2)
    where = 'value.country == "it" and value.n > 5'
    said = penstock("consume", "chosen", "-e", "--where", where, "-f", "%v\n", "-b", bootstrap)
    assert (said.code, sorted(json.loads(line)["n"] for line in said.out.splitlines())) == (0, list(range(6, 30, 3)))
    said = penstock("consume", "chosen", "-n", "3", "--where", where, "-f", "%v\n", "-b", bootstrap)
    assert (said.code, len(said.out.splitlines())) == (0, 3), "the number is that of records that are printed"
    wrong = penstock("consume", "chosen", "--where", "value.n >", "-b", bootstrap)
    assert (wrong.code, "value.n >\n           ^" in wrong.err) == (2, True), wrong.err
