"""The table of APIs: complete, right, and cheap to import."""

from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.protocol.registry import API_VERSIONS, APIS, NEVER, Api, api
from penstock.protocol.schema import schema_of

# Apache Kafka 4.3: key -> versions and first flexible version.
RANGES = """
0 3-13 9, 1 4-18 12, 2 1-11 6, 3 0-13 9, 8 2-10 8, 9 1-10 6, 10 0-6 3, 11 0-9 6, 12 0-4 4, 13 0-5 4, 14 0-5 4,
15 0-6 5, 16 0-5 3, 17 0-1 -, 18 0-4 3, 19 2-7 5, 20 1-6 4, 21 0-2 2, 22 0-6 2, 23 2-4 4, 24 0-5 3, 25 0-4 3,
26 0-5 3, 27 1-2 1, 28 0-5 3, 29 1-3 2, 30 1-3 2, 31 1-3 2, 32 1-4 4, 33 0-2 2, 34 1-2 2, 35 1-5 2, 36 0-2 2,
37 0-3 2, 38 1-3 2, 39 1-2 2, 40 1-2 2, 41 1-3 2, 42 0-2 2, 43 0-2 2, 44 0-1 1, 45 0-1 0, 46 0-0 0, 47 0-0 -,
48 0-1 1, 49 0-1 1, 50 0-0 0, 51 0-0 0, 52 0-2 0, 53 0-1 1, 54 0-1 1, 55 0-2 0, 56 2-3 0, 57 0-2 0, 58 0-0 0,
59 0-1 0, 60 0-2 0, 61 0-0 0, 62 0-4 0, 63 0-2 0, 64 0-0 0, 65 0-0 0, 66 0-2 0, 67 0-0 0, 68 0-1 0, 69 0-1 0,
70 0-0 0, 71 0-0 0, 72 0-0 0, 73 0-0 0, 74 0-1 0, 75 0-0 0, 76 1-1 0, 77 1-1 0, 78 1-2 0, 79 1-2 0, 80 0-1 0,
81 0-0 0, 82 0-0 0, 83 0-0 0, 84 0-0 0, 85 0-1 0, 86 0-0 0, 87 0-1 0, 88 0-0 0, 89 0-0 0, 90 0-1 0, 91 0-0 0,
92 0-0 0
"""


def test_all_keys_of_4_3_are_there_with_their_ranges() -> None:
    expected = {}
    for entry in RANGES.replace("\n", " ").split(","):
        key, versions, flexible = entry.split()
        first, last = versions.split("-")
        expected[int(key)] = (int(first), int(last), NEVER if flexible == "-" else int(flexible))
    assert {key: (found.min, found.max, found.flexible_from) for key, found in APIS.items()} == expected


@pytest.mark.parametrize("found", APIS.values(), ids=lambda found: found.name)
def test_the_declarations_say_the_same_as_the_table(found: Api) -> None:
    for cls, kind in ((found.request(), "request"), (found.response(), "response")):
        schema = schema_of(cls)
        assert (schema.key, schema.kind) == (found.key, kind)
        assert tuple(schema.versions) == (found.min, found.max)
        flexible = [version for version in range(found.min, found.max + 1) if schema.flexible.has(version)]
        assert flexible == list(range(max(found.min, found.flexible_from), found.max + 1))


def test_header_versions_follow_from_flexibility() -> None:
    produce = api(0)
    assert [produce.request_header_version(version) for version in (8, 9)] == [1, 2]
    assert [produce.response_header_version(version) for version in (8, 9)] == [0, 1]


def test_the_header_of_an_api_versions_response_stays_at_version_0() -> None:
    assert [api(API_VERSIONS).response_header_version(version) for version in range(5)] == [0] * 5
    assert api(API_VERSIONS).request_header_version(3) == 2


def test_controller_apis_are_not_for_broker_listeners() -> None:
    assert api(52).listeners == {"controller"}
    assert api(0).listeners == {"broker"}
    assert api(19).listeners == {"broker", "controller"}


def test_an_unknown_key_has_no_api() -> None:
    with pytest.raises(KeyError):
        api(4)


def test_importing_the_registry_imports_no_message() -> None:
    code = "import sys, penstock.protocol.frame; print([m for m in sys.modules if '.protocol.messages.' in m])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
