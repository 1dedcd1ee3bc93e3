from __future__ import annotations

from penstock.model.config import BrokerSettings
from penstock.server.launch import dev_properties


def ports(port: int) -> tuple[int, int, int]:
    settings = BrokerSettings.load(dev_properties("/data", port=port, overrides={}))
    client, controller = (each.port for each in settings.listeners)
    return client, controller, int(settings.text("penstock.admin.listener").rpartition(":")[2])


def test_the_usual_port_brings_the_usual_others() -> None:
    assert ports(9092) == (9092, 19_092, 9644)


def test_a_free_port_is_asked_for_everywhere() -> None:
    assert ports(0) == (0, 0, 0)


def test_nodes_on_neighbouring_ports_do_not_meet() -> None:
    taken = [port for first in range(9092, 9099) for port in ports(first)]
    assert len(taken) == len(set(taken))


def test_ports_beside_a_high_one_stay_in_range() -> None:
    assert all(0 < port < 65_536 for port in ports(65_535))


def test_what_is_given_comes_before_the_defaults() -> None:
    given = {"penstock.admin.listener": "", "log.dirs": "/elsewhere"}
    properties = dev_properties("/data", port=9092, overrides=given)
    assert given.items() <= properties.items()
