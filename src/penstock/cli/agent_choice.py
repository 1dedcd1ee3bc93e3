"""Which settings `penstock agent run` runs with: a file or a quick `--tail`, and what the command line says over it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from penstock.agent.settings import AgentSettings, Examined
    from penstock.cli.connection import Connection

STATE_FOLDER: Final = ".penstock-agent"
QUICK_FILE: Final = "(no file)"


@dataclass(frozen=True, slots=True)
class QuickTail:
    """`--tail GLOB --topic TOPIC`: an agent without a file."""

    globs: tuple[str, ...]
    topic: str

    def text(self) -> str:
        """The file that one would have written."""
        plain = "".join(char if char.isascii() and (char.isalnum() or char in "-._") else "-" for char in self.topic)
        paths = json.dumps([str(Path(glob).absolute()) for glob in self.globs], ensure_ascii=False)
        return (
            f'name = "tail-{plain}"\n[inputs.tail]\ntype = "tail"\n'
            f"paths = {paths}\ntopic = {json.dumps(self.topic, ensure_ascii=False)}\n"
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """What was asked for. Exactly one of `file` and `quick` is there."""

    file: Path | None
    quick: QuickTail | None
    state_dir: Path | None
    connection: Connection
    said_bootstrap: bool
    """Whether -b was given: a flag comes before the file, the environment and a profile after it."""

    def load(self) -> AgentSettings:
        """Reads the file, at the start and at every reload. AgentFileBroken with everything that is wrong."""
        from penstock.agent.errors import AgentFileBroken

        text, found = self._examined()
        if found.settings is None:
            raise AgentFileBroken(str(self.file or QUICK_FILE), found.mistakes)
        return self._over(found.settings, names_bootstrap="bootstrap" in tomllib.loads(text))

    def warn(self) -> None:
        for each in self._examined()[1].warnings:
            click.echo(f"warning: {each.at(str(self.file or QUICK_FILE))}", err=True)

    def _examined(self) -> tuple[str, Examined]:
        from penstock.agent.settings import examine
        from penstock.declared.mistakes import text_of

        if self.file is not None:
            text = text_of(self.file.read_bytes(), str(self.file))
            return text, examine(text, self.file)
        assert self.quick is not None, "one of both is given"
        text = self.quick.text()
        return text, examine(text, Path.cwd() / QUICK_FILE)

    def _over(self, settings: AgentSettings, *, names_bootstrap: bool) -> AgentSettings:
        of_file = not self.said_bootstrap and names_bootstrap
        bootstrap = settings.bootstrap if of_file else self.connection.bootstrap
        remembered = self.connection.towards(bootstrap, settings.output.kafka).remembered
        kafka = {**_fitting(remembered), **settings.output.kafka, **_checked(self.connection.given)}
        if kafka != settings.output.kafka:
            settings = replace(settings, output=replace(settings.output, kafka=kafka))
        settings = replace(settings, bootstrap=bootstrap)
        return settings if self.state_dir is None else moved(settings, self.state_dir.absolute())


def _fitting(remembered: Mapping[str, str]) -> dict[str, str]:
    """A profile serves every kind of client; a producer is given what it has a use for."""
    from penstock.agent.settings.producing import OWN, producer_name, refusal

    names = {name: producer_name(name) for name in remembered}
    return {
        name.replace("_", "."): remembered[name]
        for name, keyword in names.items()
        if keyword not in OWN and not refusal(keyword, remembered[name])
    }


def _checked(given: Mapping[str, str]) -> dict[str, str]:
    """What -X says, which must have a meaning."""
    from penstock.agent.settings.producing import OWN, producer_name, refusal

    for name, value in given.items():
        keyword = producer_name(name)
        words = f"it is not set here: that is {OWN[keyword]}" if keyword in OWN else refusal(keyword, value)
        if words:
            raise click.BadParameter(f"{name}: {words}", param_hint="-X")
    return {name.replace("_", "."): value for name, value in given.items()}


def moved(settings: AgentSettings, state_dir: Path) -> AgentSettings:
    """With its state elsewhere; a spool that lay below it goes along."""
    spool = settings.spool
    if spool is not None and spool.path.is_relative_to(settings.state_dir):
        spool = replace(spool, path=state_dir / spool.path.relative_to(settings.state_dir))
    return replace(settings, state_dir=state_dir, spool=spool)
