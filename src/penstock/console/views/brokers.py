"""Brokers, where partitions lie on them, and the quorum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from penstock.client.admin import LogDirInfo, PartitionInfo, QuorumReplica
from penstock.console.sampler.picture import LOG_DIRS, BrokerLoad, moving
from penstock.console.views.seeing import Seeing, text_of
from penstock.model.ids import TopicPartition

PARTITIONS_MAX: Final = 5_000
CELLS_MAX: Final = 20_000
_NO_LOAD: Final = BrokerLoad()


def broker_rows(seeing: Seeing) -> list[dict[str, Any]]:
    """Every broker that the cluster knows, and those that only replicas tell of."""
    picture = seeing.picture
    known = {broker.id: broker for broker in picture.cluster.brokers}
    alive = picture.alive()
    rows = []
    for node in sorted(known.keys() | picture.loads.keys()):
        load = picture.loads.get(node, _NO_LOAD)
        broker, dirs = known.get(node), picture.log_dirs.get(node)
        rows.append(
            {
                "id": node,
                "host": broker.host if broker else None,
                "port": broker.port if broker else None,
                "rack": broker.rack if broker else None,
                "alive": node in alive,
                "controller": node == picture.cluster.controller,
                "leaders": load.leaders,
                "replicas": load.replicas,
                "behind": load.behind,
                "bytes": text_of(sum(each.size_bytes for each in dirs)) if dirs is not None else None,
                "rate": sum(picture.rates.get(item, 0.0) for item in picture.led_by.get(node, ()))
                if picture.rates
                else None,
                "dirs": [_directory(each) for each in dirs or []],
            }
        )
    return rows


def _directory(found: LogDirInfo) -> dict[str, Any]:
    return {
        "path": found.path,
        "total": text_of(found.total_bytes if found.total_bytes >= 0 else None),
        "usable": text_of(found.usable_bytes if found.usable_bytes >= 0 else None),
        "used": str(found.size_bytes),
        "error": found.error,
    }


def broker_list(seeing: Seeing) -> dict[str, Any]:
    rows = broker_rows(seeing)
    return seeing.stamped(
        {"total": len(rows), "matching": len(rows), "items": rows, "command": "penstock cluster brokers"}
    )


def cluster_map(seeing: Seeing, topic: str | None) -> dict[str, Any]:
    """Partitions one by one as far as they can be drawn, the worst first, and in sums by broker and topic for all."""
    picture = seeing.picture
    placed = list(_placed(seeing, topic))
    worst = sorted(placed, key=lambda each: _badness(seeing, *each))[:PARTITIONS_MAX]
    shown = [_partition(seeing, name, partition) for name, partition in worst]
    rows = broker_rows(seeing)
    return seeing.stamped(
        {
            "brokers": rows,
            "partitions": shown,
            "total": len(placed),
            "cells": _cells(seeing, placed),
            "quorum": _quorum(seeing),
            "skew": {
                "leaders": _skew([row["leaders"] for row in rows if row["alive"]]),
                "bytes": _skew([int(row["bytes"]) for row in rows if row["alive"] and row["bytes"] is not None]),
            },
            "moving": len(picture.moves),
            "command": "penstock cluster partitions list",
        },
        LOG_DIRS,
    )


def _placed(seeing: Seeing, topic: str | None) -> Iterator[tuple[str, PartitionInfo]]:
    for name, info in seeing.picture.topics.items():
        if seeing.vision.topic(name) and (topic is None or name == topic):
            for partition in info.partitions:
                yield name, partition


def _badness(seeing: Seeing, topic: str, partition: PartitionInfo) -> tuple[Any, ...]:
    item = TopicPartition(topic, partition.partition)
    return (
        partition.leader >= 0,
        len(partition.isr) >= len(partition.replicas),
        item not in seeing.picture.moves,
        -seeing.picture.sizes.get(item, 0),
        item,
    )


def _partition(seeing: Seeing, topic: str, partition: PartitionInfo) -> dict[str, Any]:
    item = TopicPartition(topic, partition.partition)
    return {
        "topic": topic,
        "partition": partition.partition,
        "leader": partition.leader if partition.leader >= 0 else None,
        "replicas": partition.replicas,
        "isr": partition.isr,
        "bytes": text_of(seeing.picture.sizes.get(item)),
        "rate": seeing.picture.rates.get(item),
        "moving": moving(seeing.picture.moves.get(item)),
    }


def _cells(seeing: Seeing, placed: list[tuple[str, PartitionInfo]]) -> list[dict[str, Any]]:
    cells: dict[tuple[int, str], list[int]] = {}
    sizes = seeing.picture.sizes
    for topic, partition in placed:
        size, leader = sizes.get(TopicPartition(topic, partition.partition), 0), partition.leader
        whole = len(partition.isr) == len(partition.replicas)
        for node in partition.replicas:
            cell = cells.get((node, topic))
            if cell is None:
                cell = cells[node, topic] = [0, 0, 0, 0]
            cell[0] += node == leader
            cell[1] += 1
            cell[2] += not whole and node not in partition.isr
            cell[3] += size
    largest = list(cells.items())
    if len(largest) > CELLS_MAX:
        largest = sorted(largest, key=lambda each: (-each[1][2], -each[1][3], each[0]))[:CELLS_MAX]
    return [
        {"broker": node, "topic": topic, "leaders": led, "replicas": count, "behind": behind, "bytes": str(size)}
        for (node, topic), (led, count, behind, size) in sorted(largest)
    ]


def _quorum(seeing: Seeing) -> dict[str, Any] | None:
    quorum = seeing.picture.quorum
    if quorum is None:
        return None
    return {
        "leader": quorum.leader,
        "epoch": quorum.epoch,
        "high_watermark": str(quorum.high_watermark),
        "voters": [_voter(each) for each in quorum.voters],
        "observers": [_voter(each) for each in quorum.observers],
    }


def _voter(replica: QuorumReplica) -> dict[str, Any]:
    caught_up = replica.last_caught_up_ms
    return {"id": replica.id, "lag": str(replica.lag), "caught_up_ms": caught_up if caught_up >= 0 else None}


def _skew(loads: list[int]) -> float | None:
    """How much more the most loaded has than the mean; 1.0 is even."""
    mean = sum(loads) / len(loads) if loads else 0
    return max(loads) / mean if mean else None
