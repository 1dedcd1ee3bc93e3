"""How the agent gets at this kind of input."""

from __future__ import annotations

from pathlib import Path

from penstock.agent.environment import Environment
from penstock.agent.inputs.input import Channel
from penstock.agent.inputs.postgres.input import PostgresInput
from penstock.agent.inputs.postgres.settings import PostgresSettings, read_settings
from penstock.declared.fields import Table


def read(table: Table, folder: Path) -> PostgresSettings:
    return read_settings(table, folder)


def make(settings: PostgresSettings, channel: Channel, env: Environment) -> PostgresInput:
    return PostgresInput(settings, channel, env)
