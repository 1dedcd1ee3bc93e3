"""What must hold between the parts of a flow: names, circles, targets, functions that are there. Needs no Spark."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Sequence
from pathlib import Path

from penstock.declared.fields import Notes
from penstock.declared.mistakes import did_you_mean
from penstock.declared.positions import Path as KeyPath
from penstock.spark.pipeline.flow import Flow, SinkKind, Step
from penstock.spark.pipeline.keyed_check import check_keyed


def order_of(steps: Sequence[Step], notes: Notes) -> tuple[Step, ...]:
    """Steps so that each follows what it reads. A circle is noted once, and its steps are left as they stand."""
    by_name = {step.name: step for step in steps}
    done: list[Step] = []
    for step in steps:
        _place_after_inputs(step, by_name, done, [], notes, steps)
    return tuple(done)


def _place_after_inputs(
    step: Step, by_name: dict[str, Step], done: list[Step], above: list[str], notes: Notes, steps: Sequence[Step]
) -> None:
    if step in done:
        return
    if step.name in above:
        circle = [*above[above.index(step.name) :], step.name]
        words = f"steps go in a circle: {' reads '.join(circle)}"
        if not any(_same_circle(mistake.words, circle) for mistake in notes.mistakes):
            notes.wrong(("steps", steps.index(step)), words)
        return
    for name in step.inputs:
        if name in by_name:
            _place_after_inputs(by_name[name], by_name, done, [*above, step.name], notes, steps)
    if step not in done:
        done.append(step)


def _same_circle(words: str, circle: list[str]) -> bool:
    told = words.removeprefix("steps go in a circle: ").split(" reads ")
    return words.startswith("steps go in a circle") and set(told) == set(circle)


def check(flow: Flow, notes: Notes) -> None:
    """Everything that needs the whole flow; called when its parts are right by themselves."""
    _check_targets(flow, notes)
    _check_references(flow, notes)
    check_keyed(flow, notes)
    _warn_of_unused(flow, notes)
    _warn_of_counting(flow, notes)


def check_names(sources: Sequence[str], steps: Sequence[Step], notes: Notes, references: Sequence[str] = ()) -> None:
    """Sources, references and steps are one namespace, and Spark compares names of views without regard to case."""
    taken: dict[str, str] = {}
    named: list[tuple[KeyPath, str, str]] = [(("sources", name), name, f"source {name}") for name in sources]
    named += [(("references", name), name, f"reference {name}") for name in references]
    named += [(("steps", index), step.name, f"step {step.name}") for index, step in enumerate(steps) if step.name]
    for path, name, who in named:
        other = taken.setdefault(name.lower(), who)
        if other is not who:
            notes.wrong(path, f"the name {name!r} is taken by {other}")


def _step_path(flow: Flow, step: Step, notes: Notes) -> KeyPath:
    """Steps were sorted; their lines tell which was which."""
    for index in range(len(flow.steps)):
        if notes.positions.of(("steps", index)).line == step.line:
            return ("steps", index)
    return ("steps",)


def _check_targets(flow: Flow, notes: Notes) -> None:
    """Two queries that write one table would each find the other's offsets in it."""
    taken: dict[str, str] = {}
    for sink in flow.sinks:
        if sink.kind in (SinkKind.TABLE, SinkKind.PARQUET):
            other = taken.setdefault(flow.table_path(sink), sink.name)
            if other != sink.name:
                words = f"sinks {other} and {sink.name} both write {sink.target}: give each its own"
                notes.wrong(("sinks", sink.name, sink.kind.value), words)


def _warn_of_unused(flow: Flow, notes: Notes) -> None:
    used = {name for sink in flow.sinks for part in flow.lineage(sink) for name in [each.name for each in part]}
    for source in flow.sources:
        if source.name not in used:
            notes.warn(("sources", source.name), f"source {source.name} goes to no sink and will not be read")
    for reference in flow.references:
        if not any(reference in flow.references_of(sink) for sink in flow.sinks):
            notes.warn(("references", reference.name), f"reference {reference.name} is joined by no step of a sink")
    for step in flow.steps:
        if step.name not in used:
            notes.warn(_step_path(flow, step, notes), f"step {step.name} goes to no sink and will not run")


def _warn_of_counting(flow: Flow, notes: Notes) -> None:
    for sink in flow.sinks:
        sources, steps = flow.lineage(sink)
        if sink.rows == "record" and (len(sources) > 1 or len(steps) > 0):
            words = f'sink {sink.name} says rows = "record": the audit will count one row a record through its steps'
            notes.warn(("sinks", sink.name, "rows"), words)


def _check_references(flow: Flow, notes: Notes) -> None:
    """Functions are looked for in the text of their modules: nothing of the user's runs to be checked."""
    for step in flow.steps:
        if step.python is not None:
            _check_function(flow, step.python, (*_step_path(flow, step, notes), "python"), notes)
    for sink in flow.sinks:
        if sink.kind is SinkKind.FOREACH_BATCH:
            _check_function(flow, sink.target, ("sinks", sink.name, "foreach_batch"), notes)


def _check_function(flow: Flow, reference: str, path: KeyPath, notes: Notes) -> None:
    module, _, function = reference.partition(":")
    file = _module_file(flow, module)
    if file is None:
        if not _is_installed(module):
            where = flow.directory / f"{module.replace('.', '/')}.py"
            notes.wrong(path, f"there is no module {module!r}: neither {where} nor one that is installed")
        return
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
    except (OSError, SyntaxError, ValueError) as broken:
        notes.wrong(path, f"{file} cannot be read as Python: {broken}")
        return
    defined = _defined(tree)
    if function not in defined:
        notes.wrong(path, f"{file.name} has no {function!r}{did_you_mean(function, sorted(defined))}")


def _module_file(flow: Flow, module: str) -> Path | None:
    below = Path(*module.split("."))
    for folder in (flow.directory, *(file.parent for file in flow.spark.python if file.suffix == ".py")):
        for candidate in (folder / below.with_suffix(".py"), folder / below / "__init__.py"):
            if candidate.is_file():
                return candidate
    return None


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module.split(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def _defined(tree: ast.Module) -> set[str]:
    """Names that exist at the top of a module: functions, classes, assignments and imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name)
    return found
