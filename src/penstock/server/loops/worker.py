"""A helper process for work that must not share the broker's interpreter: `python -m penstock.server.loops.worker`.

Reads one JSON object per line from standard input, `{"task": name, "arguments": {...}}`, and answers each with one
line: `{"result": {...}}` or `{"error": "..."}`. It ends when its input does, so it can never outlive its broker.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable


def _clean(arguments: dict[str, object]) -> dict[str, object]:
    from penstock.storage.clean_job import CleanJob, CleanResult
    from penstock.storage.compaction import clean
    from penstock.storage.files import DiskFiles

    directory, job = arguments["directory"], arguments["job"]
    assert isinstance(directory, str)
    assert isinstance(job, dict)
    result: CleanResult = clean(DiskFiles(max_open=64), directory, CleanJob.from_json(job))
    return result.to_json()


TASKS: dict[str, Callable[[dict[str, object]], dict[str, object]]] = {"clean": _clean}


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer: dict[str, object] = {"result": TASKS[order["task"]](order["arguments"])}
        except Exception as failure:  # the broker decides what a failed task means
            answer = {"error": f"{type(failure).__name__}: {failure}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
