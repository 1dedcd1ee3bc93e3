"""Reading steps from a file: every mistake in its place, with a guess at what was meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from penstock.agent.routing.routing import Routing
from penstock.agent.transforms.filtering import read_filter
from penstock.agent.transforms.masking.mask import Mask, read_mask
from penstock.agent.transforms.parsing.parse import Parse
from penstock.agent.transforms.parsing.reading import read_parse
from penstock.agent.transforms.route import read_route
from penstock.agent.transforms.sampling import read_sample
from penstock.agent.transforms.shaping import read_add, read_drop, read_keep, read_rename
from penstock.agent.transforms.step import Step
from penstock.agent.transforms.timing import read_timestamp
from penstock.declared.fields import Notes, Table
from penstock.declared.mistakes import did_you_mean

VERBS: Final[dict[str, Callable[[Table, str], Step | None]]] = {
    "parse": read_parse,
    "add": read_add,
    "drop": read_drop,
    "rename": read_rename,
    "keep": read_keep,
    "filter": read_filter,
    "sample": read_sample,
    "mask": read_mask,
    "route": read_route,
    "timestamp": read_timestamp,
}


def read_steps(
    own: Iterable[Table], shared: Iterable[Table], notes: Notes, routing: Routing | None = None
) -> tuple[Step, ...]:
    """The steps of an input, then those of all inputs. A mistake in the latter is noted once, however often it is read.

    With `routing` it also tells what the steps say that the input cannot do.
    """
    steps = []
    for table in (*own, *(_titled(table, f"shared {table.title}") for table in shared)):
        step = _read_step(table)
        if step is None:
            continue
        steps.append(step)
        if routing is not None:
            _check_against(step, routing, table)
    notes.mistakes[:] = dict.fromkeys(notes.mistakes)
    notes.warnings[:] = dict.fromkeys(notes.warnings)
    return tuple(steps)


def _read_step(table: Table) -> Step | None:
    verbs = [key for key in table.values if key in VERBS]
    if len(verbs) != 1:
        _note_verbs(table, verbs)
        return None
    verb = verbs[0]
    mistakes = len(table.notes.mistakes)
    titled = _titled(table, f"{table.title} ({verb})")
    step = VERBS[verb](titled, titled.title)
    titled.finish()
    return step if len(table.notes.mistakes) == mistakes else None


def _titled(table: Table, title: str) -> Table:
    """The same table under another title; the one that was given may be read again for the next input."""
    return Table(table.values, table.path, table.notes, title)


def _note_verbs(table: Table, verbs: list[str]) -> None:
    if verbs:
        table.wrong(verbs[1], f"a step does one thing: {' and '.join(verbs)} are {len(verbs)} steps, in their order")
        return
    for key in table.values:
        guess = did_you_mean(key, VERBS)
        if "did you mean" in guess:
            table.wrong(key, f"{key!r} is nothing that a step can do{guess}")
            return
    table.wrong(None, f"this step does nothing; it must have one of {', '.join(VERBS)}")


def _check_against(step: Step, routing: Routing, table: Table) -> None:
    if isinstance(step, Parse) and step.on_error == "dead" and routing.dead_letters is None:
        table.wrong("on_error", 'on_error = "dead" needs a topic: write dead_letters = "…" beside the input\'s topic')
    if isinstance(step, Mask) and step.places and routing.encode == "raw":
        table.wrong("in", 'with encode = "raw" the line goes out as it came: leave `in` away to mask in all of it')
