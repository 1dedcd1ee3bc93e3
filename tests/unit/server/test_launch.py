from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from penstock.model.config import BadSettings, BrokerSettings
from penstock.model.errors import PenstockError
from penstock.model.secret import Secret
from penstock.server.launch import dev_node, dev_properties, explain_settings, load_settings
from penstock.server.loops.control_thread import NAME
from penstock.server.loops.processor_time import ProcessorTime


def ports(port: int) -> tuple[int, int]:
    """The clients' port and the admin port."""
    settings = BrokerSettings.load(dev_properties("/data", port=port, overrides={}))
    client, controller = (each.port for each in settings.listeners)
    assert controller == 0, "any that is free"
    return client, int(settings.text("penstock.admin.listener").rpartition(":")[2])


def test_the_usual_port_brings_the_usual_other() -> None:
    assert ports(9092) == (9092, 9644)


def test_a_free_port_is_asked_for_everywhere() -> None:
    assert ports(0) == (0, 0)


def test_nodes_on_neighbouring_ports_do_not_meet() -> None:
    taken = [port for first in range(9092, 9099) for port in ports(first)]
    assert len(taken) == len(set(taken))


def test_ports_beside_a_high_one_stay_in_range() -> None:
    assert all(0 < port < 65_536 for port in ports(65_535))


def test_what_is_given_comes_before_the_defaults() -> None:
    given = {"penstock.admin.listener": "", "log.dirs": "/elsewhere"}
    properties = dev_properties("/data", port=9092, overrides=given)
    assert given.items() <= properties.items()


def test_three_nodes_find_each_other_and_keep_three_copies() -> None:
    controllers = (20_007, 20_001, 20_005)
    nodes = [
        BrokerSettings.load(
            dev_properties("/data", port=9092, overrides={}, node_id=i, nodes=3, controller_ports=controllers)
        )
        for i in (1, 2, 3)
    ]
    assert [(each.node_id, each.listeners[0].port, each.listeners[1].port) for each in nodes] == [
        (1, 9092, 20_007),
        (2, 9093, 20_001),
        (3, 9094, 20_005),
    ]
    for each in nodes:
        assert each.quorum_bootstrap_servers == tuple(("127.0.0.1", port) for port in controllers)
        assert (each.number("default.replication.factor"), each.number("min.insync.replicas")) == (3, 2)
        assert each.number("offsets.topic.replication.factor") == 3
    assert len({each.log_dirs for each in nodes}) == 3


def test_two_nodes_can_lose_neither_but_write_with_one() -> None:
    settings = BrokerSettings.load(dev_properties("/data", port=9092, overrides={}, node_id=2, nodes=2))
    assert (settings.number("default.replication.factor"), settings.number("min.insync.replicas")) == (2, 1)


def test_a_node_that_comes_later_is_only_a_broker() -> None:
    settings = BrokerSettings.load(dev_properties("/data", port=9092, overrides={}, node_id=4, nodes=3))
    assert (settings.is_broker, settings.is_controller) == (True, False)
    assert [each.port for each in settings.listeners] == [9095]
    assert len(settings.quorum_bootstrap_servers) == 3


def test_times_and_sizes_may_be_written_with_units_in_toml_and_not_in_kafkas_own_files(tmp_path: Path) -> None:
    given = {
        **dev_properties("/data", port=9092, overrides={}),
        "log.retention.ms": "7d", "log.segment.bytes": "512MB", "log.roll.hours": "2d", "log.retention.bytes": "-1",
    }  # fmt: skip
    toml, properties = tmp_path / "server.toml", tmp_path / "server.properties"
    toml.write_text("".join(f'"{name}" = "{value}"\n' for name, value in given.items()))
    settings = load_settings(str(toml))
    names = ("log.retention.ms", "log.segment.bytes", "log.roll.hours", "log.retention.bytes")
    assert [settings.number(name) for name in names] == [604_800_000, 512 << 20, 48, -1]
    properties.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    with pytest.raises(BadSettings, match="not a number of type"):
        load_settings(str(properties))


def test_values_may_stand_in_other_files_that_the_file_names(tmp_path: Path) -> None:
    kafka = "org.apache.kafka.common.config.provider."
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "token").write_text("sesame")
    given = {
        **dev_properties("/data", port=9092, overrides={}),
        "config.providers": "dir",
        "config.providers.dir.class": f"{kafka}DirectoryConfigProvider",
        "config.providers.dir.param.allowed.paths": str(tmp_path / "secrets"),
        "delegation.token.secret.key": f"${{dir:{tmp_path}/secrets:token}}",
    }
    path = tmp_path / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    settings = load_settings(str(path))
    secret = settings["delegation.token.secret.key"]
    assert isinstance(secret, Secret)
    assert secret.reveal() == "sesame"
    assert "sesame" not in repr(settings)
    assert "sesame" not in str(explain_settings(settings, everything=True))
    (tmp_path / "secrets" / "token").unlink()
    with pytest.raises(PenstockError, match=r"server.properties: delegation.token.secret.key: .* cannot be read"):
        load_settings(str(path))


def test_either_loop_of_a_node_knows_what_its_own_thread_got_of_the_processors(tmp_path: Path) -> None:
    asked: list[str] = []

    def processor() -> ProcessorTime:
        asked.append(threading.current_thread().name)
        return ProcessorTime()

    async def live() -> None:
        node = dev_node(str(tmp_path), port=0, overrides={"penstock.admin.listener": ""})
        node.processor = processor
        await node.start()
        await node.stop()

    asyncio.run(live())
    assert sorted(asked) == sorted([threading.current_thread().name, NAME])
