"""How property tests draw: the same examples in every `make test`, fresh ones and a hundred times as many in the soak.

`make test` must say the same twice, so its examples follow from the test's own text. New ones are looked for by
`make soak PART=properties`; what refutes a property there is printed as `@example(...)`, is mended, and stays with its
test.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator

from hypothesis import settings

from tests.faults.counts import MINUTES

FRESH = os.environ.get("PENSTOCK_PROPERTIES") == "fresh"
TIMES = 100 if FRESH else 1
USUAL = 100

_BEGAN_S = time.monotonic()

_REFUTED = re.compile(
    r"^(?:E +)?(?:Falsifying example|Failing test case): \w+\(\n(?P<arguments>.*?)^(?:E +)?\)$", re.M | re.S
)


def examples(count: int) -> int:
    """How many examples a test shall have that asks for `count` of them in `make test`."""
    return count * TIMES


def load_profile() -> None:
    # A machine that stalls is no counterexample, and what was found on one machine must not decide on another.
    settings.register_profile(
        "penstock", deadline=None, database=None, derandomize=not FRESH, max_examples=examples(USUAL), print_blob=FRESH
    )
    settings.load_profile("penstock")


def stretched(timeout_s: float) -> float:
    """The time after which a test counts as hanging."""
    return timeout_s * (10 if FRESH else 1)


def assert_there_is_time() -> None:
    """A soak that runs out of minutes fails rather than claims the rest."""
    if FRESH:
        assert time.monotonic() < _BEGAN_S + MINUTES * 60, f"this property did not fit into {MINUTES:.0f} minutes"


def to_paste(test: str, failure: str) -> Iterator[str]:
    """The examples in a failure's words, each as a decorator; a machine of rules is printed as code already."""
    for found in _REFUTED.finditer(failure):
        lines = [re.sub(r"^E ? {0,6}", "    ", line).rstrip() for line in found["arguments"].splitlines()]
        yield f"# {test}\n@example(\n" + "\n".join(lines) + "\n)"
