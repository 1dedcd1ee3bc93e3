"""What an endpoint says of itself beside its name and its first sentence.

It is declared where the endpoint stands, held to before the endpoint is called, and told in the description of the API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from penstock.console.failures import Declined, bad_request

Endpoint = Callable[[Request], Awaitable[Response]]
E = TypeVar("E", bound=Endpoint)


@dataclass(frozen=True, slots=True)
class Declaration:
    """`previews`: it knows `dry_run`, and changes nothing then. `own_errors`: its errors have a form of others."""

    previews: bool = False
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct] | None = None
    body_types: tuple[str, ...] = ("application/json",)
    answers: str = "application/json"
    headers: tuple[str, ...] = ()
    own_errors: bool = False


_DECLARED: Final[dict[Endpoint, Declaration]] = {}


def declared(
    *,
    previews: bool = False,
    query: type[msgspec.Struct] | None = None,
    body: type[msgspec.Struct] | None = None,
    body_types: tuple[str, ...] = ("application/json",),
    answers: str = "application/json",
    headers: tuple[str, ...] = (),
    own_errors: bool = False,
) -> Callable[[E], E]:
    def keep(endpoint: E) -> E:
        _DECLARED[endpoint] = Declaration(previews, query, body, body_types, answers, headers, own_errors)
        return endpoint

    return keep


def declaration_of(endpoint: Endpoint) -> Declaration:
    return _DECLARED.get(endpoint, Declaration())


async def check_shape(request: Request, endpoint: Endpoint) -> None:
    """A name that is none is most often one that was misspelt, and what it was to hinder would happen."""
    shape = declaration_of(endpoint).body
    if shape is None:
        return
    try:
        msgspec.json.decode(await request.body() or b"{}", type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise bad_request(f"the body is not as it should be: {wrong}", "see api/v1/openapi.json") from None


async def refuse_unplanned(request: Request, endpoint: Endpoint) -> None:
    """A preview of what cannot be previewed must not be carried out: whoever only wanted to look would have acted."""
    if "dry_run" in request.query_params:
        raise bad_request('dry_run stands in the body, as in {"dry_run": true}')
    given = _dry_run(await request.body())
    if given is None or given is False:
        return
    if given is not True:
        raise bad_request("dry_run: true or false was expected")
    if not declaration_of(endpoint).previews:
        raise Declined(400, "no_preview", "this cannot be looked at beforehand", "ask without dry_run to do it")


def _dry_run(body: bytes) -> Any:
    # Names may be written with escapes; what has neither is not read twice.
    if b"dry_run" not in body and b"\\u" not in body:
        return None
    try:
        whole = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        return msgspec.json.decode(whole["dry_run"]) if "dry_run" in whole else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # no object: the endpoint says what it is instead
