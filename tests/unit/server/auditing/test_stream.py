"""The audit stream and its file: bounds, disks that hang or fail, files that are moved away."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.server.auditing.file import AuditFile
from penstock.server.auditing.outlet import QUEUE, QUEUED_BYTES_MAX, WRITE
from penstock.server.auditing.stream import RATE, Audit, BadAuditFile
from penstock.server.doors import Context, Operation, Principal, ResourceType
from penstock.server.loops.ports import SystemClock
from tests.patience import until, within
from tests.unit.server.served import on_loop

ALICE = Principal("User", "alice")


def asked(number: int = 1, **said: Any) -> Context:
    connection: Any = SimpleNamespace(number=number)
    return Context(SimpleNamespace(), 0, 9, "shop", principal=ALICE, connection=connection, **said)  # type: ignore[arg-type]


def deny(audit: Audit, name: str = "orders") -> None:
    audit.denied(asked(), Operation.WRITE, ResourceType.TOPIC, name)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@on_loop
async def test_a_denial_comes_to_the_file_which_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit = Audit(7, SystemClock(), AuditFile(str(path)))
    await audit.open()
    deny(audit)
    await audit.close()
    (line,) = lines(path)
    assert (line["principal"], line["api"], line["resource"]["name"]) == ("User:alice", "Produce", "orders")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@on_loop
async def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit = Audit(7, SystemClock(), AuditFile(str(path)))
    await audit.open()
    deny(audit, "before")
    await until(lambda: path.read_text() != "")
    path.rename(tmp_path / "audit.log.1")
    deny(audit, "after")
    await audit.close()
    assert [each["resource"]["name"] for each in lines(tmp_path / "audit.log.1")] == ["before"]
    assert [each["resource"]["name"] for each in lines(path)] == ["after"]


@on_loop
async def test_two_sides_append_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    both = [Audit(7, SystemClock(), AuditFile(str(path))) for _ in range(2)]
    for number in range(100):
        for audit in both:
            deny(audit, f"t{number}")
    for audit in both:
        await audit.close()
    assert len(lines(path)) == 200


@on_loop
async def test_a_file_that_cannot_be_opened_is_told_at_the_start(tmp_path: Path) -> None:
    audit = Audit(7, SystemClock(), AuditFile(str(tmp_path / "none" / "audit.log")))
    with pytest.raises(BadAuditFile, match=r"penstock\.audit\.log\.file: .* cannot be opened: No such file"):
        await audit.open()
    await audit.close()


@on_loop
async def test_one_principal_does_not_flood_the_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit = Audit(7, SystemClock(), AuditFile(str(path)))
    for number in range(5_000):
        deny(audit, f"t{number}")
    audit.login_failed("10.0.0.9", "CLIENTS", None, "PLAIN", "bob", "Invalid username or password")
    await audit.close()
    told = lines(path)
    assert told[-1]["name"] == "bob"
    assert len(told) < 2_000
    assert audit.drops[RATE] + len(told) == 5_001


class Hanging(AuditFile):
    """A disk that does not come back until it is told to."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.comes_back = threading.Event()

    def append(self, lines: bytes) -> None:
        assert self.comes_back.wait(within(60))
        super().append(lines)


@on_loop
async def test_a_disk_that_hangs_holds_nobody_and_costs_what_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    file = Hanging(str(path))
    audit = Audit(7, SystemClock(), file)
    fits = QUEUED_BYTES_MAX // 500
    for number in range(2 * fits):
        audit.login_failed(f"10.0.{number >> 8}.{number & 255}", "CLIENTS", None, "PLAIN", "b" * 255, "w" * 255)
    await until(lambda: audit.drops[QUEUE] > 0)
    dropped = audit.drops[QUEUE]
    file.comes_back.set()
    await until(lambda: path.exists() and len(lines_there(path)) == 2 * fits - dropped)
    await audit.close()


def lines_there(path: Path) -> list[str]:
    return path.read_text().splitlines()


@on_loop
async def test_a_stop_waits_for_no_disk_that_hangs(tmp_path: Path) -> None:
    file = Hanging(str(tmp_path / "audit.log"))
    audit = Audit(7, SystemClock(), file)
    deny(audit)
    await audit.close()
    deny(audit)
    assert audit.drops[QUEUE] == 1
    file.comes_back.set()


class Full(AuditFile):
    def append(self, lines: bytes) -> None:
        raise OSError(28, "No space left on device")


@on_loop
async def test_what_cannot_be_written_is_counted_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    audit = Audit(7, SystemClock(), Full(os.fspath(tmp_path / "audit.log")))
    deny(audit)
    deny(audit)
    await until(lambda: audit.drops[WRITE] == 2)
    await audit.close()
    assert "No space left on device" in caplog.text


@on_loop
async def test_what_is_allowed_is_told_once_for_a_connection(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit = Audit(7, SystemClock(), AuditFile(str(path)), tells_allowed=True)
    for number in (1, 1, 2):
        audit.allowed(asked(number), Operation.WRITE, ResourceType.TOPIC, "orders")
    await audit.close()
    assert [(each["result"], each["rule"]) for each in lines(path)] == [("allowed", "NO_AUTHORIZER")] * 2
