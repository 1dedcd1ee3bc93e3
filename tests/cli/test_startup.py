"""Commands are quick because they import little."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.patience import within

HEAVY = ("cryptography", "uvloop", "rich", "msgspec", "confluent_kafka", "lz4", "zstandard", "cramjam", "tomllib")


def imported_by(*arguments: str) -> set[str]:
    """The modules that are loaded when a command is through."""
    script = (
        "import sys\nfrom penstock.cli.main import main\n"
        f"try:\n    main({list(arguments)!r})\n"
        "except SystemExit:\n    print(*sys.modules, sep='\\n', file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=within(60), check=True
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "arguments", [("topic", "list", "-b", "127.0.0.1:1"), ("topic", "describe", "t", "-b", "127.0.0.1:1")]
)
def test_asking_a_broker_loads_no_server_no_storage_and_no_table_of_properties(arguments: tuple[str, ...]) -> None:
    loaded = imported_by(*arguments)
    rooms = ("server", "storage", "controller", "quorum", "metadata", "replication", "kernels", "testing")
    unwanted = [f"penstock.{room}" for room in rooms] + ["penstock.model.config", *HEAVY]
    assert loaded & set(unwanted) == set()
    assert "penstock.client.cluster_view" in loaded


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("topic", "--help"), ("dev", "--help")])
def test_help_loads_neither_a_loop_nor_the_protocol(arguments: tuple[str, ...]) -> None:
    loaded = imported_by(*arguments)
    assert loaded & {"asyncio", "penstock.protocol", "penstock.transport", "penstock.server", *HEAVY} == set()
