"""Every command of the tree: whatever can be told whom to dial can be told how, in the same words."""

from __future__ import annotations

from collections.abc import Iterator

import click

from penstock.cli.main import cli

DIALS = {"-b", "--bootstrap", "--bootstrap-server", "--bootstrap-servers", "--broker-list"}
HOW = {"--client-config", "--data-dir", "--profile", "-X"}
KEEPS = {"penstock profile create"}
"""Writes down how to dial, and dials nobody: neither a profile nor a folder stands behind it."""


def tree(command: click.Command, path: str = "penstock") -> Iterator[tuple[str, set[str]]]:
    """All commands, groups too, because some of those do something by themselves; and their options."""
    yield path, {name for each in command.params for name in each.opts}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, f"{path} {name} is listed and not there"
            yield from tree(inner, f"{path} {name}")


def test_a_command_that_dials_takes_a_clients_configuration() -> None:
    dialling = {path: options for path, options in tree(cli) if options & DIALS}
    assert {f"penstock {name}" for name in ("produce", "doctor", "cluster quorum", "bench e2e", "agent run")} <= set(
        dialling
    )
    for path, options in dialling.items():
        wanted = {"--client-config"} if path in KEEPS else HOW
        assert wanted <= options, f"{path} lacks {sorted(wanted - options)}"


def test_a_command_that_asks_brokers_can_be_told_which() -> None:
    """What imports the way to speak to a cluster and takes no address would dial somebody by itself."""
    options = dict(tree(cli))
    for room in ("user", "acl", "token", "quota", "topic", "group", "txn", "cluster"):
        leaves = [path for path in options if path.startswith(f"penstock {room} ")]
        groups = {path for path in leaves if any(other.startswith(f"{path} ") for other in leaves)}
        assert leaves
        assert [path for path in leaves if path not in groups and not options[path] & DIALS] == []
