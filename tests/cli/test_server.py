"""`penstock server …`: from a configuration file to a node, and what is said about files that are wrong."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import blocking
from penstock.client.admin import ScramCredential
from tests.cli.command import Running, penstock
from tests.compat.processes import free_ports

ConfigFile = Callable[..., Path]


@pytest.fixture
def config(tmp_path: Path) -> ConfigFile:
    """Writes a server.properties for a single node: `config(**{"num.partitions": "3"})`; None leaves a line out."""

    def write(name: str = "server.properties", **changes: str | None) -> Path:
        port, controller_port, admin_port = free_ports(3)
        properties = {
            "node.id": "1",
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
            "log.dirs": str(tmp_path / "data"),
            "penstock.admin.listener": f"127.0.0.1:{admin_port}",
            **changes,
        }
        given = {key: value for key, value in properties.items() if value is not None}
        line = '"{}" = "{}"\n' if name.endswith(".toml") else "{}={}\n"
        path = tmp_path / name
        path.write_text("".join(line.format(key, value) for key, value in given.items()))
        return path

    return write


@pytest.mark.parametrize("name", ["server.properties", "server.toml"])
def test_a_formatted_node_starts_serves_and_stops(config: ConfigFile, tmp_path: Path, name: str) -> None:
    path = config(name, **{"num.partitions": "3"})
    formatted = penstock("server", "format", "--config", path)
    assert formatted.code == 0
    assert len(formatted.out.strip()) == 22
    assert formatted.err == f"formatted {tmp_path / 'data'}\n"
    with Running("server", "start", "--config", path, log=tmp_path / "log") as node:
        address = node.wait_to_say(r"node 1 is ready on (127\.0\.0\.1:\d+)")[1]
        assert penstock("topic", "create", "t", "-b", address).code == 0
        (found,) = penstock("topic", "list", "--format", "json", "-b", address).data
        assert found["partitions"] == 3
        assert node.stop() == 0
        assert "Traceback" not in node.words


def test_the_controllers_of_a_new_cluster_are_named_once_and_all_together(config: ConfigFile) -> None:
    one, two = "3Db5QLSqSZieL3rJBUUegA", "L3rJBUUegA3Db5QLSqSZiQ"
    several = {"controller.quorum.bootstrap.servers": "127.0.0.1:9093,127.0.0.1:9094"}
    listed = f"1@127.0.0.1:9093:{one},2@127.0.0.1:9094:{two}"
    for given, changes, words in (
        ((), several, "names several controllers; say which vote at first"),
        (("--standalone", "--no-initial-controllers"), {}, "exclude each other"),
        (("--initial-controllers", "1@127.0.0.1:9093"), {}, "is not ID@HOST:PORT:DIRECTORY_ID"),
        (("--initial-controllers", listed), {"node.id": "7"}, "has no entry for this node, 7"),
        (
            ("--initial-controllers", listed),
            {"process.roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:9092"},
            "this node is no controller",
        ),
    ):
        said = penstock("server", "format", "--config", config(**changes), *given)
        assert said.code == 2, said
        assert words in said.err.replace("\n", " ")
    said = penstock("server", "format", "--config", config(**several), "--initial-controllers", listed)
    assert said.code == 0, said.err


def test_a_broker_and_a_controller_may_be_two_processes(config: ConfigFile, tmp_path: Path) -> None:
    port, controller_port = free_ports(2)
    apart = {
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
        "offsets.topic.replication.factor": "1",
        "penstock.admin.listener": "",
    }
    controller = config(
        "controller.properties",
        **apart,
        **{
            "process.roles": "controller",
            "listeners": f"CONTROLLER://127.0.0.1:{controller_port}",
            "log.dirs": str(tmp_path / "controller"),
        },
    )
    broker = config(
        "broker.properties",
        **apart,
        **{
            "node.id": "2",
            "process.roles": "broker",
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(tmp_path / "broker"),
        },
    )
    cluster_id = penstock("server", "format", "--config", controller).out.strip()
    assert penstock("server", "format", "--config", broker, "--cluster-id", cluster_id).code == 0
    with Running("server", "start", "--config", broker, log=tmp_path / "broker.log") as serving:
        with Running("server", "start", "--config", controller, log=tmp_path / "controller.log") as deciding:
            deciding.wait_to_say(r"node 1 is ready on 127\.0\.0\.1:\d+")
            address = serving.wait_to_say(r"node 2 is ready on (127\.0\.0\.1:\d+)")[1]
            assert penstock("topic", "create", "t", "-b", address).code == 0
            assert serving.stop() == 0
            assert deciding.stop() == 0
        assert "Traceback" not in serving.words + deciding.words


def test_an_authorizer_that_anybody_could_walk_around_does_not_start(config: ConfigFile) -> None:
    path = config(**{"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"})
    assert penstock("server", "format", "--config", path).code == 0
    said = penstock("server", "start", "--config", path)
    assert said.code == 1
    assert "authorizer.class.name protects nothing while nodes talk to each other over the listener" in said.err
    assert "it is PLAINTEXT, so nobody proves who they are" in said.err


def test_tls_and_logins_beside_plain_listeners_are_named_at_the_start(config: ConfigFile, tmp_path: Path) -> None:
    given = {
        "ssl.keystore.location": "/etc/keys.pem",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": "secret",
    }
    path = config(**given)
    assert penstock("server", "format", "--config", path).code == 0
    with Running("server", "start", "--config", path, log=tmp_path / "log") as node:
        node.wait_to_say("is ready on")
        for name in given:
            assert f"{name} has no effect: no listener of this node that it holds for has TLS or logins" in node.words
        assert "secret" not in node.words
        assert node.words.count("has no effect") == 3
        assert node.stop() == 0


def test_a_directory_that_was_not_formatted_says_what_to_run(config: ConfigFile) -> None:
    said = penstock("server", "start", "--config", config())
    assert said.code == 1
    assert "penstock server format --config" in said.err


def test_formatting_twice_is_refused_unless_it_was_foreseen(config: ConfigFile) -> None:
    path = config()
    cluster_id = penstock("server", "format", "--config", path).out
    again = penstock("server", "format", "--config", path)
    assert (again.code, again.out) == (1, "")
    assert "--ignore-formatted" in again.err
    assert penstock("server", "format", "--config", path, "--ignore-formatted").out == cluster_id


def test_a_cluster_id_may_be_given(config: ConfigFile) -> None:
    said = penstock("server", "format", "--config", config(), "-t", "4L6g3nShT-eMCtK--X86sw")
    assert said.out == "4L6g3nShT-eMCtK--X86sw\n"


def test_a_taken_port_is_named(config: ConfigFile) -> None:
    path = config()
    penstock("server", "format", "--config", path)
    port = path.read_text().partition("PLAINTEXT://127.0.0.1:")[2].partition(",")[0]
    with socket.create_server(("127.0.0.1", int(port))):
        said = penstock("server", "start", "--config", path)
    assert said.code == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use (listeners: PLAINTEXT)" in said.err


def test_a_taken_admin_port_is_named_with_its_property_and_the_way_out(config: ConfigFile) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        admin = f"127.0.0.1:{taken.getsockname()[1]}"
        path = config(**{"penstock.admin.listener": admin})
        penstock("server", "format", "--config", path)
        said = penstock("server", "start", "--config", path)
    assert said.code == 1
    assert f"cannot listen on {admin}: Address already in use (penstock.admin.listener)" in said.err
    assert "Servers that share a host need an admin port each: give this one another in its file" in said.err


@pytest.mark.parametrize("command", [("start",), ("format",), ("config", "print"), ("config", "lint")])
def test_every_problem_of_a_file_is_named_at_once(config: ConfigFile, command: tuple[str, ...]) -> None:
    path = config(**{"log.segment.byte": "1", "num.partitions": "many", "node.id": None})
    said = penstock("server", *command, "--config", path)
    assert (said.code, said.out) == (1, "")
    assert f"{path} has 3 problems:" in said.err
    assert "log.segment.byte is not a property; did you mean log.segment.bytes?" in said.err
    assert "num.partitions" in said.err
    assert "node.id must be set" in said.err


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    said = penstock("server", "start", "--config", tmp_path / "absent")
    assert said.code == 2
    assert "does not exist" in said.err


@pytest.mark.parametrize(
    ("name", "content", "hint"),
    [("a.toml", b"= nonsense", "a.toml"), ("b.properties", b"node.id=\xff", "UTF-8"), ("c.properties", b"", "node.id")],
)
def test_a_file_that_cannot_be_read_is_explained(tmp_path: Path, name: str, content: bytes, hint: str) -> None:
    (tmp_path / name).write_bytes(content)
    said = penstock("server", "config", "lint", "--config", tmp_path / name)
    assert (said.code, said.out) == (1, "")
    assert hint in said.err


def test_print_shows_what_the_file_sets_or_everything(config: ConfigFile) -> None:
    path = config(**{"log.retention.hours": "5"})
    given = penstock("server", "config", "print", "--config", path, "--format", "json").data
    assert given["log.retention.hours"] == "5"
    assert "log.segment.bytes" not in given
    everything = penstock("server", "config", "print", "--config", path, "--all", "--format", "json").data
    assert everything["log.segment.bytes"] == str(1 << 30)
    text = penstock("server", "config", "print", "--config", path).out
    assert [line.split() for line in text.splitlines() if line.startswith("log.retention")] == [
        ["log.retention.hours", "5", "file"]
    ]


def test_secrets_are_not_printed(config: ConfigFile) -> None:
    path = config(**{"ssl.keystore.password": "geheim"})
    said = penstock("server", "config", "print", "--config", path)
    assert said.code == 0
    assert "ssl.keystore.password" in said.out
    assert "geheim" not in said.out + said.err


def test_lint_names_what_has_no_effect(config: ConfigFile) -> None:
    path = config(**{"num.io.threads": "8"})
    assert penstock("server", "config", "lint", "--config", path, "--format", "json").data == [
        {"name": "num.io.threads", "why": "has no meaning here"}
    ]
    assert "num.io.threads: has no meaning here" in penstock("server", "config", "lint", "--config", path).out


def test_lint_names_what_is_weak(tmp_path: Path) -> None:
    penstock("server", "init", "--secure", "--dir", tmp_path, "--node", "1=127.0.0.1")
    path = tmp_path / "node-1" / "server.properties"
    path.write_text(path.read_text() + "listener.name.controller.ssl.client.auth=none\n")
    weak = [
        each["name"]
        for each in penstock("server", "config", "lint", "--config", path, "--format", "json").data
        if each["why"].startswith("weak: ")
    ]
    assert weak == ["listener.name.controller.ssl.client.auth"]


def test_lint_of_a_file_where_everything_counts_has_no_data(config: ConfigFile) -> None:
    said = penstock("server", "config", "lint", "--config", config())
    assert said == (0, "", "every property in the file has an effect\n")


def test_log_lines_may_be_json(config: ConfigFile, tmp_path: Path) -> None:
    path = config()
    penstock("server", "format", "--config", path)
    with Running("server", "start", "--config", path, "--log-format", "json", log=tmp_path / "log") as node:
        node.wait_to_say(r'\{"time": "[^"]+Z", "level": "INFO", "logger": "penstock\.[^"]+", "message": "listening on')
        node.wait_to_say("is ready on")
        assert node.stop() == 0


def test_the_first_users_of_a_cluster_are_there_from_the_start(config: ConfigFile, tmp_path: Path) -> None:
    path = config()
    (tmp_path / "password").write_text("s3cret\n")
    users = (
        f"SCRAM-SHA-512=[name=admin,password-file={tmp_path / 'password'}]",
        "SCRAM-SHA-256=[name=admin,password=x,iterations=8192]",
    )
    twice = penstock("server", "format", "--config", path, "--add-scram", users[1], "--add-scram", users[1])
    assert (twice.code, "stands twice" in twice.err) == (2, True)
    given = [word for user in users for word in ("--add-scram", user)]
    assert penstock("server", "format", "--config", path, *given).code == 0
    with Running("server", "start", "--config", path, log=tmp_path / "log") as node:
        address = node.wait_to_say(r"is ready on (127\.0\.0\.1:\d+)")[1]
        with blocking.Admin(bootstrap_servers=address) as admin:
            told = admin.describe_scram_users().checked()
        assert told == {"admin": [ScramCredential("SCRAM-SHA-256", 8_192), ScramCredential("SCRAM-SHA-512", 4_096)]}
        assert node.stop() == 0
