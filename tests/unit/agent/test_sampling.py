"""Samples are understood as the input itself would understand them."""

from __future__ import annotations

from pathlib import Path

from penstock.agent.portion import Origin, Portion
from penstock.agent.sampling import sample_portions
from penstock.agent.settings import examine

NOW_MS = 1_800_000_000_000


def sampled(own: str, *lines: bytes) -> list[Portion]:
    text = f'name = "a"\n[inputs.x]\ntopic = "t"\n{own}\n'
    found = examine(text, Path("/etc/agent.toml"))
    assert found.settings is not None, found.mistakes
    return list(sample_portions(found.settings.inputs["x"], lines, Origin("x", "h"), NOW_MS))


def test_lines_are_events_at_their_places() -> None:
    found = sampled('type = "tail"\npaths = ["x"]', b"one", b"", b"three")
    assert [(each.values, each.positions) for each in found] == [([b"one"], [0]), ([b""], [4]), ([b"three"], [5])]


def test_lines_that_belong_together_are_one_event() -> None:
    trace = (b"Traceback (most recent call last):", b'  File "x"', b"ValueError: no")
    found = sampled('type = "tail"\npaths = ["x"]\nmultiline = "python"', b"a", *trace, b"b")
    assert [(each.values, each.positions) for each in found] == [
        ([b"\n".join((b"a", *trace))], [0]),
        ([b"b"], [sum(map(len, trace)) + 3 + 2]),
    ]


def test_syslog_is_parsed_and_what_is_none_is_marked() -> None:
    syslog = 'type = "syslog"\nlisten = "udp://127.0.0.1:0"\nkeep_raw = true'
    line = b"<165>1 2026-10-11T22:14:15Z host app 7 - - hello"
    good, bad = sampled(syslog, line, b"\xff\xfe")
    assert good.fields is not None
    assert (good.fields[0]["app"], good.fields[0]["raw"]) == ("app", line.decode())
    assert good.timestamps_ms == [1_791_756_855_000]
    assert bad.timestamps_ms == [NOW_MS]
    assert bad.marks == {0: "malformed"}


def test_json_over_http_has_fields_and_anything_else_none() -> None:
    found = sampled('type = "http"', b'{"id": 7}', b"[1]", b"plain")
    assert [each.fields for each in found] == [[{"id": 7}], None, None]
    assert sampled('type = "http"\nformat = "lines"', b'{"id": 7}')[0].fields is None
