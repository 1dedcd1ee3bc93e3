"""A process is its number and its birth; a number alone may be another's by now."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from penstock.processes import birth_of, command_line, is_running


def gone() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_a_process_that_ended_has_no_birth_and_no_command() -> None:
    pid = gone()
    assert birth_of(pid) == ""
    assert command_line(pid) == ""
    assert not is_running(pid, "")


def test_a_process_that_ended_and_was_not_asked_for_its_end_does_not_run() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        born = birth_of(child.pid)
        assert is_running(child.pid, born)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_running(child.pid, born)


@pytest.mark.parametrize("another", ["{boot}/1", "another-boot/{began}"])
def test_another_process_with_its_number_is_not_it(another: str) -> None:
    boot, _, began = birth_of(os.getpid()).partition("/")
    assert is_running(os.getpid(), f"{boot}/{began}")
    assert not is_running(os.getpid(), another.format(boot=boot, began=began))


def test_without_a_birth_the_number_has_to_do() -> None:
    assert is_running(os.getpid(), "")
    assert is_running(1, "")  # somebody else's, perhaps, but it is there


def test_a_command_line_is_one_text() -> None:
    program = [sys.executable, "-c", "print(input('here'))", "a b"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.read(1), "before that the process may still be a copy of this one"
        assert "-c print(input('here')) a b" in command_line(child.pid)
        child.kill()
