"""What went wrong becomes a sentence and an exit code, never a traceback."""

from __future__ import annotations

import errno
import re
from importlib import metadata

import pytest

from penstock.cli.failures import EXTRAS, explain
from penstock.cli.main import main
from penstock.client.errors import (
    BadSetting,
    BrokerRefused,
    NotAllowed,
    NotReachable,
    TimedOutWaiting,
    UnknownTopic,
)
from penstock.model.errors import (
    GROUP_ID_NOT_FOUND,
    INVALID_CONFIG,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    PenstockError,
    Refused,
)
from penstock.transport.dial import Severed, TimedOut, Unreachable, Unsupported


@pytest.mark.parametrize(
    ("failure", "code", "words"),
    [
        (Refused(UNKNOWN_TOPIC_OR_PARTITION), 3, "UNKNOWN_TOPIC_OR_PARTITION"),
        (Refused(TOPIC_AUTHORIZATION_FAILED, "not yours"), 4, "not yours (TOPIC_AUTHORIZATION_FAILED)"),
        (Refused(INVALID_CONFIG, "x is bad"), 1, "x is bad (INVALID_CONFIG)"),
        (Severed("a", 1, "the broker closed the connection"), 5, "a:1: the broker closed the connection"),
        (TimedOut("a", 1, "no reply"), 5, "a:1: no reply"),
        (Unsupported("a", 1, "too old"), 1, "a:1: too old"),
        (
            UnknownTopic("topic 't' does not exist", error=UNKNOWN_TOPIC_OR_PARTITION),
            3,
            "topic 't' does not exist (UNKNOWN_TOPIC_OR_PARTITION)",
        ),
        (BrokerRefused("no such group", error=GROUP_ID_NOT_FOUND), 3, "no such group (GROUP_ID_NOT_FOUND)"),
        (BrokerRefused("x is bad", error=INVALID_CONFIG), 1, "x is bad (INVALID_CONFIG)"),
        (NotAllowed("not yours", error=TOPIC_AUTHORIZATION_FAILED), 4, "not yours (TOPIC_AUTHORIZATION_FAILED)"),
        (NotReachable("it went away", where="a:1"), 5, "a:1: it went away"),
        (TimedOutWaiting("no answer", where="a:1"), 5, "a:1: no answer"),
        (BadSetting("no such setting"), 2, "no such setting"),
        (PenstockError("two\nthings"), 1, "two\n  things"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "f"), 1, "f: No such file or directory"),
        (
            OSError(98, "cannot listen on a:1: in use (while attempting to bind on address ('a', 1))"),
            1,
            "cannot listen on a:1: in use",
        ),
    ],
)
def test_every_failure_has_its_exit_code_and_a_sentence(failure: Exception, code: int, words: str) -> None:
    assert explain(failure) == (code, words)


def test_nobody_there_says_what_to_start() -> None:
    refused = Unreachable("localhost", 9092, "Connect call failed ('127.0.0.1', 9092)")
    refused.__cause__ = ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 9092)")
    code, words = explain(refused)
    assert code == 5
    assert words.startswith("no broker answers at localhost:9092: connection refused.")
    assert "penstock dev" in words


def test_our_own_bug_is_called_one_and_says_how_to_see_more() -> None:
    code, words = explain(KeyError("x"))
    assert code == 1
    assert words.startswith("this is a bug in penstock: KeyError: 'x'")
    assert "PENSTOCK_TRACEBACK=1" in words


def test_the_traceback_is_there_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_TRACEBACK", "1")
    with pytest.raises(NotReachable):
        main(["topic", "list", "-b", "127.0.0.1:1"])


def test_help_ends_well_and_nonsense_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, expected in ((["--help"], 0), (["topic", "list", "--help"], 0), (["nonsense"], 2), ([], 2)):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == expected
    capsys.readouterr()


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("pyspark.sql", "pyspark is not installed: pip install 'penstock[spark]'"),
        ("pyarrow", "pyarrow is not installed: pip install 'penstock[spark]'"),
        ("fastavro", "fastavro is not installed: pip install 'penstock[avro]'"),
    ],
)
def test_a_missing_extra_is_told_with_the_way_to_get_it(module: str, said: str) -> None:
    assert explain(ModuleNotFoundError(f"No module named {module!r}", name=module)) == (1, said)


def test_a_missing_module_of_ours_is_our_bug() -> None:
    failure = ModuleNotFoundError("No module named 'penstock.nonsense'", name="penstock.nonsense")
    assert "this is a bug in penstock" in explain(failure)[1]


def test_every_library_of_an_extra_is_known() -> None:
    extras = [each for each in metadata.requires("penstock") or [] if "extra ==" in each]
    for extra in ("spark", "iceberg", "avro"):
        wanted = [each for each in extras if f'extra == "{extra}"' in each.replace("'", '"')]
        libraries = {re.split(r"[^\w-]", each)[0] for each in wanted} - {"rich"}
        assert libraries, extra
        assert {EXTRAS.get(library) for library in libraries} == {extra}
