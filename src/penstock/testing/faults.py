"""Faults on order: the next requests of an API are refused, cut off, or served without a reply."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from penstock.model.closest import did_you_mean
from penstock.model.errors import ErrorCode, error_named
from penstock.protocol.registry import APIS, Api
from penstock.server.doors import Disconnect
from penstock.testing.refusals import refusal_of

if TYPE_CHECKING:
    from penstock.server.doors import Context, Handler

_WHY = "a test ordered it"


@dataclass(slots=True)
class _Order:
    """`code` None cuts the connection; `served` lets the request take effect first."""

    code: int | None
    served: bool
    left: int


class Faults:
    """What is to go wrong with whom. Ordered by tests in any thread, taken by the broker's loop."""

    def __init__(self) -> None:
        self._orders: dict[str, deque[_Order]] = {}
        self._lock = threading.Lock()

    def order(self, api: str, code: int | None, times: int, *, served: bool) -> None:
        with self._lock:
            self._orders.setdefault(api, deque()).append(_Order(code, served, times))

    def left(self, api: str) -> int:
        with self._lock:
            return sum(each.left for each in self._orders.get(api, ()))

    def clear(self) -> None:
        with self._lock:
            self._orders.clear()

    def _take(self, api: str) -> _Order | None:
        with self._lock:
            orders = self._orders.get(api)
            if not orders:
                return None
            order = orders[0]
            order.left -= 1
            if not order.left:
                orders.popleft()
            return order

    def around(self, api: Api) -> Callable[[Handler], Handler]:
        """Wraps an API's handler, so that orders for it are carried out."""

        def wrap(handler: Handler) -> Handler:
            def handle(ctx: Context, request: Any) -> Any:
                order = self._take(api.name)
                if order is None:
                    return handler(ctx, request)
                if order.served:
                    outcome = handler(ctx, request)
                    if isawaitable(outcome):
                        return _served_then_cut(outcome)
                if order.code is None:
                    raise Disconnect(_WHY)
                return refusal_of(api, request, ctx.api_version, order.code)

            return handle

        return wrap


async def _served_then_cut(outcome: Awaitable[Any]) -> Any:
    await outcome
    raise Disconnect(_WHY)


def api_named(name: str) -> Api:
    """The API of that name (`Produce`, `JoinGroup`, …); ValueError names the nearest."""
    for api in APIS.values():
        if api.name.lower() == name.lower():
            return api
    raise ValueError(f"there is no API {name!r}{did_you_mean(name, [api.name for api in APIS.values()], least=0.6)}")


def code_of(code: int | str | ErrorCode) -> int:
    """A protocol error by number, name or itself."""
    if isinstance(code, ErrorCode):
        return code.code
    if isinstance(code, int):
        return code
    found = error_named(code)
    if found is None:
        raise ValueError(f"there is no error {code!r}; see penstock.model.errors")
    return found.code
