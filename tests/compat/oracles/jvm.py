"""A JVM that answers questions about one of Kafka's classes, a line of JSON each.

The Java file beside the tests reads one JSON object a line from its standard input and writes one a line, in order;
Jackson is on its class path because Kafka brings it along.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.compat.apache.jars import tool_class_path
from tests.patience import within

HERE = Path(__file__).parent
AT_ONCE = 50
"""So few lines that neither side fills its pipe while the other writes."""
ANSWER_S = 300.0
"""A hundred thousand cases take a fraction of this, on an idle machine."""


def answers(source: str, cases: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the Java file of that name in this folder says of each case."""
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", tool_class_path(), str(HERE / source)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=within(ANSWER_S))
    assert done.returncode == 0, done.stderr[-4000:]
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(said) == lines.count("\n"), f"{len(said)} answers; {done.stderr[-4000:]}"
    return said


class Conversation:
    """A Java file that answers as long as it is asked: what it says to one case can go into the next."""

    def __init__(self, source: str) -> None:
        command = ["java", "-XX:TieredStopAtLevel=1", "-cp", tool_class_path(), str(HERE / source)]
        # What it has to say of itself goes where nobody must read it: an unread pipe would stop it one day.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        ended = self._process.wait(within(ANSWER_S))
        self._process.stdout.close()
        assert ended == 0

    def ask(self, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The answers to these cases, in order."""
        asking, answering = self._process.stdin, self._process.stdout
        assert asking is not None
        assert answering is not None
        said: list[dict[str, Any]] = []
        for at in range(0, len(cases), AT_ONCE):
            some = cases[at : at + AT_ONCE]
            asking.write("".join(json.dumps(case) + "\n" for case in some))
            asking.flush()
            said += [json.loads(answering.readline()) for _ in some]
        return said
