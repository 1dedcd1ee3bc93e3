"""Units for systemd. Pure but for the question which `penstock` runs."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.cli.failures import FENCED

FILES: Final = {"agent": "/etc/penstock/agent.toml", "server": "/etc/penstock/server.properties"}

_DESCRIPTIONS: Final = {
    "agent": "Penstock agent: brings logs and events into topics",
    "server": "Penstock server: a node of an event-streaming cluster",
}


@dataclass(frozen=True, slots=True)
class Unit:
    """What a unit is made from; every path is absolute."""

    service: str
    file: str
    user: str
    program: str
    writes: tuple[str, ...] = ()


def this_program() -> str:
    """The script that stands beside the running Python, else the one on the PATH."""
    beside = Path(sys.executable).with_name("penstock")
    return str(beside) if beside.exists() else shutil.which("penstock") or "/usr/local/bin/penstock"


def unit_text(unit: Unit) -> str:
    sections = [
        f"# Printed by `penstock generate systemd {unit.service}`.",
        "[Unit]",
        f"Description={_DESCRIPTIONS[unit.service]}",
        "Wants=network-online.target",
        "After=network-online.target",
        "",
        "[Service]",
        *(_agent(unit) if unit.service == "agent" else _server(unit)),
        "Restart=always",
        "RestartSec=2",
        "# Variables for it, such as PENSTOCK_BOOTSTRAP; may be missing.",
        "EnvironmentFile=-/etc/default/penstock",
        f"User={unit.user}",
        "",
        *_fence(unit),
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(sections) + "\n"


def _agent(unit: Unit) -> list[str]:
    program, file = _word(unit.program), _word(unit.file)
    return [
        "# It says itself when it is ready, reloading and stopping, and that it is alive.",
        "Type=notify",
        "NotifyAccess=main",
        "WatchdogSec=60",
        f"ExecStartPre={program} agent validate -c {file}",
        f"ExecStart={program} agent run -c {file} --state-dir ${{STATE_DIRECTORY}} --quiet",
        "# A file with mistakes fails the reload, and the agent goes on as it was.",
        f"ExecReload={program} agent validate -c {file}",
        "ExecReload=/bin/kill -HUP $MAINPID",
        "# With exactly_once: another agent of this name and machine id has taken over, and is to be left alone.",
        f"RestartPreventExitStatus={FENCED}",
        "# Positions in files, the spool, agent.json: /var/lib/penstock-agent.",
        "StateDirectory=penstock-agent",
        "StateDirectoryMode=0750",
        "# Longer than the file's flush_within: what is under way is to be acknowledged.",
        "TimeoutStopSec=90",
        "KillMode=mixed",
        "# Every followed file and every connection is one.",
        "LimitNOFILE=65536",
        "# Most logs are read by this group. To read what belongs to others or to listen below port 1024, add",
        "# AmbientCapabilities=CAP_DAC_READ_SEARCH CAP_NET_BIND_SERVICE and the same to CapabilityBoundingSet.",
        "SupplementaryGroups=adm",
    ]


def _server(unit: Unit) -> list[str]:
    program, file = _word(unit.program), _word(unit.file)
    return [
        "Type=exec",
        "# A new node is formatted once, by hand: penstock server format --config FILE",
        f"ExecStartPre={program} server config lint --config {file}",
        f"ExecStart={program} server start --config {file}",
        "# Put log.dirs below /var/lib/penstock, or name their place with --write when this unit is printed.",
        "StateDirectory=penstock",
        "StateDirectoryMode=0750",
        "# It hands its partitions over and flushes before it leaves.",
        "TimeoutStopSec=300",
        "KillMode=mixed",
        "# Every segment and every connection is one.",
        "LimitNOFILE=1048576",
    ]


def _fence(unit: Unit) -> list[str]:
    """What it does not need it cannot do."""
    lines = [
        "# What it does not need it cannot do.",
        "NoNewPrivileges=yes",
        "CapabilityBoundingSet=",
        "ProtectSystem=strict",
        "ProtectHome=read-only",
        "PrivateTmp=yes",
        "PrivateDevices=yes",
        "ProtectClock=yes",
        "ProtectHostname=yes",
        "ProtectKernelTunables=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelLogs=yes",
        "ProtectControlGroups=yes",
        "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK",
        "RestrictNamespaces=yes",
        "RestrictRealtime=yes",
        "RestrictSUIDSGID=yes",
        "LockPersonality=yes",
        "SystemCallArchitectures=native",
        "SystemCallFilter=@system-service",
        "UMask=0027",
    ]
    return lines + [f"ReadWritePaths={_word(path)}" for path in unit.writes]


def _word(text: str) -> str:
    """One word of a command line of systemd, which has quotes, variables and specifiers of its own."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{plain}"' if any(char in " \"\\'" for char in plain) else plain
