"""`python -m bench.console` (make bench SUITE=console): what the web console costs; `--keep` writes its page.

Parts: world, a console beside a very large cluster that is answered for; node, a real node that is looked at.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence

from bench.console import node, page, world

PARTS = {"world": world.measure, "node": node.measure}


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120.0, help="how long it is looked on (default 120)")
    parser.add_argument("--parts", default=",".join(PARTS), help="which of " + ", ".join(PARTS))
    parser.add_argument("--keep", action="store_true", help="write docs/benchmarks/console.md")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    given = arguments(argv)
    chosen = given.parts.split(",")
    unknown = set(chosen) - set(PARTS)
    if unknown:
        raise SystemExit(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True)

    found = {name: measure(given.seconds, say) for name, measure in PARTS.items() if name in chosen}
    for figures in found.values():
        for each in figures:
            asked = f" ({each.wanted}: {'yes' if each.met else 'NO'})" if each.wanted else ""
            print(f"{each.value:>28}  {each.name}{asked}")
    load = os.getloadavg()[1] / (os.cpu_count() or 1)
    remarks = [f"Other work was on the machine: {load:.1f} processes wanted each core."] if load > 1 else []
    if given.keep:
        if set(chosen) != set(PARTS):
            raise SystemExit("a page is kept of all parts")
        print(f"written: {page.keep(found, remarks)}")


if __name__ == "__main__":
    main()
