"""What the agent calls to read the settings of a tail and to make one."""

from __future__ import annotations

from pathlib import Path

from penstock.agent.environment import Environment
from penstock.agent.inputs.input import Channel, Input
from penstock.agent.inputs.tail.settings import TailSettings, read_tail
from penstock.declared.fields import Table


def read(table: Table, folder: Path) -> TailSettings:
    return read_tail(table, folder)


def make(settings: TailSettings, channel: Channel, env: Environment) -> Input:
    from penstock.agent.inputs.tail.input import TailInput

    return TailInput(settings, channel, env)
