"""`python -m bench.durability` (make bench SUITE=durability): what disks cost, a page for each part.

Parts: `syncs`, a sync before every acknowledgement, seven minutes with Kafka; `hanging`, a disk that hangs on one node
of three, eight minutes with Kafka. `--parts` runs one of them alone; `--quick` is a look at whether they work.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from bench import brokers
from bench.brokers import NULL
from bench.durability import hanging, syncs

PARTS = {"syncs": syncs.measure, "hanging": hanging.measure}


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.durability", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short rounds; figures only to see that it works")
    parser.add_argument("--parts", default=",".join(PARTS), help="which of " + ", ".join(PARTS))
    parser.add_argument("--rounds", type=int, help="interleaved rounds of syncs (default 3)")
    parser.add_argument("--hangs", type=int, help="how often a disk hangs (default 10)")
    parser.add_argument("--seed", type=int, help="of the instants and nodes at which a disk hangs")
    parser.add_argument("--brokers", help="which of apache, penstock (default: all that are there)")
    parser.add_argument("--no-page", action="store_true", help="write JSON alone, leave docs/benchmarks as it is")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    given = arguments(argv)
    parts = given.parts.split(",")
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise SystemExit(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    names, remarks = brokers.available_brokers()
    # The null broker keeps nothing, so it has nothing to sync.
    names = [name for name in names if name != NULL and (not given.brokers or name in given.brokers.split(","))]
    for remark in remarks:
        print(remark)
    brokers.allow_many_files()
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True)

    for part in parts:
        written = PARTS[part](names, remarks, given, say)
        print("\nwritten: " + ", ".join(str(path.relative_to(Path.cwd())) for path in written))
    print(f"took {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
