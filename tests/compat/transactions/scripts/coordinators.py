"""Who coordinates, and what a coordinator tells of its transactions."""

from __future__ import annotations

from penstock.protocol.messages.describe_transactions import DescribeTransactionsRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.list_transactions import ListTransactionsRequest
from tests.compat.transactions.looking import agreed
from tests.compat.transactions.scripts.table import INT64_MAX, NOBODY, script
from tests.compat.transactions.stage import Stage


@script("FindCoordinator", since=1, until=3)
async def one_id(stage: Stage, version: int) -> None:
    for name in (stage.id, "", " ", "x" * 1_000):
        await stage.ask(FindCoordinatorRequest(key_type=1, key=name), version)


@script("FindCoordinator", since=4)
async def several_ids(stage: Stage, version: int) -> None:
    for names in ([stage.id, "", "another"], [], [stage.id, stage.id]):
        await stage.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=names), version)


@script("DescribeTransactions")
async def known_and_unknown_ids(stage: Stage, version: int) -> None:
    made = DescribeTransactionsRequest
    await stage.init(timeout_ms=5_000)
    for names in ([stage.id], [], [""], ["unheard-of", stage.id, ""], [stage.id, stage.id]):
        await stage.ask(made(transactional_ids=names), version)
    await stage.add(partitions={stage.topic: [0, 1]})
    await stage.add_offsets()
    await stage.ask(made(transactional_ids=[stage.id]), version)
    for end in (4, 5):
        for commit in (True, False):
            await stage.add()
            await stage.end(end, commit=commit)
            await stage.ask(made(transactional_ids=[stage.id]), version)


@script("ListTransactions")
async def filters_of_every_kind(stage: Stage, version: int) -> None:
    made = ListTransactionsRequest
    await stage.init()
    states = ("Empty", "Ongoing", "CompleteCommit", "CompleteAbort", "PrepareCommit", "Dead", "PrepareEpochFence")
    for begun in (False, True):
        if begun:
            await stage.add()
        for filters in ([], *([each] for each in states), ["ongoing"], [""], ["Ongoing", "unheard of", "Empty", "x"]):
            await agreed(stage, made(state_filters=filters, producer_id_filters=[stage.pid]), version)
        for pids in ([NOBODY], [-1], [stage.pid, NOBODY, -1], [stage.pid, stage.pid]):
            await agreed(stage, made(state_filters=[], producer_id_filters=pids), version)
    await agreed(stage, made(state_filters=["unheard of", "unheard of"], producer_id_filters=[stage.pid]), version)


@script("ListTransactions", since=1)
async def how_long_they_are_open(stage: Stage, version: int) -> None:
    made = ListTransactionsRequest
    await stage.init()
    for begun in (False, True):
        if begun:
            await stage.add()
        for duration_ms in (-1, 0, -5, 3_600_000, INT64_MAX, -INT64_MAX):
            request = made(state_filters=[], producer_id_filters=[stage.pid], duration_filter=duration_ms)
            await agreed(stage, request, version)


@script("ListTransactions", since=2)
async def patterns(stage: Stage, version: int) -> None:
    made = ListTransactionsRequest
    await stage.init()
    whole = stage.id
    for pattern in (
        whole, whole[:-1], f"{whole[:-2]}.*", f"(?i){whole.upper()}", f"^{whole}$", "", None, "(", "[", "*", "a{2000}",
        "(?=x)", "\\Q" + whole + "\\E", "(?P<a>.*)", "(?<a>.*)", "\\pN", f"{whole}|x", ".", "(a)\\1", "x++", "\\C",
    ):  # fmt: skip
        request = made(state_filters=[], producer_id_filters=[stage.pid], transactional_id_pattern=pattern)
        await agreed(stage, request, version)
