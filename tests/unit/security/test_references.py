"""References to values that stand elsewhere: followed once, within bounds, and never shown."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.security.references import (
    DIRECTORY_CLASS,
    ENVIRONMENT_CLASS,
    FILE_CLASS,
    Provider,
    Unresolved,
    providers_of,
    resolve,
    within,
)

NAMED = {
    "config.providers": "file, env,dir",
    "config.providers.file.class": FILE_CLASS,
    "config.providers.env.class": ENVIRONMENT_CLASS,
    "config.providers.dir.class": DIRECTORY_CLASS,
}


class Shelf:
    """Files and variables of a test, and which were read."""

    def __init__(self) -> None:
        self.files = {"/etc/s.properties": "a=swordfish\nb=${env:X}\n", "/run/secrets/key": "k\n", "/bad": "\\u00x"}
        self.read: list[str] = []

    def file(self, path: str) -> str:
        self.read.append(path)
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def environment(self, name: str) -> str | None:
        return {"X": "x", "PASSWORD": "p"}.get(name)


def resolved(value: str, more: Mapping[str, str] | None = None) -> str:
    properties = {**NAMED, **(more or {}), "ssl.key.password": value}
    return resolve(properties, providers_of(properties), Shelf())["ssl.key.password"]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("${file:/etc/s.properties:a}", "swordfish"),
        ("${env:X}", "x"),
        ("${dir:/run/secrets:key}", "k\n"),
        ("${dir:/run/secrets/:key}", "k\n"),
        ("<${env:X}-${env:PASSWORD}>", "<x-p>"),
        ("${vault:x:y} ${} ${x} $x", "${vault:x:y} ${} ${x} $x"),
        ("plain", "plain"),
    ],
)
def test_references_are_replaced_by_what_they_stand_for(value: str, found: str) -> None:
    assert resolved(value) == found


def test_what_was_read_is_not_looked_through_again() -> None:
    assert resolved("${file:/etc/s.properties:b}") == "${env:X}"


@pytest.mark.parametrize(
    "value",
    [
        "${file:/etc/s.properties:missing}",
        "${file:/nowhere:a}",
        "${file:a}",
        "${file:/bad:a}",
        "${env:MISSING}",
        "${env:/etc:X}",
        "${dir:/run/secrets:../../etc/passwd}",
        "${dir:/run/secrets:..}",
        "${dir:/run/secrets:}",
        "${dir:key}",
    ],
)
def test_a_reference_that_leads_nowhere_is_an_error_and_not_a_password(value: str) -> None:
    with pytest.raises(Unresolved, match=r"ssl\.key\.password") as unresolved:
        resolved(value)
    assert "swordfish" not in str(unresolved.value)


def test_cve_2024_31141_only_allowed_paths_and_variables_are_read() -> None:
    bound = {
        "config.providers.file.param.allowed.paths": "/etc/penstock,/opt",
        "config.providers.dir.param.allowed.paths": "/run",
        "config.providers.env.param.allowlist.pattern": "X|Y.*",
    }
    assert resolved("${env:X}", bound) == "x"
    assert resolved("${dir:/run/secrets:key}", bound) == "k\n"
    for value in ("${file:/etc/s.properties:a}", "${file:/opt/../etc/s.properties:a}", "${env:PASSWORD}"):
        with pytest.raises(Unresolved, match="not allowed"):
            resolved(value, bound)


def test_nothing_that_is_not_allowed_is_even_opened() -> None:
    shelf = Shelf()
    providers = {"file": Provider(FILE_CLASS, ("/opt",))}
    with pytest.raises(Unresolved):
        resolve({"a": "${file:/etc/s.properties:a}"}, providers, shelf)
    assert shelf.read == []


def test_a_file_is_read_once() -> None:
    shelf = Shelf()
    properties = {"a": "${file:/etc/s.properties:a}${file:/etc/s.properties:a}", "b": "${file:/etc/s.properties:b}"}
    resolve(properties, {"file": Provider(FILE_CLASS)}, shelf)
    assert shelf.read == ["/etc/s.properties"]


def test_cve_2025_27817_providers_are_a_fixed_table() -> None:
    for name in ("", "com.example.Provider", "os.environ"):
        with pytest.raises(Unresolved, match="no other is loaded"):
            providers_of({"config.providers": "x", "config.providers.x.class": name})
    with pytest.raises(Unresolved, match="no pattern"):
        providers_of({**NAMED, "config.providers.env.param.allowlist.pattern": "("})


def test_without_providers_nothing_changes() -> None:
    assert resolve({"a": "${env:X}"}, providers_of({"a": "${env:X}"}), Shelf()) == {"a": "${env:X}"}


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("/etc/a", True),
        ("/etc", True),
        ("/etc/../etc/a", True),
        ("//etc//a/.", True),
        ("/etcetera", False),
        ("/etc/../x", False),
        ("/../../x", False),
        ("etc/a", False),
        ("", False),
    ],
)
def test_a_path_is_within_what_its_steps_say(path: str, inside: bool) -> None:
    assert within(path, ("/etc",)) == inside


@given(st.text(alphabet="${}:aX/env", max_size=30))
def test_any_value_is_resolved_or_an_error(value: str) -> None:
    try:
        resolve({"a": value}, providers_of(NAMED), Shelf())
    except Unresolved:
        assert "${" in value
