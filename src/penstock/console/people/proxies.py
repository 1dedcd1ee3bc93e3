"""Who a reverse proxy says it is: a header, from an address that may set it, for users that are no super users.

The console makes a token for that user with its own login (KIP-373), so it needs CREATE_TOKENS on those users and
nothing more. Super users stand in files of nodes and not among ACLs; a header must never make one. Whoever may change a
topic that no ACL can name, because nobody knew its name before, is one.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any, Final

from starlette.requests import Request

from penstock.client.admin import Admin, ConfigResource
from penstock.client.errors import NotAllowed, NotReachable, TimedOutWaiting
from penstock.console.failures import Declined
from penstock.console.people.acting import PATIENCE, with_login
from penstock.console.settings import ClusterAddress, ConsoleSettings

NAME_MAX: Final = 256
HOPS_MAX: Final = 20


def named_by(request: Request, header: str, networks: Sequence[str]) -> str:
    """The user that a proxy names. Declined unless the proxy is one of those that may, and names exactly one."""
    if not is_believed(request, networks):
        raise Declined(401, "not_logged_in", "this console is reached through a proxy that says who you are")
    # A proxy that adds its header to one that came from outside would let whoever is outside say who they are.
    told = request.headers.getlist(header)
    name = told[0].strip() if len(told) == 1 else ""
    if not name or len(name) > NAME_MAX or not name.isprintable() or "," in name:
        raise Declined(
            401, "not_logged_in", "the proxy did not say who you are", "it sets one header, with a user's name"
        )
    return name


def is_believed(request: Request, networks: Sequence[str]) -> bool:
    """Whether the other end of this connection is a proxy of ours."""
    return request.client is not None and _within(request.client.host, networks)


def came_from(request: Request, settings: ConsoleSettings) -> str:
    """The address that a request came from: behind a proxy of ours the last one that is not such a proxy."""
    peer = request.client.host if request.client else ""
    behind = settings.behind_tls or settings.login == "proxy"
    if not behind or not is_believed(request, settings.proxy_from):
        return peer
    told = [each.strip() for line in request.headers.getlist("x-forwarded-for") for each in line.split(",")]
    for address in reversed(told[-HOPS_MAX:]):
        if not _is_address(address):
            return peer
        if not _within(address, settings.proxy_from):
            return address
    return peer


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _within(peer: str, networks: Sequence[str]) -> bool:
    return _is_address(peer) and any(ip_address(peer) in ip_network(network, strict=False) for network in networks)


async def refuse_super_user(address: ClusterAddress, principal: str, login: Mapping[str, Any]) -> None:
    """Declined for somebody who may do what no ACL can allow: `*` and prefixes do not open topics of Penstock's own.

    Nothing is changed: the change is only asked about, and of a topic that does not exist. Apache Kafka's `*` opens all
    topics, so there whoever may configure every topic is declined too.
    """
    nobodys = ConfigResource.topic(f"__penstock_{secrets.token_hex(12)}")
    async with Admin(**{**PATIENCE, **with_login(address.admin, login)}) as admin:
        told = await admin.alter_configs({nobodys: {"retention.ms": "86400000"}}, validate_only=True)
    failure = told.failed.get(nobodys)
    if isinstance(failure, NotAllowed):
        return
    if isinstance(failure, (NotReachable, TimedOutWaiting)):
        raise failure
    raise Declined(
        403,
        "forbidden",
        f"{principal} is a super user, or the cluster has no ACLs: a proxy's header does not make such a person",
        "log in to the console itself",
    )
