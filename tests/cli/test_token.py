"""`penstock token`: what it does, prints and ends with, and that what it writes logs in."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.options import examples_of
from penstock.cli.token import token as token_group
from penstock.testing import EmbeddedBroker, broker
from tests.cli.command import DEADLINE_S, PENSTOCK, Said, penstock
from tests.patience import within


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedBroker]:
    with broker(secure=True) as running:
        yield running


def as_admin(secured: EmbeddedBroker, *words: str | Path) -> Said:
    return penstock("token", *words, "--client-config", secured.client_files.java, "-b", secured.bootstrap_servers)


def test_a_token_is_made_used_renewed_and_ended(secured: EmbeddedBroker, tmp_path: Path) -> None:
    file = tmp_path / "token.properties"
    words = ("--renewer", "bob", "--max-life", "2d", "--client-config-out", file, "--format", "json")
    made = as_admin(secured, "create", *words).data
    assert (made["owner"], made["requester"], made["renewers"]) == ("User:admin", "User:admin", ["User:bob"])
    assert made["max_ms"] - made["issued_ms"] == 2 * 86_400_000
    assert file.stat().st_mode & 0o777 == 0o600

    def by_token(*words: str) -> Said:
        return penstock(*words, "--client-config", file)

    assert by_token("topic", "create", "lent").code == 0
    assert by_token("topic", "list").out.splitlines()[1].split()[0] == "lent"
    assert "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in by_token("token", "create").err

    (tmp_path / "token.hmac").write_text(made["hmac"] + "\n")
    renewed = as_admin(secured, "renew", made["hmac"], "--period", "12h")
    assert (renewed.code, "the token lasts until 20" in renewed.err) == (0, True)
    listed = as_admin(secured, "list", "--owner", "bob", "--format", "json").data
    assert [each["token_id"] for each in listed] == [made["token_id"]]
    assert "hmac" not in listed[0]
    assert made["hmac"] not in as_admin(secured, "list").out
    assert made["hmac"] in as_admin(secured, "list", "--show-hmac").out
    ended = as_admin(secured, "expire", "--hmac-file", tmp_path / "token.hmac", "--yes")
    assert (ended.code, ended.err) == (0, "the token is gone\n")
    assert as_admin(secured, "list", "--owner", "bob") == Said(0, "", "no tokens\n")
    refused = by_token("topic", "list")
    assert refused.code != 0
    assert made["hmac"] not in refused.err


def test_what_a_token_is_printed_as(secured: EmbeddedBroker) -> None:
    lines = as_admin(secured, "create").out.splitlines()
    assert [line[:9].strip() for line in lines] == [
        "token id", "HMAC", "owner", "requester", "renewers", "expires", "longest",
    ]  # fmt: skip


def test_nodes_without_a_secret_for_tokens_are_named_as_the_reason() -> None:
    with broker({"delegation.token.secret.key": ""}, secure=True) as plain:
        for words in (("create",), ("list",)):
            said = as_admin(plain, *words)
            assert (said.code, "delegation.token.secret.key" in said.err) == (1, True), said.err
            assert "DELEGATION_TOKEN_AUTH_DISABLED" in said.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("renew",), "give the HMAC"),
        (("expire", "no base64!", "--yes"), "not base64"),
        (("create", "--client-config-out", "x", "-b", "127.0.0.1:1"), "PLAINTEXT does not"),
        (("create", "--max-life", "soon"), "no time"),
    ],
)
def test_words_that_mean_nothing_are_a_usage_error(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    said = penstock("token", *words, cwd=tmp_path)
    assert (said.code, told in said.err) == (2, True), said.err


def test_every_example_of_tokens_works(secured: EmbeddedBroker, tmp_path: Path) -> None:
    (tmp_path / "token.hmac").write_text(as_admin(secured, "create", "--format", "json").data["hmac"])
    environment = {
        **os.environ,
        "PENSTOCK_BOOTSTRAP": secured.bootstrap_servers,
        "PENSTOCK_CLIENT_CONFIG": str(secured.client_files.java),
    }
    ran = 0
    for name in ("create", "list", "renew", "expire"):
        for example in examples_of(token_group.commands[name]):
            line = example.replace("penstock ", f"{' '.join(PENSTOCK)} ", 1)
            done = subprocess.run(
                ["bash", "-c", line],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=within(DEADLINE_S),
            )
            assert done.returncode == 0, f"$ {example}\n{done.stdout}{done.stderr}"
            ran += 1
    assert ran == 6
