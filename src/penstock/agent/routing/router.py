"""From what the transforms left of a portion to parcels. Works on whole lists: constants cost nothing per event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat

import msgspec

from penstock.agent.portion import Headers, Parcel, Portion, places_in
from penstock.agent.routing.batch import Aside, Batch, Topics, told
from penstock.agent.routing.headers import HeaderWriter
from penstock.agent.routing.moments import moment_reader
from penstock.agent.routing.routing import Routing
from penstock.agent.routing.templates import Template
from penstock.agent.routing.topics import UNKNOWN, TopicNames, allowed_name
from penstock.conditions.paths import MESSAGE
from penstock.conditions.texts import as_key, to_bytes

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Sorted:
    """What became of a portion. Each of its events is in a parcel, in dead letters, or filtered."""

    parcels: list[Parcel]
    filtered: int = 0
    """Taken out on purpose: by filter or sample, or because a step that failed says so."""
    failed: int = 0
    """Could not be understood or placed: kept as they are and marked, dropped, or in dead letters."""
    dead: int = 0
    """Of those: how many are in dead letters. Their parcel is the last."""
    untimed: int = 0
    """Have a time that cannot be read; they got the time of now."""
    reasons: dict[str, int] = field(default_factory=dict)
    """By which step how many were filtered."""


class Router:
    """One input's way to topics. It remembers which topics it made."""

    def __init__(self, routing: Routing, hide: Callable[[bytes], bytes] = lambda line: line) -> None:
        """`hide` takes out of lines what must not go on; they are sent where an event failed."""
        self._routing, self._hide = routing, hide
        self.names = TopicNames()
        self._key = None if routing.key is None else routing.key.copied()
        self._headers = HeaderWriter(routing.headers)
        self._read_moment = moment_reader("auto")

    @property
    def has_dead_letters(self) -> bool:
        return self._routing.dead_letters is not None

    def passes_through(self, portion: Portion) -> bool:
        """Whether records are the events as they came, with the same headers for all."""
        routing = self._routing
        return (
            routing.topic.constant is not None
            and routing.key is None
            and routing.timestamp is None
            and routing.encode != "json"
            and (routing.encode == "raw" or portion.fields is None or portion.faithful)
            and not portion.marks
            and not portion.nulls
            and not self._headers.with_offset
        )

    def pass_through(self, portion: Portion) -> Sorted:
        shared = self._headers.shared(portion.origin)
        headers: list[Headers] | None = [shared] * len(portion.values) if shared else None
        topic = self._routing.topic.constant or ""
        return Sorted(
            [Parcel(topic, portion.values, portion.keys, headers, portion.timestamps_ms)] if portion.values else []
        )

    def sort(self, batch: Batch) -> Sorted:
        """The parcels of a batch, in the order in which their topics first appear."""
        kept = self._take_back_kept(batch) if batch.aside else {}
        self._place(batch, kept)
        values = self._values(batch, kept)
        keys = self._keys(batch)
        times_ms = self._times(batch)
        headers = self._headers.write(batch.portion, batch.rows, {row: event.why for row, event in kept.items()})
        parcels = _parcels(batch.topics or [], values, keys, headers, times_ms, _nulls(batch, kept))
        dead = self._dead_letters(batch)
        if dead is not None:
            parcels.append(dead)
        for event in batch.aside.values():
            if event.on_error == "drop":
                batch.take_note(event.step, 1)
        return Sorted(
            parcels,
            filtered=sum(batch.filtered.values()),
            failed=batch.failed,
            dead=0 if dead is None else len(dead.values),
            untimed=batch.untimed,
            reasons=batch.filtered,
        )

    def _take_back_kept(self, batch: Batch) -> dict[int, Aside]:
        """Failed events that go on as they are stand in their place again: a topic keeps its order."""
        kept = {row: self._hidden(event) for row, event in batch.aside.items() if self._is_kept(event)}
        if not kept:
            return kept
        for row in kept:
            del batch.aside[row]
        rows = sorted([*batch.rows, *kept])
        # One that failed has no fields, and nothing but the input's topic is known of it.
        place = {row: index for index, row in enumerate(batch.rows)}
        values, fields, times, topics = batch.values, batch.fields, batch.times_ms, batch.topics
        batch.values = [kept[row].value if row in kept else values[place[row]] for row in rows]
        if fields is not None:
            batch.fields = [{} if row in kept else fields[place[row]] for row in rows]
        if times is not None:
            batch.times_ms = [kept[row].time_ms if row in kept else times[place[row]] for row in rows]
        if topics is not None:
            batch.topics = [None if row in kept else topics[place[row]] for row in rows]
        batch.rows = rows
        return kept

    def _hidden(self, event: Aside) -> Aside:
        why = self._hide(to_bytes(event.why)).decode("utf-8", "backslashreplace")
        return event._replace(value=self._hide(event.value), why=why)

    def _is_kept(self, event: Aside) -> bool:
        if event.on_error in ("dead", ""):
            return not self.has_dead_letters
        return event.on_error == "keep"

    def _place(self, batch: Batch, kept: dict[int, Aside]) -> None:
        """Gives every event its topics."""
        template, routed = self._routing.topic, batch.topics
        filled = template.bind(batch.origin)
        topics: list[Topics]
        if filled is None or isinstance(filled, str):
            name = template.constant or (self.names.name(filled) if filled else "")
            topics = [(name,)] * len(batch) if routed is None else [names or (name,) for names in routed]
        else:
            # Only those that no route has placed: the others must not use up topics.
            places: Iterable[Topics] = repeat(None, len(batch)) if routed is None else routed
            each, name_of = batch.seen_fields(), self.names.name
            topics = [
                names or (name_of(text) if (text := filled(fields)) else "",)
                for names, fields in zip(places, each, strict=True)
            ]
        batch.topics = topics
        if ("",) in topics:
            self._misplaced(batch, topics, template, kept)

    def _misplaced(self, batch: Batch, topics: list[Topics], template: Template, kept: dict[int, Aside]) -> None:
        """A field that the topic needs is not there, or made a topic too many."""
        places = [place for place, names in enumerate(topics) if names == ("",)]
        # Those that failed before are counted already.
        again = sum(batch.rows[place] in kept for place in places)
        if not self.has_dead_letters:
            batch.failed += len(places) - again
            for place in places:
                topics[place] = (_unknown(template),)
            return
        filled = template.bind(batch.origin)
        fields = batch.seen_fields()
        why = {}
        for place in places:
            text = filled(fields[place]) if callable(filled) else filled
            why[place] = f"topic {template.text}: " + (self.names.why(text) if text else "a field of it is not there")
        batch.set_aside(why, "dead")
        batch.failed -= again

    def _values(self, batch: Batch, kept: dict[int, Aside]) -> list[bytes]:
        encode = self._routing.encode
        if encode == "raw" or (encode == "auto" and batch.fields is None):
            return batch.values
        if batch.fields is None:
            return [_encode({MESSAGE: text}) for text in batch.column(MESSAGE)]
        values = list(batch.values) if batch.faithful else self._written(batch, kept)
        for place, row in enumerate(batch.rows if kept else ()):
            if row in kept:
                values[place] = _as_json(kept[row].value) if encode == "json" else kept[row].value
        return values

    def _written(self, batch: Batch, kept: dict[int, Aside]) -> list[bytes]:
        assert batch.fields is not None, "only fields are written as JSON"
        try:
            return list(map(_encode, batch.fields))
        except Exception:  # some event holds what JSON cannot say
            return self._written_one_by_one(batch, kept)

    def _written_one_by_one(self, batch: Batch, kept: dict[int, Aside]) -> list[bytes]:
        values, why = [], {}
        for place, fields in enumerate(batch.fields or []):
            try:
                values.append(_encode(fields))
            except Exception as error:
                why[place] = f"encode: {told(error)}"
                if not self.has_dead_letters:
                    kept[batch.rows[place]] = self._hidden(Aside(batch.values[place], why[place], "keep", None))
                    values.append(b"")
        if self.has_dead_letters:
            batch.set_aside(why, "dead")
        else:
            batch.failed += len(why)
        return values

    def _keys(self, batch: Batch) -> list[bytes | None] | None:
        template = self._routing.key
        if template is None:
            given = batch.portion.keys
            return None if given is None else [given[row] for row in batch.rows]
        if self._key is not None:
            return [to_bytes(value) if type(value) is str else as_key(value) for value in batch.column(self._key)]
        filled = template.bind(batch.origin)
        if filled is None or isinstance(filled, str):
            return [as_key(filled)] * len(batch)
        return [as_key(text) for text in map(filled, batch.seen_fields())]

    def _times(self, batch: Batch) -> list[int] | None:
        times: Sequence[int | None] | None = batch.times_ms
        now_ms = batch.now_ms
        if self._routing.timestamp is not None:
            found = list(map(self._read_moment, batch.column(self._routing.timestamp), repeat(now_ms)))
            batch.untimed += found.count(None)
            # What a timestamp step or the input said stands where the field says nothing.
            others = repeat(None, len(found)) if times is None else times
            times = [one if one is not None else other for one, other in zip(found, others, strict=True)]
        if times is None:
            return None
        return [now_ms if time_ms is None else time_ms for time_ms in times]

    def _dead_letters(self, batch: Batch) -> Parcel | None:
        """Failed events as they came, with the reason."""
        rows = sorted(row for row, event in batch.aside.items() if event.on_error in ("", "dead"))
        if not rows or self._routing.dead_letters is None:
            return None
        name = self._routing.dead_letters.bind(batch.origin)
        topic = allowed_name(name) if isinstance(name, str) else _unknown(self._routing.dead_letters)
        events = [self._hidden(batch.aside[row]) for row in rows]
        why = {row: event.why for row, event in zip(rows, events, strict=True)}
        headers = self._headers.write(batch.portion, rows, why)
        times = [batch.now_ms if event.time_ms is None else event.time_ms for event in events]
        return Parcel(topic, [event.value for event in events], None, headers, times)


