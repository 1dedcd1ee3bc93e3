"""`penstock dev` with something planted in it: `python -m tests.faults.planted_node PLANT SECONDS FOLDER`.

The plant is an effect of the quorum that fails, another part that breaks, or something that hangs when the node is told
to stop. SECONDS bound the stop.
"""

from __future__ import annotations

import asyncio
import atexit
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

from penstock.cli.main import main
from penstock.quorum import events
from penstock.server import running
from penstock.server.loops.duty import duty
from penstock.server.node import Node

HANG_S = 3_600
SLOW_S = 5
"""Longer than a disk may hang and a doomed node live on, where both are a second."""


class Planted(Exception):
    """What nobody foresaw."""


def fail_at(effect: type[Any], node: Node) -> None:
    """The quorum is given an effect of this kind to carry out, and cannot."""
    core: Any = node.quorum

    def planted(_effect: events.Effect) -> None:
        raise Planted

    def on_its_loop() -> None:
        core._carry_out = core._state_file = planted
        core._effects.append(object.__new__(effect))
        core._run()

    node._sides.control.tell(on_its_loop)


def fail_in_a_task(_node: Node) -> None:
    async def broken() -> None:
        raise Planted

    duty(broken(), name="planted task")


def fail_in_a_listener(node: Node) -> None:
    def broken(*_: object) -> None:
        raise Planted

    node._sides.control.tell(node.control.metadata.on_publish, broken)


def fail_in_the_controllers_timer(node: Node) -> None:
    def broken(*_: object) -> None:
        raise Planted

    controller: Any = node.control.controller
    controller._due = broken
    node._sides.control.tell(controller._tick)


def hang_in_an_await(node: Node) -> None:
    async def forever() -> None:
        await asyncio.sleep(HANG_S)

    node.broker.close = forever  # type: ignore[method-assign]


def hang_in_the_loop(node: Node) -> None:
    async def forever() -> None:
        time.sleep(HANG_S)

    node.broker.close = forever  # type: ignore[method-assign]


def hang_in_a_thread(node: Node) -> None:
    node._ports.offload.call(time.sleep, HANG_S)


def hang_before_the_signal(_node: Node) -> None:
    time.sleep(HANG_S)


def close_slowly(node: Node) -> None:
    watch: Any = node._hangs
    watch._timeout_ms = lambda: 1_000
    running.END_WITHIN_S = 1.0  # type: ignore[misc]
    close = node.broker.store.close

    def slowly(broker_epoch: int) -> None:
        time.sleep(SLOW_S)
        close(broker_epoch)

    node.broker.store.close = slowly  # type: ignore[method-assign]


PLANTS: dict[str, Callable[[Node], None]] = {
    **{effect.__name__: partial(fail_at, effect) for effect in get_args(events.Effect)},
    "task": fail_in_a_task,
    "listener": fail_in_a_listener,
    "controller": fail_in_the_controllers_timer,
    "await": hang_in_an_await,
    "loop": hang_in_the_loop,
    "thread": hang_in_a_thread,
    "held": hang_before_the_signal,
    "slow": close_slowly,
}


def plant(name: str, stop_within_s: float) -> None:
    serve = running.serve

    def serve_planted(make_node: Callable[[], Node], ready: Callable[[Node], None]) -> None:
        def ready_then_planted(node: Node) -> None:
            ready(node)
            sys.stdout.flush()
            PLANTS[name](node)

        serve(make_node, ready_then_planted, stop_within_s=stop_within_s)

    running.serve = serve_planted  # type: ignore[assignment]


def tell_of_the_alarm() -> None:
    """One that is still set when Python ends kills the process: handlers are gone by then."""
    print("the alarm is", "set" if any(signal.getitimer(signal.ITIMER_REAL)) else "off")


if __name__ == "__main__":
    atexit.register(tell_of_the_alarm)
    plant(sys.argv[1], float(sys.argv[2]))
    main(["dev", "--port", "0", "--data-dir", sys.argv[3], "-c", "penstock.admin.listener="])
