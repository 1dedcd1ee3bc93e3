"""An agent in a process of its own, to be killed: `python -m tests.faults.agent.run_agent agent.toml`.

With `STEP=ACT:N` it kills (-9) or stops itself when it comes to a step of its transactions for the Nth time; with
`plant=NAME` it has a fault that tests have to find. It ends as the command line would end.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from penstock.agent.agent import Agent
from penstock.agent.exactly.positions import Positions
from penstock.agent.exactly.topic import TOPIC
from penstock.agent.exactly.transactions import ExactlyOnce
from penstock.agent.settings import read_agent
from penstock.cli.failures import explain
from penstock.client.producer import Producer
from penstock.client.producer.transactions.driver import TransactionDriver
from penstock.client.producer.transactions.reactions import Api
from penstock.model.errors import PenstockError

SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}

STEPS = (
    "began",  # producer id taken, nothing read
    "read",  # positions read, no stamp yet
    "filling",  # records on their way, the transaction open
    "filled",  # before positions are written
    "written",  # between positions and commit
    "ending",  # the end is asked for, nobody has heard the answer
    "committed",  # after the commit, before anybody hears of it
    "done",  # inputs know, the local copy does not
)


def reach(step: str, act: str, times: int) -> None:
    """Puts the act in front of a step."""
    left = times

    def now() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), SIGNALS[act])

    match step:
        case "began":
            before(ExactlyOnce, "_believe", now)
        case "read":
            before(Positions, "begin", now)
        case "filling":
            after(ExactlyOnce, "took_off", now)
        case "filled":
            before(ExactlyOnce, "_write", now)
        case "written":
            before(ExactlyOnce, "_commit", now)
        case "ending":
            at_the_end_request(now)
        case "committed":
            before(ExactlyOnce, "_committed", now)
        case "done":
            after(ExactlyOnce, "_committed", now)
        case _:
            raise SystemExit(f"no step {step!r}")


def before(owner: type, name: str, act: Callable[[], None]) -> None:
    usual = getattr(owner, name)

    @wraps(usual)
    def acting(*given: Any, **named: Any) -> Any:
        act()
        return usual(*given, **named)

    setattr(owner, name, acting)


def after(owner: type, name: str, act: Callable[[], None]) -> None:
    usual = getattr(owner, name)

    @wraps(usual)
    def acting(*given: Any, **named: Any) -> Any:
        answer = usual(*given, **named)
        act()
        return answer

    setattr(owner, name, acting)


def at_the_end_request(act: Callable[[], None]) -> None:
    usual = TransactionDriver._ask

    async def asking(driver: TransactionDriver, sent: Any) -> None:
        asked = asyncio.ensure_future(usual(driver, sent))
        if sent.api is Api.END:
            for _ in range(5):
                await asyncio.sleep(0)
            act()
        await asked

    TransactionDriver._ask = asking  # type: ignore[method-assign]


def plant(fault: str) -> None:
    match fault:
        case "early":
            # Positions of what came while the transaction was being closed go into it too.
            usual = ExactlyOnce._write

            async def write(transactions: ExactlyOnce, attempt: Any) -> int:
                await asyncio.sleep(0.1)
                for lane in transactions._outlet.lanes.values():
                    for shipment in lane.queue:
                        shipment.done.stage()  # type: ignore[union-attr]
                return await usual(transactions, attempt)

            ExactlyOnce._write = write  # type: ignore[method-assign]
        case "late":
            # Positions of one transaction go into the next.
            withheld: list[dict[str, Any]] = [{}]
            take = Positions.take

            def late(positions: Positions) -> dict[str, Any]:
                withheld.append(take(positions))
                return withheld.pop(0)

            Positions.take = late  # type: ignore[method-assign]
        case "uncopied":
            # The local copy of positions is never written.
            async def copy(positions: Positions) -> bool:
                return False

            Positions.copy = copy  # type: ignore[method-assign]
        case "outside":
            # Positions are written beside the transaction, as soon as they are known.
            send_batch = Producer.send_batch
            beside: list[Producer] = []

            def send(producer: Producer, topic: str, values: Any, **more: Any) -> Any:
                if topic == TOPIC and len(values) > 1:
                    if not beside:
                        beside.append(Producer(producer.settings.bootstrap_servers, linger_ms=0))
                    send_batch(beside[0], topic, values[:-1], **{**more, "keys": more["keys"][:-1]})
                return send_batch(producer, topic, values, **more)

            Producer.send_batch = send  # type: ignore[assignment]
        case _:
            raise SystemExit(f"no fault {fault!r}")


async def main(file: str) -> None:
    await Agent(read_agent(Path(file))).run()


if __name__ == "__main__":
    for argument in sys.argv[2:]:
        name, _, value = argument.partition("=")
        if name == "plant":
            plant(value)
        else:
            act, _, times = value.partition(":")
            reach(name, act, int(times))
    try:
        asyncio.run(main(sys.argv[1]))
    except PenstockError as failure:
        code, words = explain(failure)
        print(words, file=sys.stderr)
        sys.exit(code)
