"""What is told of clients with limits, however many names they make up."""

from __future__ import annotations

from penstock.metadata.image import ClusterImage, quota_entity
from penstock.security.quotas.clients import ClientQuotas, Meter
from penstock.server.metrics.page import Sample
from penstock.server.metrics.quota_metrics import OTHERS, TOLD_MAX, quota_samples

PRODUCED, FETCHED, TIME = "producer_byte_rate", "consumer_byte_rate", "request_percentage"


def limited(*entity: tuple[str, str | None]) -> ClientQuotas:
    image, clients = ClusterImage(), ClientQuotas()
    image.quotas[quota_entity(entity)] = {PRODUCED: 1e9, FETCHED: 1e9, TIME: 1e9}
    clients.load(image)
    return clients


def values(samples: list[Sample]) -> dict[tuple[str, str, str, str], float]:
    return {
        (each.name, each.labels["resource"], each.labels["user"], each.labels["clientId"]): each.value
        for each in samples
    }


def test_names_are_those_of_the_jmx_exporter() -> None:
    clients = limited(("user", "alice"))
    meter = Meter(clients, "alice")
    meter.charge(PRODUCED, "c", 1_000, 0)
    meter.note_pause(PRODUCED, 30, 0)
    meter.charge(FETCHED, "c", 2_000, 0)
    meter.charge_time("c", 500, 0)
    quota = "kafka_server_quota_"
    assert values(list(quota_samples(clients, 0))) == {
        (quota + "byte_rate", "Produce", "alice", ""): 100,
        (quota + "throttle_time", "Produce", "alice", ""): 30,
        (quota + "byte_rate", "Fetch", "alice", ""): 200,
        (quota + "throttle_time", "Fetch", "alice", ""): 0,
        (quota + "request_time", "Request", "alice", ""): 5,
        (quota + "throttle_time", "Request", "alice", ""): 0,
    }


def test_only_those_who_use_most_have_a_name_and_all_are_forgotten_in_the_end() -> None:
    clients = limited(("client-id", None))
    meter = Meter(clients, "u")
    for number in range(300):
        meter.charge(PRODUCED, f"c{number}", 10 * number, 0)
        if number < 2:
            meter.note_pause(PRODUCED, 100 + 100 * number, 0)
    meter.charge(PRODUCED, OTHERS, 1e6, 0)
    found = values(list(quota_samples(clients, 0)))
    rates = {client: value for (name, _, _, client), value in found.items() if name.endswith("byte_rate")}
    assert len(rates) == TOLD_MAX + 1
    assert rates["c299"] == 299
    assert rates[OTHERS] == 1e5 + sum(range(300 - TOLD_MAX))
    assert found["kafka_server_quota_throttle_time", "Produce", OTHERS, OTHERS] == 150
    clients.sweep(3_600_000)
    assert list(quota_samples(clients, 3_600_000)) == []
