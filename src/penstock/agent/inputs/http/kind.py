"""How the agent gets at this kind of input."""

from __future__ import annotations

from pathlib import Path

from penstock.agent.environment import Environment
from penstock.agent.inputs.http.input import HttpInput
from penstock.agent.inputs.http.settings import HttpSettings, read_settings
from penstock.agent.inputs.input import Channel
from penstock.declared.fields import Table


def read(table: Table, folder: Path) -> HttpSettings:
    return read_settings(table, folder)


def make(settings: HttpSettings, channel: Channel, env: Environment) -> HttpInput:
    return HttpInput(settings, channel, env)
