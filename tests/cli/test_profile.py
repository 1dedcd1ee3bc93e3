"""`penstock profile …` and `penstock completion`: which cluster is meant, and what shells are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import penstock


def test_a_profile_stands_in_for_addresses(bootstrap: str) -> None:
    made = penstock(
        "profile", "create", "here", "-b", bootstrap, "-X", "request.timeout.ms=5000", "-X", "fetch_min_bytes=1"
    )
    assert made.code == 0
    assert penstock("topic", "list").code == 0
    assert penstock("profile", "create", "away", "-b", "127.0.0.1:1", "--no-use").code == 0
    assert penstock("topic", "list").code == 0
    assert penstock("topic", "list", "--profile", "away").code == 5
    assert penstock("topic", "list", environment={"PENSTOCK_PROFILE": "away"}).code == 5
    assert penstock("profile", "use", "away").code == 0
    assert penstock("topic", "list").code == 5


def test_a_flag_comes_before_the_environment_and_that_before_the_profile(bootstrap: str) -> None:
    nowhere = "127.0.0.1:1"
    penstock("profile", "create", "away", "-b", nowhere)
    assert penstock("topic", "list", environment={"PENSTOCK_BOOTSTRAP": bootstrap}).code == 0
    assert penstock("topic", "list", "-b", nowhere, environment={"PENSTOCK_BOOTSTRAP": bootstrap}).code == 5
    assert penstock("topic", "list", "-b", bootstrap, environment={"PENSTOCK_BOOTSTRAP": nowhere}).code == 0
    assert penstock("topic", "list", "-X", f"bootstrap.servers={bootstrap}").code == 0


def test_profiles_are_listed_shown_and_forgotten() -> None:
    assert penstock("profile", "list", "--format", "json").data == []
    penstock("profile", "create", "a b", "-b", "h:1", "-X", "client_id=x")
    expected = {"name": "a b", "current": True, "bootstrap": "h:1", "settings": {"client_id": "x"}}
    assert penstock("profile", "list", "--format", "json").data == [expected]
    assert penstock("profile", "show", "--format", "json").data == expected
    assert penstock("profile", "list").out.splitlines()[1].split() == ["*", "a", "b", "h:1"]
    assert penstock("profile", "show", "a b").out.splitlines()[0] == "name       a b"
    assert penstock("profile", "delete", "a b").code == 0
    assert penstock("profile", "show").code == 1


@pytest.mark.parametrize("command", [("use",), ("show",), ("delete",)])
def test_a_profile_that_is_not_there_is_exit_code_3(command: tuple[str, ...]) -> None:
    said = penstock("profile", *command, "absent")
    assert (said.code, said.out) == (3, "")
    assert "'absent'" in said.err
    assert penstock("topic", "list", "--profile", "absent").code == 3


def test_what_makes_no_sense_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert penstock("profile", "create", "p", "-b", "h:x").code == 2
    assert penstock("profile", "create", "p", "-b", "h:1", "-X", "fetch_min_bites=1").code == 2
    assert penstock("profile", "create", "p", "-b", "h:1").code == 0
    again = penstock("profile", "create", "p", "-b", "h:2")
    assert again.code == 1
    assert "--force" in again.err
    assert penstock("profile", "create", "p", "-b", "h:2", "--force").code == 0
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "penstock").mkdir()
    (tmp_path / "penstock" / "profiles.toml").write_text("= nonsense")
    broken = penstock("topic", "list")
    assert broken.code == 1
    assert "profiles.toml:1:1: this is not TOML" in broken.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_how_to_complete(shell: str) -> None:
    said = penstock("completion", shell)
    assert said.code == 0
    assert "_PENSTOCK_COMPLETE" in said.out
    assert f"penstock completion {shell}" in said.err
    asked = {"_PENSTOCK_COMPLETE": f"{shell}_complete", "COMP_WORDS": "penstock top", "COMP_CWORD": "1"}
    if shell == "fish":  # which tells the word itself, not its number
        asked |= {"COMP_WORDS": "penstock", "COMP_CWORD": "top"}
    completed = penstock(environment=asked)
    assert "topic" in completed.out


def test_a_file_of_profiles_that_is_broken_is_told_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "penstock" / "profiles.toml"
    file.parent.mkdir()
    file.write_text('current = "a"\n[profiles.a\n')
    said = penstock("profile", "list")
    assert said.code == 1
    assert f"{file}:2:12: this is not TOML" in said.err