def _nulls(batch: Batch, kept: Mapping[int, Aside]) -> frozenset[int]:
    """Places of records without a value. One that failed and goes on as it is would not be known without one."""
    given = batch.portion.nulls
    if not given:
        return given
    return frozenset(place for place, row in enumerate(batch.rows) if row in given and row not in kept)


def _unknown(template: Template) -> str:
    return allowed_name(template.filled(UNKNOWN))


def _as_json(value: bytes) -> bytes:
    return _encode({MESSAGE: value.decode("utf-8", "backslashreplace")})


def _parcels(
    topics: Sequence[Topics],
    values: list[bytes],
    keys: list[bytes | None] | None,
    headers: list[Headers] | None,
    times_ms: list[int] | None,
    nulls: frozenset[int],
) -> list[Parcel]:
    if not values:
        return []
    kinds = dict.fromkeys(topics)
    if len(kinds) == 1:
        names = next(iter(kinds)) or ()
        return [Parcel(name, values, keys, headers, times_ms, nulls) for name in dict.fromkeys(names)]
    places: dict[str, list[int]] = {}
    for place, several in enumerate(topics):
        for name in dict.fromkeys(several or ()):
            places.setdefault(name, []).append(place)
    return [
        Parcel(
            topic,
            [values[place] for place in chosen],
            None if keys is None else [keys[place] for place in chosen],
            None if headers is None else [headers[place] for place in chosen],
            None if times_ms is None else [times_ms[place] for place in chosen],
            places_in(chosen, nulls),
        )
        for topic, chosen in places.items()
    ]
