"""CPU time of a process and all that it started, told apart into the JVM and Python."""

from __future__ import annotations

from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Cpu:
    """CPU seconds so far, or between two looks."""

    jvm_s: float
    python_s: float

    @property
    def all_s(self) -> float:
        return self.jvm_s + self.python_s

    def since(self, before: Cpu) -> Cpu:
        return Cpu(self.jvm_s - before.jvm_s, self.python_s - before.python_s)


def cpu_of_family() -> Cpu:
    """What this process and its descendants have used; workers that have ended are in their parents' accounts."""
    mine = psutil.Process()
    jvm_s = python_s = 0.0
    for process in [mine, *mine.children(recursive=True)]:
        try:
            times, name = process.cpu_times(), process.name()
        except psutil.NoSuchProcess:
            continue
        own_s = times.user + times.system
        ended_s = times.children_user + times.children_system
        if "java" in name:
            # What the JVM has waited for are workers.
            jvm_s += own_s
            python_s += ended_s
        else:
            python_s += own_s + ended_s
    return Cpu(jvm_s, python_s)
