"""Questions to several brokers at once."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Mapping
from functools import partial

from penstock.client.admin.session import gathered
from penstock.client.errors import ClientError


def test_a_question_whose_task_is_cancelled_before_its_first_step_leaves_nothing_behind() -> None:
    asked: list[str] = []

    async def ask(item: str) -> Mapping[str, int | ClientError]:
        asked.append(item)
        return {item: 1}

    async def main() -> None:
        task = asyncio.ensure_future(gathered(partial(ask, "a"), ["a"]))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    assert (asked, [str(each.message) for each in told]) == ([], [])


def test_a_question_that_fails_is_the_outcome_of_all_it_was_about() -> None:
    failure = ClientError("no", where="there")

    async def ask() -> Mapping[str, int | ClientError]:
        raise failure

    assert asyncio.run(gathered(ask, ["a", "b"])) == {"a": failure, "b": failure}
