"""Commits: how many a second, and how long one takes, by partitions of a transaction and by producers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from bench.txn.producers import Place, Shape
from bench.txn.stage import Stage, Subject
from penstock.bench.raw import percentile

PARTITIONS = (1, 10, 100)
PRODUCERS = (1, 8, 64)
CELLS = tuple(itertools.product(PARTITIONS, PRODUCERS))
RATE, COMMIT, WHOLE, CPU = "transactions a second", "p99 of a commit", "p99 of a whole transaction", "broker CPU"


def cell(partitions: int, producers: int) -> str:
    return f"{partitions} partition{'s' * (partitions > 1)}, {producers} producer{'s' * (producers > 1)}"


def group(where: str, what: str) -> str:
    return f"{where}: {what}"


def measure(stage: Stage, subjects: Sequence[Subject], where: str) -> None:
    """Rounds go from cell to cell and in each from broker to broker."""
    places = {}
    for subject in subjects:
        # One topic for all: what a round leaves behind is small, and making a hundred partitions is not the subject.
        name = f"txn-commits-{where.split()[0]}"
        subject.new_topic(name, max(PARTITIONS))
        places[subject.name] = stage.place(subject, name)
    for subject in subjects:
        mixed = [(places[subject.name], Shape(partitions=partitions), producers) for partitions, producers in CELLS]
        stage.warm_up(subject, mixed)
    rounds = stage.settings.rounds
    for number, (partitions, producers) in itertools.product(range(rounds), CELLS):
        if producers == PRODUCERS[0]:
            stage.say(f"{where}, round {number + 1} of {rounds}: {partitions} partitions a transaction")
        for subject in subjects:
            _sample(stage, subject, places[subject.name], where, partitions, producers)
    for subject in subjects:
        subject.drop_topic(places[subject.name].topic)


def _sample(stage: Stage, subject: Subject, place: Place, where: str, partitions: int, producers: int) -> None:
    done, spent = stage.sample(subject, place, Shape(partitions=partitions), producers)
    name, broker = cell(partitions, producers), subject.name
    stage.rate(group(where, RATE), name, "1/s", broker, done.per_s)
    if not done.commits_ms:
        return  # none ended in time; the rate of 0 says so
    stage.cost(group(where, COMMIT), name, "ms", broker, percentile(done.commits_ms, 0.99))
    stage.cost(group(where, WHOLE), name, "ms", broker, percentile(done.transactions_ms, 0.99))
    stage.cost(group(where, CPU), name, "µs/transaction", broker, spent / len(done.commits_ms) * 1e6)
