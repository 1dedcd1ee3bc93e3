"""Which cluster a command speaks to, and with which settings: flags, then environment, then profile, then defaults."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.cli import on_a_loop

if TYPE_CHECKING:
    from penstock.client.admin import Admin
    from penstock.client.settings import CommonSettings

T = TypeVar("T")

DEFAULT_BOOTSTRAP = "localhost:9092"


@dataclass(frozen=True, slots=True)
class Connection:
    """What a client is made with. `given` was asked for here and now, `remembered` comes from the profile."""

    bootstrap: str
    given: Mapping[str, str] = field(default_factory=dict, repr=False)
    remembered: Mapping[str, str] = field(default_factory=dict)
    found: Mapping[str, str] = field(default_factory=dict)
    """The file that `penstock dev --secure` left here, if it names these brokers; part of `remembered`."""
    data_dir: str | None = None

    def towards(self, bootstrap: str, *said: Mapping[str, str]) -> Connection:
        """The same for other brokers: whatever was found for these is not shown to those.

        `said` is what else decides how those are spoken to. PenstockError when the folder that was named has nothing
        for them.
        """
        if self.data_dir is not None:
            from penstock.cli.found_config import config_in

            config_in(self.data_dir, bootstrap)
        remembered = {name: value for name, value in self.remembered.items() if name not in self.found}
        return _finding(bootstrap, self.given, remembered, self.data_dir, *said)

    def keywords(self, kind: type[CommonSettings]) -> dict[str, Any]:
        """Keywords for a client. A profile serves every kind of client, so what this one lacks is left out."""
        from penstock.cli.client_settings import names_of

        names = names_of(kind)
        remembered = {names[_plain(name)]: value for name, value in self.remembered.items() if _plain(name) in names}
        given = {names.get(_plain(name), _plain(name)): value for name, value in self.given.items()}
        return {"bootstrap_servers": self.bootstrap, "client_id": _client_id(), **remembered, **given}

    def security_protocol(self) -> str:
        """How brokers are spoken to."""
        if not self.given and not self.remembered:
            return "PLAINTEXT"
        from penstock.client.settings import AdminSettings

        return AdminSettings.of(self.beside().keywords(AdminSettings)).security_protocol

    def beside(self) -> Connection:
        """For an Admin that helps another client: settings that are meant for that one are not its business."""
        return Connection(self.bootstrap, {}, {**self.remembered, **self.given})

    def admin(self, timeout_ms: int | None = None) -> Admin:
        """`timeout_ms` is for those who had rather hear that a broker is silent than wait for it."""
        from penstock.client.admin.admin import Admin

        if not self.given and not self.remembered and timeout_ms is None:
            return Admin(bootstrap_servers=self.bootstrap, client_id=_client_id())
        from penstock.client.settings import AdminSettings

        keywords = self.keywords(AdminSettings)
        if timeout_ms is not None:
            keywords.setdefault("default_api_timeout_ms", timeout_ms)
            keywords.setdefault("request_timeout_ms", timeout_ms)
        return Admin(**keywords)


def connect(
    bootstrap: str | None, profile: str | None, given: Mapping[str, str], verbose: int, data_dir: str | None = None
) -> Connection:
    """`data_dir` is the folder of a secured cluster on this machine; nobody has to name it where it is `.penstock`."""
    from penstock.cli.profiles import current_profile
    from penstock.client.cluster_view import parse_bootstrap

    _speak(verbose)
    given = dict(given)
    if given:
        from penstock.cli.passwords import ask_for_password, keep_off_the_command_line

        keep_off_the_command_line(given)
        ask_for_password(given)
    remembered = current_profile(profile)
    for name in ("bootstrap_servers", "bootstrap.servers"):
        bootstrap = given.pop(name, bootstrap)
    if "client_config" in given:
        data_dir = None
    elif data_dir is not None:
        from penstock.cli.found_config import config_in

        given["client_config"] = str(config_in(data_dir, bootstrap))
    address = (
        bootstrap
        or _address_in(given.get("client_config"))
        or remembered.bootstrap
        or _address_in(remembered.settings.get("client_config"))
        or DEFAULT_BOOTSTRAP
    )
    try:
        parse_bootstrap(address)
    except ValueError as wrong:
        raise click.BadParameter(str(wrong), param_hint="--bootstrap") from None
    return _finding(address, given, remembered.settings, data_dir)


def _finding(
    address: str,
    given: Mapping[str, str],
    remembered: Mapping[str, str],
    data_dir: str | None,
    *said: Mapping[str, str],
) -> Connection:
    found = _found(address, given, remembered, *said)
    return Connection(address, given, {**found, **remembered}, found, data_dir)


def _found(address: str, *said: Mapping[str, str]) -> dict[str, str]:
    """What `penstock dev --secure` left here for this address, unless something was said about how to speak to it."""
    from penstock.cli.found_config import config_for

    path = config_for(address)
    if path is None:
        return {}
    from dataclasses import fields

    from penstock.client.security_settings import SecuritySettings

    known = {each.name for each in fields(SecuritySettings)} | {"sasl_mechanism"}
    return {} if any(_plain(name) in known for given in said for name in given) else {"client_config": str(path)}


def _address_in(client_config: str | None) -> str | None:
    """The brokers that a file names, if it does."""
    if client_config is None:
        return None
    from penstock.client.config_file import read_client_config

    return read_client_config(client_config).get("bootstrap.servers") or None


def administer(connection: Connection, work: Callable[[Admin], Awaitable[T]], timeout_ms: int | None = None) -> T:
    """Runs work that needs an Admin, from start to end."""

    async def main() -> T:
        async with connection.admin(timeout_ms) as admin:
            return await work(admin)

    return on_a_loop.run(main())


def _plain(name: str) -> str:
    return name.replace(".", "_").replace("-", "_")


def _client_id() -> str:
    from penstock.client.cluster_view import default_client_id

    return default_client_id()


def _speak(verbose: int) -> None:
    """Lets the library's log be heard, or not: a warning about something that is tried again would only worry.

    That nothing comes for long because a broker is away is told all the same, and that it is back then.
    """
    import logging
    import sys

    if not verbose:
        logging.getLogger("penstock").addHandler(logging.NullHandler())
        told = logging.StreamHandler(sys.stderr)
        told.addFilter(lambda record: getattr(record, "lasting", False))
        told.setFormatter(logging.Formatter("penstock: %(message)s"))
        logging.getLogger("penstock.client").addHandler(told)
        return
    level = logging.INFO if verbose == 1 else logging.DEBUG
    logging.basicConfig(stream=sys.stderr, level=level, format="%(asctime)s %(levelname).1s %(name)s: %(message)s")
