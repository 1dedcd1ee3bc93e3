"""A console of real parts in a thread of the test: samplers, server, guards; asked over HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from penstock.console.serving import listen, serve
from penstock.console.settings import ClusterAddress, ConsoleSettings
from tests.patience import wait_for, within


@dataclass
class RunningConsole:
    """Where it is, and requests to it as a script makes them."""

    address: str
    client: httpx.Client

    def get(self, path: str, **query: Any) -> Any:
        """What a GET below api/v1 answers, which has to be 200."""
        reply = self.client.get(f"api/v1/{path}", params=query)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def refusal(self, path: str, method: str = "GET", body: object = None, **query: Any) -> tuple[int, str]:
        """Status and code of what is not served."""
        reply = self.client.request(method, f"api/v1/{path}", params=query, json=body)
        assert reply.status_code >= 400, reply.text
        return reply.status_code, reply.json()["error"]["code"]

    def send(self, method: str, path: str, body: object = None, **query: Any) -> Any:
        reply = self.client.request(method, f"api/v1/{path}", params=query, json={} if body is None else body)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def wait(self, path: str, until: Any, seconds: float = 30, **query: Any) -> Any:
        """What a GET answers once it is as it should be."""

        def fitting() -> Any:
            reply = self.client.get(f"api/v1/{path}", params=query)
            found = reply.json()
            return found if reply.status_code == 200 and until(found) else None

        return wait_for(f"{path} as it should be", fitting, timeout_s=seconds)

    @contextmanager
    def events(self, tab: str) -> Iterator[Iterator[tuple[str, Any]]]:
        """The events of a tab, as they come."""
        with self.client.stream("GET", "api/v1/events", params={"tab": tab}) as reply:
            assert reply.status_code == 200
            yield parsed(reply.iter_lines())


def parsed(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def cluster_address(settings: dict[str, Any], name: str = "local") -> ClusterAddress:
    return ClusterAddress(name, settings, settings, settings)


@contextmanager
def running(settings: ConsoleSettings, *, ready_path: str = "overview") -> Iterator[RunningConsole]:
    """Serves in a thread until the block is left; what fails there fails here."""
    began = threading.Event()
    found: dict[str, Any] = {}

    async def main() -> None:
        found["loop"], found["stop"] = asyncio.get_running_loop(), asyncio.Event()

        def ready(address: str) -> None:
            found["address"] = address
            began.set()

        await serve(settings, listen(settings), found["stop"], ready)

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as failure:
            found["failure"] = failure
        finally:
            began.set()

    thread = threading.Thread(target=run, name="console")
    thread.start()
    assert began.wait(within(30))
    try:
        if "failure" not in found:
            with httpx.Client(base_url=found["address"], timeout=within(30)) as client:
                console = RunningConsole(found["address"], client)
                console.wait(ready_path, lambda told: ready_path != "session" or told["clusters"][0]["state"] == "ok")
                yield console
    finally:
        if "failure" not in found:
            found["loop"].call_soon_threadsafe(found["stop"].set)
        thread.join(within(30))
        if "failure" in found:
            raise found["failure"]
    assert not thread.is_alive(), "the console stops when it is told to"


def settings_for(broker_settings: dict[str, Any], **more: Any) -> ConsoleSettings:
    return ConsoleSettings((cluster_address(broker_settings),), port=0, **{"every_ms": 100, "history": False, **more})
