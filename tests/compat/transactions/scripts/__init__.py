"""The table of bad and odd inputs, by the API that each is about. A script runs once in every version of its API."""

from __future__ import annotations

from tests.compat.transactions.scripts import (  # noqa: F401 (each adds its scripts to the table)
    adding,
    coordinators,
    ending,
    initialising,
    marking,
    offsets,
    producing,
    reading,
    timing,
)
from tests.compat.transactions.scripts.table import SCRIPTS, Script

__all__ = ["SCRIPTS", "Script"]
