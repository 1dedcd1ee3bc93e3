"""What every route has at hand: the cluster that is meant, who asks, and what they see of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request

from penstock.client.admin import TopicInfo
from penstock.console.failures import Declined, bad_request
from penstock.console.people.acting import Acting
from penstock.console.people.vision import ALL, Vision
from penstock.console.sampler.sampler import Sampler
from penstock.console.settings import ConsoleSettings
from penstock.console.views.seeing import Seeing

STEPS_S = (10, 60, 600)


@dataclass(frozen=True, slots=True)
class Desk:
    """One request's place at one cluster."""

    sampler: Sampler
    acting: Acting
    vision: Vision

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


class Desks:
    """All clusters with their samplers, and the clients that act at them."""

    def __init__(self, settings: ConsoleSettings, samplers: Mapping[str, Sampler]) -> None:
        self.settings, self.samplers = settings, samplers
        self._anyone = {name: Acting(sampler.address) for name, sampler in samplers.items()}

    def at(self, request: Request) -> Desk:
        name = request.query_params.get("cluster") or self.settings.clusters[0].name
        sampler = self.samplers.get(name)
        if sampler is None:
            raise bad_request(f"cluster: there is none called {name!r}; there are {', '.join(self.samplers)}")
        return Desk(sampler, self._anyone[name], ALL)

    async def close(self) -> None:
        for acting in self._anyone.values():
            await acting.close()


def desk_of(request: Request) -> Desk:
    desks: Desks = request.app.state.desks
    return desks.at(request)


def step_of(request: Request) -> int:
    text = request.query_params.get("step", "10")
    if text not in map(str, STEPS_S):
        raise bad_request(f"step: {text!r} is none of {', '.join(map(str, STEPS_S))} seconds")
    return int(text)


def unknown_topic(name: str) -> Declined:
    return Declined(404, "unknown_topic", f"topic {name!r} does not exist", "look at `penstock topic list`", topic=name)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
