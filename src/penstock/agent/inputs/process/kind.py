"""How the agent gets at these kinds of input; the type in the table says which one is meant."""

from __future__ import annotations

from pathlib import Path

from penstock.agent.environment import Environment
from penstock.agent.inputs.input import Channel
from penstock.agent.inputs.process.command import ExecInput
from penstock.agent.inputs.process.settings import ExecSettings, StdinSettings, read_exec, read_stdin
from penstock.agent.inputs.process.stdin import StdinInput
from penstock.declared.fields import Table


def read(table: Table, folder: Path) -> StdinSettings | ExecSettings:
    return read_stdin(table) if table.values.get("type") == "stdin" else read_exec(table, folder)


def make(settings: StdinSettings | ExecSettings, channel: Channel, env: Environment) -> StdinInput | ExecInput:
    if isinstance(settings, StdinSettings):
        return StdinInput(settings, channel)
    return ExecInput(settings, channel, env)
