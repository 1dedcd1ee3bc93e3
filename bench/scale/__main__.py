"""`python -m bench.scale` (make bench SUITE=scale): how one node's cost grows, written to docs/benchmarks/scale.md.

Parts: partitions, connections, groups, log. `--only` runs some of them and keeps the figures of the others from the
last run; `--quick` grows everything a little, to see that it works.
"""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict

from bench.scale import connections, groups, logs, page, partitions
from bench.scale.found import Findings
from bench.scale.plan import Plan
from bench.scale.subject import allow_many_files

PARTS = {
    "partitions": partitions.measure,
    "connections": connections.measure,
    "groups": groups.measure,
    "log": logs.measure,
}


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, short readings; no page is written")
    parser.add_argument("--only", default=",".join(PARTS), help="which of " + ", ".join(PARTS))
    parser.add_argument("--no-page", action="store_true", help="write JSON alone, leave docs/benchmarks as it is")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    given = arguments(argv)
    chosen = given.only.split(",")
    unknown = set(chosen) - set(PARTS)
    if unknown:
        raise SystemExit(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    plan = Plan().quick() if given.quick else Plan()
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True)

    # Asked to end it stops what it started, as with Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    allow_many_files()
    found = Findings()
    for name, measure in PARTS.items():
        if name in chosen:
            measure(plan, found, say)
    print(page.terminal(found))
    if not given.quick:
        remarks = page.keep(found)
        written = page.write(found, asdict(plan), publish=not given.no_page, remarks=remarks)
        print("\nwritten: " + ", ".join(str(path.relative_to(page.ROOT)) for path in written))
    print(f"took {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
