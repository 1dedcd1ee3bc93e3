"""One node for all tests that only need topics of their own, and no profile of whoever runs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.testing import broker


@pytest.fixture(scope="package")
def bootstrap() -> Iterator[str]:
    with broker({"delete.topic.enable": True}) as running:
        yield running.bootstrap_servers


@pytest.fixture(autouse=True)
def no_profiles(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    # Commands that start Spark, start it quickly.
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    for name in ("PENSTOCK_BOOTSTRAP", "PENSTOCK_PROFILE"):
        monkeypatch.delenv(name, raising=False)
