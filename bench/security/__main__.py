"""`python -m bench.security` (make bench SUITE=security): TLS beside Apache Kafka with the same cipher.

Part `tls`: broker CPU seconds for a gigabyte in and out, connections a second, memory of a connection, latency of
single records, in plaintext and over TLS, rounds interleaved. Part `rights`: what quotas that nobody reaches and
10,000 ACLs cost the headline's produces and fetches. `--quick` is a look at whether it works.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict

from bench import brokers, machine, places
from bench.brokers import APACHE, NULL, PENSTOCK_NODE, TITLES
from bench.security import rights, tls
from bench.security.plan import QUICK, WHOLE, Plan
from penstock.bench import report
from penstock.bench.series import Results

PARTS = ("tls", "rights")
INTRODUCTION = [
    "All figures are of one run. A ratio above 1 means that Penstock is ahead, whatever the figure. Both brokers run "
    f"as shipped, with a plaintext listener and one of {tls.VERSION} and {tls.CIPHER} (a certificate of ECDSA P-256); "
    "the client is librdkafka, whose share of the machine is not counted. Bytes are 1 KB records in batches of 256 KB; "
    "connections are made one after the other, each with its first request answered, and all stand at the end.",
]


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.security", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short rounds; figures only to see that it works")
    parser.add_argument("--parts", default=",".join(PARTS), help="which of " + ", ".join(PARTS))
    parser.add_argument("--brokers", help="which of apache, penstock (default: all that are there)")
    parser.add_argument("--no-page", action="store_true", help="write JSON alone, leave docs/benchmarks as it is")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    given = arguments(argv)
    plan = QUICK if given.quick else WHOLE
    parts = given.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        raise SystemExit(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    names, remarks = brokers.available_brokers()
    names = [name for name in names if name != NULL and (not given.brokers or name in given.brokers.split(","))]
    brokers.allow_many_files()
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True)

    results, costs = Results(ours=PENSTOCK_NODE, rival=APACHE if APACHE in names else None), rights.Costs()
    if "tls" in parts:
        tls.measure(names, plan, results, say)
    if "rights" in parts:
        rights.measure(plan, costs, say)
    _keep(_page(names, plan, remarks), results, costs, publish=not (given.quick or given.no_page or parts != [*PARTS]))


def _page(names: Sequence[str], plan: Plan, remarks: Sequence[str]) -> report.Page:
    return report.Page(
        suite="security",
        title="What security costs",
        command="make bench SUITE=security",
        introduction=INTRODUCTION,
        machine=machine.describe([*names]),
        parameters={name.replace("_", " "): value for name, value in asdict(plan).items()},
        remarks=remarks,
        titles={name: TITLES[name] for name in names},
    )


def _keep(page: report.Page, results: Results, costs: rights.Costs, *, publish: bool) -> None:
    """As JSON always; as the page of the repository when it is of a whole run."""
    below = ["", *rights.section(costs)] if costs.samples else []
    print(report.terminal(results, page.titles), *below, sep="\n")
    places.RESULTS.mkdir(parents=True, exist_ok=True)
    data = {**report.as_json(page, results), "rights": costs.samples}
    (places.RESULTS / "security.json").write_text(json.dumps(data, indent=2) + "\n")
    if publish:
        (text, *_) = report.write_page(page, results, places.DOCS / "security.md")
        text.write_text(text.read_text() + "\n".join(below) + "\n")


if __name__ == "__main__":
    main()
