"""One node for all tests that only need topics of their own, and no profile of whoever runs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.testing import broker
from tests.cli.command import QUICK_JAVA


@pytest.fixture(scope="package")
def bootstrap() -> Iterator[str]:
    # Tests send records of other years, and these stay however long the tests take.
    with broker({"delete.topic.enable": True, "log.retention.ms": -1}) as running:
        yield running.bootstrap_servers


@pytest.fixture(autouse=True)
def no_profiles(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    # Commands that start Spark, start it quickly.
    monkeypatch.setenv("JDK_JAVA_OPTIONS", QUICK_JAVA)
    for name in ("PENSTOCK_BOOTSTRAP", "PENSTOCK_PROFILE"):
        monkeypatch.delenv(name, raising=False)
