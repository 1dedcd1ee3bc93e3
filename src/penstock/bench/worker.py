"""A client process: `python -m penstock.bench.worker` takes pickled jobs from standard input, answers on stdout.

A job is answered twice: `READY` when its connections stand, then, after a `GO`, with what was moved. A
process serves all contenders of a run in turn, so that all of them meet a client that is equally warm.
"""

from __future__ import annotations

import os
import pickle
import sys
from importlib import import_module
from typing import BinaryIO, Final

from penstock.bench.jobs import Action, Failed, Job, Moved, Start

READY, GO = "ready", "go"

ACTIONS: Final = {
    "own produce": "penstock.bench.own_client:produce",
    "own produce at a rate": "penstock.bench.own_client:produce_at_rate",
    "own consume": "penstock.bench.own_client:consume",
    "own fill": "penstock.bench.own_client:fill",
    "own end to end": "penstock.bench.own_client:end_to_end",
    "raw produce": "penstock.bench.raw_client:produce",
    "raw produce at a rate": "penstock.bench.raw_client:produce_at_rate",
    "raw consume": "penstock.bench.raw_client:consume",
    "fill": "penstock.bench.raw_client:fill",
    "spark read": "penstock.bench.spark_client:read",
    "spark write": "penstock.bench.spark_client:write",
}


def action(name: str) -> Action:
    module, _, function = ACTIONS[name].partition(":")
    found: Action = getattr(import_module(module), function)
    return found


def serve(source: BinaryIO, out: BinaryIO) -> None:
    """Does jobs until the other side is gone."""

    def answer(message: object) -> None:
        pickle.dump(message, out)
        out.flush()

    def start() -> None:
        answer(READY)
        if pickle.load(source) != GO:
            raise EOFError

    while True:
        try:
            job: Job = pickle.load(source)
            answer(_done(job, start))
        except (EOFError, BrokenPipeError):
            return


def _done(job: Job, start: Start) -> Moved | Failed:
    try:
        return action(job.action)(job, start)
    except (EOFError, BrokenPipeError):
        raise
    except Exception as failure:
        return Failed(failure)


def main() -> None:
    # Whatever libraries print must not get between the answers.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, out)


if __name__ == "__main__":
    main()
