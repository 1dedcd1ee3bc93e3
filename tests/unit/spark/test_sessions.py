"""What a session needs before there is one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.spark.errors import Missing
from penstock.spark.sessions import check_java, settings_for, unzipped_home
from tests.patience import within


def java_that_says(home: Path, version: str) -> None:
    command = home / "bin" / "java"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    command.chmod(0o755)


def test_without_java_one_sentence_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Missing) as told:
        check_java()
    assert str(told.value) == (
        "Spark needs Java 17 or newer, but no java was found on the PATH: "
        "install it (Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME"
    )


def test_a_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Missing, match=f"JAVA_HOME={tmp_path} has no bin/java"):
        check_java()


@pytest.mark.parametrize("master", ["local[2]", "spark://m:7077"])
def test_state_is_committed_as_changes_and_not_whole(master: str) -> None:
    name = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
    assert settings_for(master)[name] == "true"


@pytest.mark.parametrize(("version", "number"), [("17.0.15", "17"), ("21", "21")])
def test_a_java_that_is_new_enough_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, number: str
) -> None:
    java_that_says(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert check_java() == number


@pytest.mark.parametrize(("version", "number"), [("1.8.0_402", "8"), ("11.0.2", "11")])
def test_an_old_java_is_refused_by_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, number: str
) -> None:
    java_that_says(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Missing, match=f"Java 17 or newer, but .* is {number}:"):
        check_java()


def test_workers_import_the_installed_pyspark_and_not_the_zip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = unzipped_home()
    assert sorted(path.name for path in home.iterdir()) == ["bin", "jars", "sbin"]
    assert unzipped_home() == home
    assert [path.name for path in (tmp_path / "penstock").iterdir()] == [home.name], "nothing is left behind"


def test_a_cache_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "penstock").write_text("a file where a directory should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert (unzipped_home() / "jars").is_dir()


def test_only_a_local_session_is_bound_to_this_machine() -> None:
    assert settings_for("local[*,4]")["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in settings_for("spark://somewhere:7077")
    assert settings_for("spark://somewhere:7077")["spark.python.unix.domain.socket.enabled"] == "true"


def test_the_room_is_opened_without_loading_spark() -> None:
    script = (
        "import sys, penstock.spark, penstock.spark.offsets; print('pyspark' in sys.modules, 'pyarrow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=within(60), check=True
    )
    assert done.stdout.split() == ["False", "False"]
