"""How the agent gets at this kind of input."""

from __future__ import annotations

from pathlib import Path

from penstock.agent.environment import Environment
from penstock.agent.inputs.input import Channel
from penstock.agent.inputs.syslog.input import SyslogInput
from penstock.agent.inputs.syslog.settings import SyslogSettings, read_settings
from penstock.declared.fields import Table


def read(table: Table, folder: Path) -> SyslogSettings:
    return read_settings(table, folder)


def make(settings: SyslogSettings, channel: Channel, env: Environment) -> SyslogInput:
    return SyslogInput(settings, channel, env)
