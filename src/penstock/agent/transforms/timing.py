"""timestamp: the time of an event is what one of its fields says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import repeat

from penstock.agent.routing.batch import Batch
from penstock.agent.routing.moments import FORMATS, moment_reader, read_zone
from penstock.agent.transforms.step import Run, Step, Surroundings
from penstock.conditions.paths import wrong_path
from penstock.declared.fields import Table
from penstock.declared.mistakes import did_you_mean


@dataclass(frozen=True, slots=True)
class Timestamp:
    """Times that cannot be read are counted; those events keep the time they had, or get that of sending."""

    title: str
    path: str
    form: str = "auto"
    zone: str = "UTC"

    def make(self, around: Surroundings) -> Run:
        read = moment_reader(self.form, read_zone(self.zone))

        def run(batch: Batch) -> None:
            found: list[int | None] = list(map(read, batch.column(self.path), repeat(batch.now_ms)))
            batch.untimed += found.count(None)
            if batch.times_ms is not None:
                found = [new if new is not None else old for new, old in zip(found, batch.times_ms, strict=True)]
            batch.times_ms = found

        return run


def read_timestamp(table: Table, title: str) -> Step | None:
    path = table.text("timestamp")
    wrong = None if path is None else wrong_path(path)
    if wrong is not None:
        table.wrong("timestamp", wrong)
    form, zone = table.text("format") or "auto", table.text("zone") or "UTC"
    if "%" not in form and form not in FORMATS:
        guess = did_you_mean(form, FORMATS)
        table.wrong("format", f"format = {form!r} is not known{guess} A pattern such as '%d.%m.%Y %H:%M:%S' is one too")
    elif "%" in form:
        _check_form(table, form)
    try:
        read_zone(zone)
    except ValueError as error:
        table.wrong("zone", str(error))
    return None if path is None else Timestamp(title, path, form, zone)


def _check_form(table: Table, form: str) -> None:
    try:
        datetime.strptime("", form)
    except ValueError as error:
        # An empty text matches hardly any pattern; only what is wrong with the pattern itself matters.
        if "does not match" not in str(error):
            table.wrong("format", f"this is no pattern of a time: {error}")
