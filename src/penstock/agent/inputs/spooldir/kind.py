"""What the agent calls to read the settings of a spool directory and to make one."""

from __future__ import annotations

from pathlib import Path

from penstock.agent.environment import Environment
from penstock.agent.inputs.input import Channel, Input
from penstock.agent.inputs.spooldir.settings import SpoolDirSettings, read_spooldir
from penstock.declared.fields import Table


def read(table: Table, folder: Path) -> SpoolDirSettings:
    return read_spooldir(table, folder)


def make(settings: SpoolDirSettings, channel: Channel, env: Environment) -> Input:
    from penstock.agent.inputs.spooldir.input import SpoolDirInput

    return SpoolDirInput(settings, channel, env)
