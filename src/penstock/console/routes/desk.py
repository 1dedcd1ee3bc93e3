"""What every route has at hand: the cluster that is meant, who asks, and what they see of it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from penstock.client.admin import TopicInfo
from penstock.console.auditing import ChangeLog
from penstock.console.failures import Declined, bad_request
from penstock.console.lakeside import Lakeside
from penstock.console.messages.thread import ReadingThread
from penstock.console.people.acting import Acting
from penstock.console.people.door import Door
from penstock.console.people.sessions import LoggedIn, Sessions
from penstock.console.people.undoing import MovedGroups
from penstock.console.people.vision import ALL, NOTHING, Vision
from penstock.console.sampler.sampler import Sampler
from penstock.console.settings import ConsoleSettings
from penstock.console.views.seeing import Seeing
from penstock.model.errors import PenstockError

STEPS_S = (10, 60, 600)
ANYBODY = "anybody"
"""Who asks where nobody logs in."""


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

    def seeing(self) -> Seeing:
        """What this person sees now of what the sampler saw last."""
        self.sampler.asked()
        picture = self.sampler.picture
        if picture is None:
            outage = self.sampler.outage
            if outage is not None:
                raise Declined(503, outage.code, outage.message, "the console tries again every second")
            raise Declined(503, "starting", "the cluster is being looked at for the first time", retry_after_s=1)
        return Seeing(picture, self.sampler.past, self.sampler.ends_seen, self.vision, now_ms(), self.sampler.outage)

    def topic(self, seeing: Seeing, name: str) -> TopicInfo:
        """A topic of the picture that this person may see; one they may not does not exist to them."""
        topic = seeing.picture.topics.get(name)
        if topic is None or not self.vision.topic(name):
            raise unknown_topic(name)
        return topic

    def cluster_seeing(self) -> Seeing:
        """The same for those who may see brokers and where everything lies."""
        if not self.vision.cluster:
            raise Declined(403, "forbidden", f"{self.person} may not describe the cluster", "an ACL can allow DESCRIBE")
        return self.seeing()

    @asynccontextmanager
    async def changing(
        self, kind: str, text: str, *parts: str, topic: str = "", group: str = "", **params: Any
    ) -> AsyncIterator[None]:
        """Around a change: it is written down before and after, and the sampler looks at `parts` anew."""
        if self.shared.settings.read_only:
            raise Declined(403, "read_only", "this console changes nothing", "it was started with --read-only")
        log, names = self.shared.changes, {"topic": topic, "group": group}
        about = {name: value for name, value in names.items() if value}
        params = {**about, **params}
        log.asked(self.sampler, self.person, kind, params)
        try:
            yield
        except PenstockError as failure:
            log.failed(self.sampler, self.person, kind, params, str(failure))
            raise
        log.done(self.sampler, self.person, kind, text, params)
        self.sampler.soon(*parts)


class Desks:
    """All clusters with their samplers, and who may sit down at them."""

    def __init__(
        self,
        settings: ConsoleSettings,
        samplers: Mapping[str, Sampler],
        reading: ReadingThread,
        changes: ChangeLog,
        left: Callable[[LoggedIn], None],
    ) -> None:
        self.settings, self.samplers, self.reading, self.changes = settings, samplers, reading, changes
        self.moved = MovedGroups()
        self.lakeside = Lakeside(settings, reading)
        self._own = {name: Acting(sampler.address) for name, sampler in samplers.items()}
        self.door = Door(settings, Sessions(left, self._own), self._own, reading)

    async def at(self, request: Request) -> Desk:
        name = request.query_params.get("cluster") or self.settings.clusters[0].name
        sampler = self.samplers.get(name)
        if sampler is None:
            raise bad_request(f"cluster: there is none called {name!r}; there are {', '.join(self.samplers)}")
        if self.door.open:
            return Desk(sampler, self._own[name], ALL, ANYBODY, self)
        session = await self.door.who(request)
        if session is None:
            raise Declined(401, "not_logged_in", "you are not logged in, or no longer", "log in")
        if name not in session.acting:
            raise Declined(403, "forbidden", f"this login is none of cluster {name!r}", "log in to that cluster")
        vision = await session.eyes[name].look()
        return Desk(sampler, session.acting[name], vision, session.principal, self, session.key)

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

    async def close(self) -> None:
        await self.door.sessions.close()
        await self.lakeside.close()
        for acting in self._own.values():
            await acting.close()


async def desk_of(request: Request) -> Desk:
    desks: Desks = request.app.state.desks
    return await desks.at(request)


def step_of(request: Request) -> int:
    text = request.query_params.get("step", "10")
    if text not in map(str, STEPS_S):
        raise bad_request(f"step: {text!r} is none of {', '.join(map(str, STEPS_S))} seconds")
    return int(text)


def unknown_topic(name: str) -> Declined:
    return Declined(404, "unknown_topic", f"topic {name!r} does not exist", "look at `penstock topic list`", topic=name)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
