"""What requests look like. Bodies are held against these before an endpoint is called; unknown names are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Number = Annotated[int, Meta(ge=0, le=2147483647)]
Cuts = dict[str, Annotated[str | int, Meta(description="An offset, or end for all that there is now.")]]
Isolation = Literal["read_uncommitted", "read_committed"]
Step = Literal["10", "60", "600"]


class Body(Struct, forbid_unknown_fields=True):
    """An object."""


class Preview(Body):
    dry_run: Annotated[bool, Meta(description="Tell what would be done, and change nothing.")] = False


class Redriven(Preview, kw_only=True):
    source: Annotated[str, Meta(description="Whose dead letters they are.")]


class Question(Body):
    query: Annotated[str, Meta(description="One SELECT, in DuckDB's SQL.")]


class Listed(Struct):
    """The part of a list."""

    q: Annotated[str, Meta(description="Only names with this in them.")] = ""
    sort: str = ""
    desc: Literal["0", "1"] = "0"
    offset: Number = 0
    limit: Number = 100


class TopicsListed(Listed):
    internal: Literal["0", "1"] = "0"
    only: Literal["", "under_replicated", "leaderless", "empty"] = ""


class GroupsListed(Listed):
    state: str = ""


class Followed(Struct):
    topic: str
    partition: Number
    offset: Annotated[int, Meta(ge=0)]
    letters: Annotated[str, Meta(description="Where to look for it as a dead letter.")] = ""


class Stepped(Struct):
    step: Annotated[Step, Meta(description="Seconds between the points of its history.")] = "10"


class Explained(Struct):
    seconds: Annotated[int, Meta(ge=0, le=30, description="How long it is looked at.")] = 3


class Logged(Struct):
    before: Annotated[int, Meta(ge=0, le=1 << 53)] = 1 << 53
    limit: Number = 200


class Mapped(Struct):
    topic: str | None = None


class Transactions(Struct):
    state: Annotated[str, Meta(description="Names of states, separated by commas.")] = ""


class Permission(Struct):
    principal: str = ""
    operation: str = ""
    resource: str = ""
    name: str = ""
    host: str = "127.0.0.1"


class Tab(Struct):
    tab: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{16,64}$", description="A name that the tab has given itself.")]


class Login(Body):
    user: str
    password: str


class NewTopic(Preview, kw_only=True):
    name: str
    partitions: Annotated[int, Meta(ge=1)] | None = None
    replication: Annotated[int, Meta(ge=1)] | None = None
    configs: dict[str, str | int] | None = None


class Confirmed(Preview):
    confirm: Annotated[str | None, Meta(description="The name once more: this cannot be undone.")] = None


class Configured(Preview):
    set: dict[str, str | int] | None = None
    unset: list[str] | None = None


class Grown(Preview, kw_only=True):
    partitions: Annotated[int, Meta(ge=1)]


class Trimmed(Confirmed):
    before: Cuts | None = None


class Moved(Preview):
    """One of `to`, `from_group`, `offsets` and `plan`."""

    to: Annotated[str | None, Meta(description="earliest, latest, offset:42, time:-15m, +5 or -5")] = None
    from_group: str | None = None
    offsets: dict[str, dict[str, str | int]] | None = None
    plan: Annotated[list[dict[str, Any]] | None, Meta(description="The positions of a preview.")] = None
    topics: Annotated[dict[str, list[int]] | None, Meta(description="Partitions of topics; none: all.")] = None


class TakenBack(Preview):
    id: str | None = None


class Forgotten(Preview):
    topics: dict[str, list[int]] | None = None


class Hanging(Preview, kw_only=True):
    topic: str
    partition: Number
    start_offset: str | int


class Rule(Preview):
    principal: str = ""
    operation: str = ""
    resource: str = ""
    name: str = ""
    pattern: str = "literal"
    host: str = "*"
    permission: str = "allow"


class Page(Struct, rename={"from_": "from"}, forbid_unknown_fields=True):
    """Where to read records."""

    from_: Annotated[str, Meta(description="newest, oldest, offset:42, time:-15m or group:NAME")] = "newest"
    cursor: Annotated[str | None, Meta(description="`next` or `previous` of another page.")] = None
    back: Annotated[Literal["0", "1"], Meta(description="1: the page before the cursor.")] = "0"
    limit: Number = 50
    partition: Annotated[str, Meta(description="0,3; all if not given.")] = ""
    isolation: Isolation = "read_uncommitted"
    wait: Annotated[int, Meta(ge=0, le=30, description="Seconds to wait for a record where there is none.")] = 0


class Raw(Struct):
    raw: Annotated[Literal["key", "value"] | None, Meta(description="The bytes of it, as a file.")] = None


class Subscription(Body, rename={"from_": "from"}):
    kind: Literal["tail", "search"]
    topic: str
    where: str | None = None
    contains: str | None = None
    partitions: list[Number] | None = None
    isolation: Isolation | None = None
    cursor: str | None = None
    from_: str | None = None
    to: str | None = None
    limits: dict[str, float] | None = None


class Condition(Body):
    where: str
    record: dict[str, Any] | None = None
