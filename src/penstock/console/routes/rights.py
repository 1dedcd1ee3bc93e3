"""What each route needs: the rights of Kafka that a person must have for it, in the words of ACLs.

Brokers decide, and nothing here does: this is what they decide, written down so that it can be read and held to. A test
goes through the table of routes and tries each as somebody with exactly these rights, and without each of them; a
route that is not here fails it. `views` says that records are shown: that somebody looked goes to the audit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

Refuses = Literal["whole", "parts", "nothing", "by what feeds it"]


class Right(NamedTuple):
    """Such as READ on the topic that a request is about."""

    operation: str
    resource: str

    def __str__(self) -> str:
        return f"{self.operation.upper()} on the {self.resource}"


@dataclass(frozen=True, slots=True)
class Needs:
    """All of `rights`. Without one of them the `whole` is refused, or those `parts` are left out that need it.

    Of pipelines and tables the rights are those on every topic that feeds one, and on the groups of one.
    """

    rights: tuple[Right, ...] = ()
    refuses: Refuses = "whole"
    views: bool = False
    login: bool = True


def _all_of(*rights: str, views: bool = False) -> Needs:
    return Needs(tuple(map(_right, rights)), views=views)


def _parts(*rights: str) -> Needs:
    return Needs(tuple(map(_right, rights)), "parts")


def _right(text: str) -> Right:
    operation, _, resource = text.partition(" ")
    return Right(operation, resource)


def _fed(*rights: str, views: bool = False) -> Needs:
    return Needs(tuple(map(_right, rights)), "by what feeds it", views)


ANYBODY: Final = Needs(refuses="nothing", login=False)
"""Also who has not logged in: it is the way to log in."""
OWN: Final = Needs(refuses="nothing")
"""Whoever has logged in, of what is theirs."""

RIGHTS: Final[dict[tuple[str, str], Needs]] = {
    ("GET", "/"): ANYBODY,
    ("GET", "/openapi.json"): ANYBODY,
    ("GET", "/session"): ANYBODY,
    ("POST", "/login"): ANYBODY,
    ("POST", "/logout"): ANYBODY,
    ("GET", "/login/oidc"): ANYBODY,
    ("GET", "/login/oidc/back"): ANYBODY,
    ("GET", "/overview"): _parts("describe topic", "describe group", "describe cluster"),
    ("GET", "/map"): _all_of("describe cluster"),
    ("GET", "/brokers"): _all_of("describe cluster"),
    ("GET", "/brokers/{id}"): _all_of("describe cluster"),
    ("GET", "/brokers/{id}/config"): _all_of("describe_configs cluster"),
    ("PATCH", "/brokers/{id}/config"): _all_of("alter_configs cluster"),
    ("GET", "/log"): _parts("describe topic", "describe group", "describe cluster"),
    ("GET", "/topics"): _parts("describe topic"),
    ("POST", "/topics"): _all_of("create topic"),
    ("GET", "/topics/{name}"): _all_of("describe topic"),
    ("DELETE", "/topics/{name}"): _all_of("delete topic"),
    ("GET", "/topics/{name}/partitions"): _all_of("describe topic"),
    ("GET", "/topics/{name}/consumers"): _all_of("describe topic"),
    ("GET", "/topics/{name}/config"): _all_of("describe_configs topic"),
    ("PATCH", "/topics/{name}/config"): _all_of("alter_configs topic"),
    ("GET", "/topics/{name}/access"): _all_of("describe cluster"),
    ("GET", "/topics/{name}/producers"): _all_of("read topic"),
    ("POST", "/topics/{name}/grow"): _all_of("alter topic"),
    ("POST", "/topics/{name}/trim"): _all_of("delete topic"),
    ("POST", "/topics/{name}/elect"): _all_of("describe topic", "alter cluster"),
    ("GET", "/topics/{name}/records"): _all_of("read topic", views=True),
    ("POST", "/topics/{name}/records"): _all_of("write topic"),
    ("GET", "/topics/{name}/records/{partition}/{offset}"): _all_of("read topic", views=True),
    ("POST", "/topics/{name}/read"): _all_of("read topic", views=True),
    ("POST", "/topics/{name}/records/{partition}/{offset}/send"): _all_of("read topic", "write topic"),
    ("GET", "/v3/clusters"): OWN,
    ("POST", "/v3/clusters/{cluster_id}/topics/{name}/records"): _all_of("write topic"),
    ("GET", "/groups"): _parts("describe group"),
    ("POST", "/groups/{name:path}/reset"): _all_of("read group", "read topic"),
    ("POST", "/groups/{name:path}/undo"): _all_of("read group", "read topic"),
    ("DELETE", "/groups/{name:path}/offsets"): _all_of("delete group", "read topic"),
    ("GET", "/groups/{name:path}/explain"): _all_of("describe group"),
    ("GET", "/groups/{name:path}"): _all_of("describe group"),
    ("DELETE", "/groups/{name:path}"): _all_of("delete group"),
    ("GET", "/pipelines"): _fed("describe topic"),
    ("GET", "/pipelines/{name:path}"): _fed("describe topic"),
    ("POST", "/pipelines/{name:path}/stop"): _fed("describe topic", "alter group"),
    ("POST", "/pipelines/{name:path}/start"): _fed("describe topic", "alter group"),
    ("POST", "/pipelines/{name:path}/redrive"): _fed("describe topic", "alter group"),
    ("GET", "/agents"): _all_of("describe cluster"),
    ("GET", "/follow"): _all_of("read topic", views=True),
    ("GET", "/tables"): _fed("read topic"),
    ("GET", "/tables/{name:path}"): _fed("read topic"),
    ("POST", "/tables/{name:path}/audit"): _fed("read topic"),
    ("POST", "/sql"): _fed("read topic", views=True),
    ("GET", "/transactions"): _parts("describe transactional_id"),
    ("POST", "/transactions/abort"): _all_of("read topic", "alter cluster"),
    ("GET", "/transactions/{id:path}"): _all_of("describe transactional_id"),
    ("GET", "/access"): _parts("describe cluster", "describe_configs cluster"),
    ("GET", "/access/explain"): _all_of("describe cluster"),
    ("POST", "/access/acls"): _all_of("alter cluster"),
    ("DELETE", "/access/acls"): _all_of("alter cluster"),
    ("GET", "/events"): OWN,
    ("POST", "/tabs/{tab}/subscriptions"): _all_of("read topic", views=True),
    ("DELETE", "/tabs/{tab}/subscriptions/{id}"): OWN,
    ("POST", "/conditions/check"): _all_of("read topic", views=True),
}
