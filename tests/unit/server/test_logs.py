"""What the log looks like."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from penstock.server.logs import KINDS_MAX, ROOT, Sparing, configure


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger(ROOT)
    before = root.level, root.propagate, list(root.handlers)
    yield
    root.level, root.propagate = before[:2]
    root.handlers[:] = before[2]
    logging.getLogger(f"{ROOT}.noisy").setLevel(logging.NOTSET)


def test_text_lines_have_time_level_and_short_name() -> None:
    out = io.StringIO()
    configure("INFO", stream=out)
    logging.getLogger("penstock.server.connection").warning("closed %s", "x")
    logging.getLogger("penstock.server").debug("hidden")
    line = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} WARN server\.connection: closed x\n"
    assert re.fullmatch(line, out.getvalue())


def test_json_lines_are_objects_also_with_a_trace() -> None:
    out = io.StringIO()
    configure("INFO", form="json", stream=out)
    try:
        raise ZeroDivisionError("oh")
    except ZeroDivisionError:
        logging.getLogger("penstock.x").exception("it\nbroke")
    (line,) = out.getvalue().splitlines()
    said = json.loads(line)
    assert (said["level"], said["logger"], said["message"]) == ("ERROR", "penstock.x", "it\nbroke")
    assert "ZeroDivisionError: oh" in said["trace"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", said["time"])


def test_a_logger_can_have_a_level_of_its_own() -> None:
    out = io.StringIO()
    configure("WARN", overrides={"noisy": "debug"}, stream=out)
    logging.getLogger("penstock.noisy").debug("heard")
    logging.getLogger("penstock.quiet").info("not heard")
    assert "heard" in out.getvalue()
    assert "not" not in out.getvalue()


def test_configuring_twice_does_not_say_everything_twice() -> None:
    out = io.StringIO()
    configure(stream=out)
    configure(stream=out)
    logging.getLogger("penstock.x").info("once")
    assert out.getvalue().count("once") == 1


@pytest.mark.parametrize(("level", "form"), [("LOUD", "text"), ("INFO", "xml")])
def test_unknown_words_are_refused(level: str, form: str) -> None:
    with pytest.raises(ValueError, match="is unknown; take"):
        configure(level, form=form)


def test_repeated_warnings_are_counted_instead_of_written(caplog: pytest.LogCaptureFixture) -> None:
    times = iter((0.0, 1.0, 99.0, 99.0, 101.0))
    sparing = Sparing(logging.getLogger("penstock.test"), interval_ms=100, clock=lambda: next(times))
    for _ in range(3):
        sparing.warning("malformed", "closed %s", "a")
    sparing.warning("other", "something else")
    sparing.warning("malformed", "closed %s", "b")
    said = [record.getMessage() for record in caplog.records]
    assert said == ["closed a", "something else", "closed b (and 2 like it since)"]


def test_kinds_beyond_the_most_that_are_remembered_count_as_one(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    sparing = Sparing(logging.getLogger("penstock.test"), interval_ms=100, clock=lambda: now)
    for number in range(3 * KINDS_MAX):
        sparing.warning(f"from {number}", "from %d", number)
    assert len(caplog.messages) == KINDS_MAX + 1
    now = 100.0
    sparing.warning("from elsewhere", "from elsewhere")
    assert caplog.messages[-1] == "from elsewhere"
