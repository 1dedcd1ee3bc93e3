"""A helper process for work that must not share the broker's interpreter: `python -m penstock.server.worker`.

Reads one JSON object per line from standard input, `{"task": name, "arguments": {...}}`, and answers each with one
line: `{"result": {...}}` or `{"error": "..."}`. It ends when its input does, so it can never outlive its broker.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any


def _clean(arguments: dict[str, Any]) -> dict[str, Any]:
    from penstock.storage.clean_job import CleanJob, CleanResult
    from penstock.storage.compaction import clean
    from penstock.storage.files import DiskFiles

    result: CleanResult = clean(DiskFiles(max_open=64), arguments["directory"], CleanJob.from_json(arguments["job"]))
    return result.to_json()


TASKS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"clean": _clean}


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer: dict[str, Any] = {"result": TASKS[order["task"]](order["arguments"])}
        except Exception as failure:  # the broker decides what a failed task means
            answer = {"error": f"{type(failure).__name__}: {failure}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
