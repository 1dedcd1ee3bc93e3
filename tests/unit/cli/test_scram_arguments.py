"""`--add-scram` as Kafka's storage tool reads it."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from penstock.cli.scram_arguments import scram_record
from penstock.security.scram.keys import BY_TYPE, credential_of

SALT = base64.b64encode(b"some salt").decode()


def keys_of(argument: str, password: str) -> bool:
    """Whether the record of an argument checks a password."""
    record, version = scram_record(argument)
    mechanism = BY_TYPE[record.mechanism]
    salted = mechanism.derive(password, record.salt, record.iterations).run()
    wanted = credential_of(mechanism, salted, record.salt, record.iterations)
    return version == 0 and (record.stored_key, record.server_key) == (wanted.stored_key, wanted.server_key)


def test_a_password_becomes_keys_that_check_it() -> None:
    argument = "SCRAM-SHA-512=[name=admin,password=admin-secret]"
    record, _ = scram_record(argument)
    assert (record.name, record.mechanism, record.iterations) == ("admin", 2, 4_096)
    assert keys_of(argument, "admin-secret")
    assert not keys_of(argument, "admin-secre")
    assert scram_record(argument)[0].salt != record.salt


def test_salt_and_iterations_may_be_given() -> None:
    record, _ = scram_record(f'SCRAM-SHA-256=[ name="a=b", password=p=w, salt="{SALT}", iterations=8192 ]')
    assert (record.name, record.mechanism, record.salt, record.iterations) == ("a=b", 1, b"some salt", 8_192)
    assert keys_of(f"SCRAM-SHA-256=[name=a,password=p=w,salt={SALT}]", "p=w")


def test_a_salted_password_is_taken_as_it_is() -> None:
    salted = BY_TYPE[2].derive("secret", b"some salt", 4_096).run()
    text = base64.b64encode(salted).decode()
    assert keys_of(f"SCRAM-SHA-512=[name=a,saltedpassword={text},salt={SALT}]", "secret")


def test_a_password_may_stand_in_a_file_or_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "password").write_text("from, a file\n")
    assert keys_of(f"SCRAM-SHA-512=[name=a,password-file={tmp_path / 'password'}]", "from, a file")
    monkeypatch.setenv("ADMIN_PASSWORD", "from the environment")
    assert keys_of("SCRAM-SHA-512=[name=a,password-env=ADMIN_PASSWORD]", "from the environment")


@pytest.mark.parametrize(
    ("argument", "why"),
    [
        ("admin", "expected MECHANISM"),
        ("SCRAM-SHA-1=[name=a,password=b]", "'SCRAM-SHA-1' is no mechanism"),
        ("SCRAM-SHA-512=[password=b]", "the name of the user is missing"),
        ("SCRAM-SHA-512=[name=a]", "give one of .*, not none"),
        ("SCRAM-SHA-512=[name=a,password=b,password-env=B]", "not password and password-env"),
        ("SCRAM-SHA-512=[name=a,password=]", "an empty password"),
        ("SCRAM-SHA-512=[name=a,name=b,password=c]", "name stands twice"),
        ("SCRAM-SHA-512=[name=a,password=b,iterations=4095]", "from 4096 to 16384"),
        ("SCRAM-SHA-512=[name=a,password=b,iterations=many]", "from 4096 to 16384"),
        ("SCRAM-SHA-512=[name=a,password=b,salt=_]", "salt is not base64"),
        (f"SCRAM-SHA-512=[name=a,saltedpassword={SALT}]", "needs the salt"),
        ("SCRAM-SHA-512=[name=a,password-env=NO_SUCH_VARIABLE]", "the environment has no NO_SUCH_VARIABLE"),
        ("SCRAM-SHA-512=[name=a,password-file=/no/such/file]", "/no/such/file: No such file"),
    ],
)
def test_what_is_wrong_is_said(argument: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        scram_record(argument)


def test_the_rest_of_a_password_with_a_comma_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="cannot have commas") as told:
        scram_record("SCRAM-SHA-512=[name=a,password=half,otherhalf]")
    assert "half" not in str(told.value)
