"""Lines that belong together: presets, modes, timeouts, bounds."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.agent.multiline import Gatherer, Multiline, read_multiline
from penstock.declared.fields import Notes, Table
from penstock.declared.positions import Positions


def events(text: str, multiline: Multiline) -> list[str]:
    """What becomes of a text when nothing more comes."""
    gatherer = multiline.gatherer()
    found = feed(gatherer, text.encode().split(b"\n"))
    last = gatherer.flush()
    return [event.decode() for event in [*found, *([last.value] if last else [])]]


def feed(gatherer: Gatherer, lines: list[bytes], position: int = 0, now_ms: float = 0) -> list[bytes]:
    starts = []
    for line in lines:
        starts.append(position)
        position += len(line) + 1
    return [event.value for event in gatherer.feed(lines, starts, position, now_ms)]


PYTHON = """\
INFO before
ERROR it broke
Traceback (most recent call last):
  File "a.py", line 1, in <module>
    f()
    ^^^
ValueError: no

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "b.py", line 2, in g
    raise KeyError(x)
KeyError: 'x'
INFO after
INFO and after that"""


def test_python_traces_belong_to_the_line_before_them() -> None:
    lines = PYTHON.split("\n")
    assert events(PYTHON, Multiline(preset="python")) == [lines[0], "\n".join(lines[1:-2]), lines[-2], lines[-1]]


JAVA = """\
12:00 INFO before
12:01 ERROR it broke
java.lang.RuntimeException: no
\tat com.example.Main.main(Main.java:5)
\tat java.base/java.lang.Thread.run(Thread.java:1)
Caused by: java.io.IOException: disk
\tat com.example.Disk.read(Disk.java:9)
\t... 3 more
12:02 INFO after"""


def test_java_traces_belong_to_the_line_before_them() -> None:
    lines = JAVA.split("\n")
    assert events(JAVA, Multiline(preset="java")) == [lines[0], "\n".join(lines[1:-1]), lines[-1]]


GO = """\
2026/01/01 before
panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.f(0x1, {0xc000, 0x2})
\t/src/main.go:7 +0x1d
main.main()
\t/src/main.go:3 +0x12
created by main.start in goroutine 7
exit status 2
2026/01/01 after"""


def test_go_panics_are_one_event() -> None:
    lines = GO.split("\n")
    assert events(GO, Multiline(preset="go")) == [lines[0], "\n".join(lines[1:-1]), lines[-1]]


@pytest.mark.parametrize(
    ("mode", "start", "condition", "text", "expected"),
    [
        ("continue_through", "", r"^\s", "a\n b\n c\nd\ne", ["a\n b\n c", "d", "e"]),
        ("continue_through", "^x", r"^\s", "a\n b\nx\n c\nd", ["a", " b", "x\n c", "d"]),
        ("continue_past", "", r"\\$", "a\\\nb\\\nc\nd", ["a\\\nb\\\nc", "d"]),
        ("halt_before", "", r"^\d", "1 a\nb\nc\n2 d\n3 e", ["1 a\nb\nc", "2 d", "3 e"]),
        ("halt_with", "", r";$", "select\n1;\nselect 2;\nselect", ["select\n1;", "select 2;", "select"]),
        ("halt_with", "^begin", r"^end", "x\nbegin\na\nend\ny", ["x", "begin\na\nend", "y"]),
    ],
)
def test_modes(mode: str, start: str, condition: str, text: str, expected: list[str]) -> None:
    assert events(text, Multiline(mode=mode, start=start, condition=condition)) == expected


def test_an_event_that_nothing_is_added_to_is_due_after_a_while() -> None:
    gatherer = Multiline(preset="java", timeout_ms=1000).gatherer()
    assert gatherer.due_ms is None
    assert feed(gatherer, [b"one"], now_ms=50) == []
    assert (gatherer.due_ms, gatherer.kept_from) == (1050, 0)
    assert feed(gatherer, [b"\tat more"], position=4, now_ms=900) == []
    assert gatherer.due_ms == 1900
    kept = gatherer.flush()
    assert kept is not None
    assert (kept.value, kept.start, kept.end) == (b"one\n\tat more", 0, 13)
    assert (gatherer.due_ms, gatherer.kept_from) == (None, None)


def test_an_event_that_grows_too_large_goes_on_and_the_rest_is_another() -> None:
    many = Multiline(mode="halt_before", condition="^start", lines_max=3)
    assert events("start\n1\n2\n3\n4\nstart", many) == ["start\n1\n2", "3\n4", "start"]
    large = Multiline(mode="halt_before", condition="^start", bytes_max=16)
    assert events("start\n" + "x" * 9 + "\n" + "y" * 30, large) == ["start\n" + "x" * 9, "y" * 30]


KINDS_OF_LINES = [
    b"",
    b"a",
    b" b",
    b"Traceback (most recent call last):",
    b"ValueError: x",
    b"panic: p",
    b"\tat x",
    b"1",
]
LINES = st.lists(st.sampled_from([*KINDS_OF_LINES, b"end;", b"\xff\xfe", b"back\\"]), max_size=30)
WAYS = st.sampled_from(
    [Multiline(preset=name) for name in ("python", "java", "go")]
    + [Multiline(mode=mode, condition=condition, lines_max=4, bytes_max=40)
       for mode in ("continue_through", "continue_past", "halt_before", "halt_with") for condition in (r"^\s", ";$")]
)  # fmt: skip


@given(LINES, WAYS, st.integers(1, 7))
def test_no_line_is_dropped_doubled_or_moved(lines: list[bytes], way: Multiline, piece: int) -> None:
    gatherer, position, found = way.gatherer(), 0, []
    for at in range(0, len(lines), piece):
        some = lines[at : at + piece]
        starts = [position + sum(len(line) + 1 for line in some[:index]) for index in range(len(some))]
        position += sum(len(line) + 1 for line in some)
        found += gatherer.feed(some, starts, position, 0.0)
    last = gatherer.flush()
    found += [last] if last is not None else []
    assert b"\n".join(event.value for event in found) == b"\n".join(lines)
    assert [event.start for event in found] == [0, *(event.end for event in found)][: len(found)]
    assert not found or found[-1].end == position


def examined(text: str) -> tuple[Multiline | None, list[str]]:
    notes = Notes(Positions(text))
    table = Table(tomllib.loads(text), (), notes, "the input")
    return read_multiline(table), [mistake.words for mistake in notes.mistakes]


def test_settings_are_read() -> None:
    assert examined('multiline = "python"') == (Multiline(preset="python"), [])
    table = '[multiline]\nmode = "halt_before"\ncondition = "^x"\ntimeout = "2s"\nlines_max = 9\nbytes_max = "4 KB"'
    expected = Multiline(mode="halt_before", condition="^x", timeout_ms=2000, lines_max=9, bytes_max=4 << 10)
    found, mistakes = examined(table)
    assert mistakes == []
    assert found is not None
    assert (found.mode, found.timeout_ms, found.lines_max) == (expected.mode, 2000, 9)
    assert examined("") == (None, [])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('multiline = "pyton"', "did you mean 'python'?"),
        ('[multiline]\nmode = "halt_befor"\ncondition = "x"', "did you mean 'halt_before'?"),
        ('[multiline]\nmode = "halt_before"', "needs a condition"),
        ('[multiline]\ncondition = "x"', "has no mode"),
        ('[multiline]\nmode = "halt_before"\ncondition = "("', "is no pattern"),
        ('[multiline]\npreset = "go"\nmode = "halt_with"', "no meaning beside a preset"),
        ('[multiline]\npreset = "go"\ncolour = "red"', "means nothing"),
        ("multiline = 5", "must be a table"),
    ],
)
def test_mistakes_are_told(text: str, words: str) -> None:
    _, mistakes = examined(text)
    assert any(words in mistake for mistake in mistakes), mistakes
