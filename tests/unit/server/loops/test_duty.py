"""What nobody foresaw reaches whoever runs the node, and no task of the server can end without a word."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path
from typing import Any

import penstock.server
from penstock.model.errors import NOT_CONTROLLER, Refused, StorageFailed
from penstock.server.loops.duty import DUTY, duty, on_duty, reason

SERVER = Path(penstock.server.__file__).parent

STARTED_AND_HEARD = {
    # Whoever starts these awaits them, or hears of their end in a callback of its own.
    ("reception/connection.py", "_conclude"): "a handler's; its end answers the request or closes the connection",
    ("controller/channel.py", "_unless_replaced"): "awaited there",
    ("loops/crossing.py", "begin"): "its end is the answer to whoever asked from the other loop",
    ("partitions/upkeep/checkpoints.py", "_sync"): "a call to the disk, awaited there",
    ("partitions/upkeep/compaction.py", "_help"): "a helper process, awaited there",
    ("controller/producer_ids.py", "_fetch"): "awaited by whoever wants an id; one that failed is asked again",
    ("coordinating/topic.py", "make"): "awaited there",
    ("partitions/upkeep/flushing.py", "_begin"): "a call to the disk, awaited by the duty of its lane",
    ("quorum/fetcher.py", "_asked"): "awaited there",
    ("loops/duty.py", "duty"): "the door itself",
    ("metrics/http_admin.py", "_serve"): "a page: whatever breaks in it is its answer",
    ("reception/login.py", "_act"): "work for a stranger: whatever breaks in it costs that connection",
    ("node.py", "start"): "awaited there",
    ("running.py", "_live"): "awaited there",
}
TASKS = {"create_task", "ensure_future"}


def told(steps: Any) -> list[dict[str, Any]]:
    """What the loop's exception handler hears while the steps run."""
    heard: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: heard.append(context))
        await steps()

    asyncio.run(main())
    return heard


def test_a_duty_that_breaks_is_told_at_once_although_somebody_keeps_it() -> None:
    kept = []

    async def broken() -> None:
        raise KeyError("gone")

    async def steps() -> None:
        kept.append(duty(broken(), name="a duty"))
        await asyncio.wait(kept)
        await asyncio.sleep(0)

    (context,) = told(steps)
    assert context[DUTY] == "a duty failed: KeyError: 'gone'"
    assert isinstance(context["exception"], KeyError)


def test_a_duty_that_ends_or_is_cancelled_is_no_news() -> None:
    async def quick() -> None:
        return

    async def steps() -> None:
        ended, cancelled = duty(quick(), name="ended"), duty(asyncio.sleep(60), name="cancelled")
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait((ended, cancelled))
        await asyncio.sleep(0)

    assert told(steps) == []


def test_a_timer_that_breaks_is_told() -> None:
    def broken() -> None:
        raise ValueError("why")

    async def steps() -> None:
        asyncio.get_running_loop().call_soon(on_duty("a timer", broken))
        await asyncio.sleep(0)

    (context,) = told(steps)
    assert context[DUTY] == "a timer failed: ValueError: why"


def test_what_the_world_did_is_told_in_its_own_words_and_anything_else_as_ours() -> None:
    failed = StorageFailed("/data", "no room")
    assert reason("Append", failed) is failed
    assert str(reason("Append", Refused(NOT_CONTROLLER, "not here"))).startswith("Append failed: Refused: ")
    assert str(reason("Append", AssertionError("offsets rise"))) == "Append failed: AssertionError: offsets rise"


def test_every_task_of_the_server_is_a_duty_or_heard_by_whoever_starts_it() -> None:
    found = set()
    for path in sorted(SERVER.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
            if any(isinstance(called, ast.Attribute) and called.attr in TASKS for called in calls):
                found.add((path.relative_to(SERVER).as_posix(), function.name))
    assert found == set(STARTED_AND_HEARD)
