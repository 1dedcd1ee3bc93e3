"""What every route has at hand: the cluster that is meant, who asks, and what they see of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import Request

from penstock.client.admin import TopicInfo
from penstock.client.errors import AuthenticationFailed, NotTrusted
from penstock.console.auditing import AuditTrail
from penstock.console.commands import command
from penstock.console.failures import Declined, bad_request
from penstock.console.lakeside import Lakeside
from penstock.console.messages.repeats import Repeats
from penstock.console.messages.searchers import Searchers
from penstock.console.messages.thread import ReadingThread
from penstock.console.messages.turns import FOLLOWING_MAX, FOLLOWING_OF_ONE_MAX, ReadingTurns
from penstock.console.people.acting import Acting
from penstock.console.people.door import Door
from penstock.console.people.logins import Logins
from penstock.console.people.sessions import LoggedIn, Sessions
from penstock.console.people.undoing import MovedGroups
from penstock.console.people.vision import ALL, ANYBODY, NOTHING, Vision
from penstock.console.sampler.changes import Occurrence
from penstock.console.sampler.sampler import Sampler
from penstock.console.settings import ConsoleSettings
from penstock.console.views.seeing import Seeing, outage_words
from penstock.model.errors import PenstockError

T = TypeVar("T")
STEPS_S = (10, 60, 600)
CLOSE_WITHIN_S = 3.0


@dataclass(frozen=True, slots=True)
class Desk:
    """One request's place at one cluster."""

    sampler: Sampler
    acting: Acting
    vision: Vision
    person: str
    shared: Desks
    key: str = ANYBODY
    """The session that asks: what one began another cannot end."""
    address: str = ""
    """Where the request came from."""

    @property
    def known(self) -> bool:
        """Whether this is one person, and not anybody."""
        return self.shared.settings.login != "none"

    def seeing(self) -> Seeing:
        """What this person sees now of what the sampler saw last."""
        self.sampler.asked()
        picture = self.sampler.picture
        if picture is None:
            outage = self.sampler.outage
            if outage is not None:
                words, attempt = (
                    outage_words(outage, told_all=self.vision == ALL),
                    "the console tries again every second",
                )
                raise Declined(503, outage.code, words["message"], attempt, since_ms=outage.since_ms)
            raise Declined(503, "starting", "the cluster is being looked at for the first time", retry_after_s=1)
        return Seeing(picture, self.sampler.past, self.sampler.ends_seen, self.vision, now_ms(), self.sampler.outage)

    def topic(self, seeing: Seeing, name: str) -> TopicInfo:
        """A topic of the picture that this person may see; one they may not does not exist to them."""
        topic = seeing.picture.topics.get(name)
        if topic is None or not self.vision.topic(name):
            raise unknown_topic(name)
        return topic

    def check_broker(self, node: int) -> None:
        """One that is nowhere would be waited for until it is clear that it does not come."""
        if all(broker.id != node for broker in self.seeing().picture.cluster.brokers):
            raise unknown_broker(node)

    def cluster_seeing(self) -> Seeing:
        """The same for those who may see brokers and where everything lies."""
        if not self.vision.cluster:
            raise Declined(403, "forbidden", f"{self.person} may not describe the cluster", "an ACL can allow DESCRIBE")
        return self.seeing()

    async def reads(self, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Reads records on the thread for it, when it is this person's turn."""
        async with self.shared.turns.taken(self.person):
            return await self.shared.reading.do(begin())

    @asynccontextmanager
    async def changing(
        self, kind: str, text: str, *parts: str, topic: str = "", group: str = "", **params: Any
    ) -> AsyncIterator[None]:
        """Around a change: it is written down before and after, and the sampler looks at `parts` anew."""
        if self.shared.settings.read_only:
            raise Declined(403, "read_only", "this console changes nothing", "it was started with --read-only")
        names = {"topic": topic, "group": group}
        params = {**{name: value for name, value in names.items() if value}, **params}
        await self.write(kind, "asked", **params)
        try:
            yield
        except PenstockError as failure:
            await self.write(kind, "failed", **params, why=str(failure))
            raise
        # It has been done: that is told to whoever may see all that it concerns, even if it cannot be written down.
        topics = {position["topic"] for position in params.get("positions", ())} | ({topic} if topic else set())
        told = {"by": self.person, "action": kind, **params}
        text = f"{self.person}: {text}"
        self.sampler.tell(Occurrence("changed", "info", text, told, tuple(sorted(topics)), group or None))
        self.sampler.soon(*parts)
        try:
            await self.write(kind, "done", **params)
        except Declined as unwritten:
            message = f"this was done, and that it was could not be written down: {unwritten.message}"
            raise Declined(503, unwritten.code, message, "do not do it again") from None

    async def write(self, action: str, outcome: str, **params: Any) -> None:
        """Into the audit."""
        cluster = self.sampler.address.name
        await self.shared.trail.write(action, outcome, self.person, self.address, cluster=cluster, **params)


class Desks:
    """All clusters with their samplers, and who may sit down at them."""

    def __init__(
        self,
        settings: ConsoleSettings,
        samplers: Mapping[str, Sampler],
        reading: ReadingThread,
        trail: AuditTrail,
        left: Callable[[LoggedIn], None],
    ) -> None:
        self.settings, self.samplers, self.reading, self.trail = settings, samplers, reading, trail
        self.moved = MovedGroups()
        self.searchers, self.repeats = Searchers(), Repeats()
        self.turns, self.waits = ReadingTurns(), ReadingTurns(FOLLOWING_OF_ONE_MAX, FOLLOWING_MAX)
        self.lakeside = Lakeside(settings, reading)
        self._own = {name: Acting(sampler.address) for name, sampler in samplers.items()}
        self.door = Door(settings, Sessions(left, self._own), Logins(self._own, reading), trail)

    async def at(self, request: Request) -> Desk:
        wanted, address = request.query_params.get("cluster"), self.door.address_of(request)
        if self.door.open:
            name = wanted or next(iter(self.samplers))
            return Desk(_among(self.samplers, name), self._own[name], ALL, ANYBODY, self, address=address)
        session = await self.person(request)
        name = wanted or next(name for name in self.samplers if name in session.acting)
        sampler = _among(self.samplers, name)
        if name in session.away and name not in session.acting:
            raise Declined(
                503, "unreachable", f"cluster {name!r} could not be asked when you logged in", "log in again"
            )
        if name not in session.acting:
            raise Declined(403, "forbidden", f"this login is none of cluster {name!r}", "log in to that cluster")
        try:
            vision = await session.eyes[name].look()
        except NotTrusted:
            raise
        except AuthenticationFailed:
            # Its token was taken away: then it is no login any more.
            await self.door.sessions.end(session)
            raise
        return Desk(sampler, session.acting[name], vision, session.principal, self, session.key, address)

    async def person(self, request: Request) -> LoggedIn:
        """Whose session it is, whatever it asks for; Declined for nobody's."""
        session = await self.door.who(request)
        if session is None:
            raise Declined(401, "not_logged_in", "you are not logged in, or no longer", "log in")
        return session

    async def owner_of(self, request: Request) -> tuple[str, str]:
        """Who opens a stream, which is of no one cluster: the session, and the person where people log in."""
        if self.door.open:
            return ANYBODY, ""
        session = await self.person(request)
        return session.key, session.principal

    def own(self, cluster: str) -> Acting:
        """The console's own clients at a cluster. What they are told is not for everybody."""
        return self._own[cluster]

    async def vision_of(self, key: str, cluster: str) -> Vision:
        """What a session sees now; nothing when it has ended or nobody can be asked."""
        if self.door.open:
            return ALL
        session = self.door.sessions.by_key(key)
        if session is None or cluster not in session.eyes:
            return NOTHING
        try:
            return await session.eyes[cluster].look()
        except PenstockError:
            return NOTHING

    def belongs(self, key: str, cluster: str) -> bool:
        """Whether a session is in a cluster at all."""
        session = None if self.door.open else self.door.sessions.by_key(key)
        return self.door.open or (session is not None and cluster in session.acting)

    async def close(self) -> None:
        """All at once, within a few seconds: brokers may be gone before the console."""
        await self.searchers.close()
        await self.door.close()
        await self.lakeside.close()
        work = [asyncio.ensure_future(acting.close()) for acting in self._own.values()]
        _, late = await asyncio.wait(work, timeout=CLOSE_WITHIN_S)
        for each in late:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)


def _among(samplers: Mapping[str, Sampler], name: str) -> Sampler:
    sampler = samplers.get(name)
    if sampler is None:
        raise bad_request(f"cluster: there is none called {name!r}", "api/v1/session has those that there are")
    return sampler


async def desk_of(request: Request) -> Desk:
    desks: Desks = request.app.state.desks
    return await desks.at(request)


def step_of(request: Request) -> int:
    text = request.query_params.get("step", "10")
    if text not in map(str, STEPS_S):
        raise bad_request(f"step: {text!r} is none of {', '.join(map(str, STEPS_S))} seconds")
    return int(text)


def unknown_topic(name: str) -> Declined:
    same = command("topic", "create", names=[name])
    message, attempt = f"topic {name!r} does not exist", "look at `penstock topic list`"
    return Declined(404, "unknown_topic", message, attempt, topic=name, command=same)


def unknown_broker(node: int) -> Declined:
    return Declined(404, "not_found", f"the cluster knows no broker {node}", "look at `penstock cluster brokers`")


def now_ms() -> int:
    return time.time_ns() // 1_000_000
