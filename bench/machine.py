"""What a figure was measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import psutil

from tests.compat.apache import jars


def describe(brokers: list[str]) -> dict[str, str]:
    """The machine and the versions, in words for the page."""
    facts = {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "kernel": platform.release(),
        **_congestion_control(),
        "Python": platform.python_version(),
    }
    if "penstock" in brokers:
        facts["Penstock"] = metadata.version("penstock")
    if "apache" in brokers:
        facts["Apache Kafka"] = jars.VERSION
        facts["Java"] = _first_line(["java", "-version"])
    return facts


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _congestion_control() -> dict[str, str]:
    """How the system sends over TCP; some algorithms spread over time what goes over the loopback too."""
    told = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    return {"TCP congestion control": told.read_text().strip()} if told.exists() else {}


def _first_line(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout + done.stderr).splitlines()[0].strip()
