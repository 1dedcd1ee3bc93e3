"""Trying shows what an agent would send, without a broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.agent.settings import examine
from penstock.agent.trying import Tried, try_lines

NOW_MS = 1_794_823_200_000


def tried(text: str, *lines: bytes, name: str = "web") -> list[Tried]:
    found = examine(f'name = "a"\nhost = "web-1"\n{text}', Path("agent.toml"), {})
    assert found.settings is not None, found.mistakes
    return list(try_lines(found.settings, name, lines, path="/var/log/web.log", now_ms=NOW_MS))


TAIL = '[inputs.web]\ntype = "tail"\npaths = ["*.log"]\ntopic = "t"\n'


def test_each_line_is_a_record_or_says_why_it_is_none() -> None:
    text = TAIL + 'key = "n"\ndead_letters = "dead"\n[[inputs.web.transforms]]\nparse = "json"\n'
    good, dead, filtered = tried(text + '[[transforms]]\nfilter = "n < 5"', b'{"n":1}', b"x", b'{"n":9}')
    assert (good.topic, good.key, good.value, good.dead) == ("t", b"1", b'{"n":1}', False)
    assert (dead.topic, dead.value, dead.dead) == ("dead", b"x", True)
    assert dead.why.startswith("step 1 (parse json): not JSON")
    assert (filtered.filtered, filtered.why, filtered.line) == (True, "shared step 1 (filter)", b'{"n":9}')


def test_an_event_that_goes_to_several_topics_is_shown_for_each() -> None:
    route = '[[transforms]]\nroute = [{ topic = "a" }, { topic = "b" }]\nto = "all"'
    assert [each.topic for each in tried(TAIL + route, b"x")] == ["a", "b"]


def test_offsets_are_those_of_the_lines() -> None:
    found = tried(TAIL + 'headers = ["offset"]', b"one", b"two")
    assert [each.headers for each in found] == [(("offset", b"0"),), (("offset", b"4"),)]


def test_lines_that_an_input_joins_are_joined() -> None:
    found = tried(TAIL + 'multiline = "python"', b"Traceback (most recent call last):", b"  File", b"E: x", b"next")
    assert found[0].value == b"Traceback (most recent call last):\n  File\nE: x"


def test_syslog_comes_with_its_fields() -> None:
    text = '[inputs.web]\ntype = "syslog"\nlisten = ["udp://127.0.0.1:0"]\ntopic = "{app}"\n'
    (found,) = tried(text, b"<34>1 2026-11-16T09:00:00Z h su - - - failed")
    assert (found.topic, found.timestamp_ms) == ("su", NOW_MS - 3_600_000)
    assert json.loads(found.value)["message"] == "failed"


def test_an_input_that_is_not_there() -> None:
    with pytest.raises(KeyError):
        tried(TAIL, b"x", name="wbe")
