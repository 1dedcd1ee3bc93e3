"""Profiles on disk: what is written is read back, whatever the names."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.cli.profiles import (
    NoSuchProfile,
    Profile,
    Profiles,
    current_profile,
    load_profiles,
    profiles_path,
    save_profiles,
)

texts = st.text(st.characters(codec="utf-8"), max_size=8)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        texts.filter(bool), st.builds(Profile, texts, st.dictionaries(texts, texts, max_size=3)), max_size=3
    )
)
def test_profiles_are_read_as_they_were_written(by_name: dict[str, Profile]) -> None:
    written = Profiles(next(iter(by_name), None), by_name)
    save_profiles(written)
    assert load_profiles() == written


def test_no_file_is_no_profile_and_nobody_else_may_read_it() -> None:
    assert load_profiles() == Profiles()
    assert current_profile(None) == Profile()
    save_profiles(Profiles("a", {"a": Profile("h:1")}))
    assert stat.S_IMODE(os.stat(profiles_path()).st_mode) == 0o600
    assert current_profile(None) == current_profile("a") == Profile("h:1")
    with pytest.raises(NoSuchProfile, match="there are a"):
        current_profile("b")


def test_a_current_profile_that_is_gone_is_none() -> None:
    save_profiles(Profiles("gone", {"a": Profile("h:1")}))
    assert load_profiles().current is None
