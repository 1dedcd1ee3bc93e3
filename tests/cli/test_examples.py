"""The examples in every command's help are commands that work: all of them are run, as a reader would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from penstock.blocking import Producer
from penstock.cli.main import cli
from penstock.cli.options import examples_of
from penstock.testing import broker
from tests.cli import warm
from tests.cli.command import DEADLINE_S, QUICK_JAVA, penstock
from tests.cli.lakes import make_lake
from tests.compat.processes import Child, free_ports, wait_for
from tests.hanging_transactions import UNVERIFIED, hang
from tests.patience import within

GO_ON = (
    "penstock dev",
    "penstock server start",
    "penstock tail",
    "penstock group lag billing --watch",
    "penstock agent run",
    "penstock console",
)
"""These end only when they are told to."""
ELSEWHERE = (
    "penstock dev --demo",
    "penstock dev kill",
    "penstock dev start",
    "penstock dev stop",
    "penstock cluster decommission 4",
    "penstock cluster quorum add-voter",
    "penstock cluster quorum remove-voter",
    "penstock bench cluster",
    "penstock bench spark",
    "penstock agent status",
    "penstock pipeline redrive",
    "penstock acl",
    "penstock token",
)
"""These need a cluster: `test_dev_cluster` and `test_cluster_partitions` run them; or an agent: `test_agent` does; or
an authorizer: `test_security` does; or logins: `test_token` does; or dead letters:
`test_pipeline` has them; or time: `tests/demo` runs the demo; `test_bench` and
`tests/spark/test_bench` have what is left of `bench`."""


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        if command.invoke_without_command:
            yield context.command_path, command
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            assert member is not None
            yield from commands(member, click.Context(member, parent=context, info_name=name))
    else:
        yield context.command_path, command


EVERY = list(commands(cli, click.Context(cli, info_name="penstock")))


@pytest.mark.parametrize(("path", "command"), EVERY, ids=[path for path, _ in EVERY])
def test_every_command_has_help_and_an_example_of_itself(path: str, command: click.Command) -> None:
    assert command.help
    examples = examples_of(command)
    assert examples
    assert all(path in example for example in examples)
    assert all(option.help for option in command.params if isinstance(option, click.Option))


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder and an environment in which a reader of the help has what the examples speak of."""
    folder = tmp_path_factory.mktemp("reader")
    port, controller_port, admin_port = free_ports(3)
    (folder / "server.properties").write_text(
        "node.id=1\nprocess.roles=broker,controller\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n"
        f"controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=127.0.0.1:{controller_port}\n"
        f"log.dirs={folder / 'var'}\npenstock.admin.listener=127.0.0.1:{admin_port}\n"
    )
    with broker({"log.retention.ms": 604_800_000, **UNVERIFIED}) as running:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
            "JDK_JAVA_OPTIONS": QUICK_JAVA,
            "PENSTOCK_BOOTSTRAP": running.bootstrap_servers,
        }
        given = {name: environment[name] for name in ("XDG_CONFIG_HOME", "PENSTOCK_BOOTSTRAP")}
        for topic in ("clicks", "orders"):
            penstock("topic", "create", topic, "-p", "2", environment=given)
            for partition in ("0", "1"):
                penstock("produce", topic, "-p", partition, "-k", "k", stdin="v\n" * 20, environment=given)
        penstock("group", "seek", "billing", "--to", "5", "--topic", "clicks", "--yes", environment=given)
        with Producer(running.bootstrap_servers, transactional_id="shop-1") as producer, producer.transaction():
            producer.send("clicks", b"v", partition=0)
        hang(running.bootstrap_servers, "orders", partition=1)  # at offset 20
        make_lake(folder / "lake")
        (folder / "pipelines").mkdir()
        yield folder, environment


def in_order() -> list[str]:
    """Those that make what others need go first, those that take it away go last."""
    every = [example for _, command in EVERY for example in examples_of(command)]
    rank = {
        "create": -2, "server format": -2, "user add": -2, "quota set": -2,
        "quota remove": -1,  # a limit for everybody would slow down what comes after it
        "delete": 1, "pipeline stop": 1, "pipeline reset": 2,
        "cert renew": 1, "rotate-ca cluster finish": 2,  # which waits until everything is renewed
    }  # fmt: skip
    return sorted(every, key=lambda example: next((r for word, r in rank.items() if word in example), 0))


def test_every_example_works(reader: tuple[Path, dict[str, str]]) -> None:
    folder, environment = reader
    quick = warm.install(folder / "bin")
    for example in in_order():
        if example.startswith(ELSEWHERE):
            continue
        if example.startswith(GO_ON):
            goes_on(example, folder, environment)
            continue
        done = subprocess.run(
            ["bash", "-c", example],
            # A pipeline makes a warehouse of its own.
            cwd=folder / "pipelines" if example.startswith("penstock pipeline") else folder,
            env={**environment, "PATH": f"{quick}{os.pathsep}{environment['PATH']}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within(DEADLINE_S),
        )
        # Nobody reads in `billing`, which is what it says of it.
        found = 10 if example.startswith("penstock group explain billing") else 0
        assert done.returncode == found, f"$ {example}\n{done.stdout}{done.stderr}"


def goes_on(example: str, folder: Path, environment: dict[str, str]) -> None:
    log = folder / "example.log"
    log.unlink(missing_ok=True)
    command = example.replace("penstock dev --ephemeral", "penstock dev --ephemeral --port 0")
    child = Child(["bash", "-c", f"cd {folder} && exec {command}"], log, environment)
    try:
        wait_for(f"{example} to say something", lambda: not child.running() or log.read_text(), timeout_s=DEADLINE_S)
        assert child.running(), f"$ {example}\n{child.tail()}"
        os.kill(child.pid, signal.SIGINT)
        assert child.wait(DEADLINE_S) == 0, f"$ {example}\n{child.tail()}"
    finally:
        child.kill()
