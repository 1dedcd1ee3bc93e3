"""`penstock profile`: create, use, list, show, delete."""

from __future__ import annotations

import click

from penstock.cli.options import examples, format_option, pairs
from penstock.cli.output import show, table


@click.group()
def profile() -> None:
    """Keep addresses and settings of clusters under names."""


@profile.command(epilog=examples("penstock profile create local -b localhost:9092 -X request_timeout_ms=5000"))
@click.argument("name")
@click.option(
    "-b", "--bootstrap", metavar="HOST:PORT", help="Brokers to ask first, comma-separated; else those of the file."
)
@click.option("-X", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of the client library; repeatable.")
@click.option(
    "--client-config",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    metavar="FILE",
    help="A client.properties as Kafka's own tools take it. The profile keeps its path, and no secrets.",
)
@click.option("--no-use", is_flag=True, help="Do not make it the current one.")
@click.option("--force", is_flag=True, help="Replace a profile of this name.")
def create(
    name: str, bootstrap: str | None, settings: tuple[str, ...], client_config: str | None, no_use: bool, force: bool
) -> None:
    """Create the profile NAME and use it from now on."""
    from penstock.cli.client_settings import known
    from penstock.cli.passwords import keep_off_the_command_line
    from penstock.cli.profiles import Profile, load_profiles, save_profiles
    from penstock.client.cluster_view import parse_bootstrap
    from penstock.model.errors import PenstockError

    if bootstrap is None and client_config is None:
        raise click.UsageError("name brokers by -b, or a file that does by --client-config")
    try:
        if bootstrap is not None:
            parse_bootstrap(bootstrap)
    except ValueError as wrong:
        raise click.BadParameter(str(wrong), param_hint="--bootstrap") from None
    given = pairs(settings, "-X")
    keep_off_the_command_line(given)
    for key in given:
        if not known(key):
            raise click.BadParameter(f"no client has a setting {key!r}", param_hint="-X")
    if client_config is not None:
        given["client_config"] = client_config
    profiles = load_profiles()
    if name in profiles.by_name and not force:
        raise PenstockError(f"there is a profile {name!r} already; --force replaces it")
    profiles.by_name[name] = Profile(bootstrap, given)
    if not no_use:
        profiles.current = name
    path = save_profiles(profiles)
    click.echo(f"{name} is in {path}{'' if no_use else ' and in use'}", err=True)


@profile.command(epilog=examples("penstock profile use local"))
@click.argument("name")
def use(name: str) -> None:
    """Make NAME the profile that commands use when none is named."""
    from penstock.cli.profiles import load_profiles, save_profiles

    profiles = load_profiles()
    profiles.named(name)
    profiles.current = name
    save_profiles(profiles)
    click.echo(f"{name} is in use", err=True)


@profile.command("list", epilog=examples("penstock profile list"))
@format_option
def list_profiles(style: str) -> None:
    """List the profiles; the one in use has a star."""
    from penstock.cli.profiles import load_profiles

    profiles = load_profiles()
    data = [
        {"name": name, "current": name == profiles.current, "bootstrap": found.bootstrap, "settings": found.settings}
        for name, found in sorted(profiles.by_name.items())
    ]
    rows = [("*" if each["current"] else "", each["name"], each["bootstrap"] or "") for each in data]
    show(data, style, table(("", "NAME", "BOOTSTRAP"), rows) if rows else "")
    if not rows:
        click.echo("no profiles yet; `penstock profile create NAME -b HOST:PORT` makes one", err=True)


@profile.command("show", epilog=examples("penstock profile show local"))
@click.argument("name", required=False)
@format_option
def show_profile(name: str | None, style: str) -> None:
    """Show the profile NAME, or the one in use."""
    from penstock.cli.profiles import load_profiles
    from penstock.model.errors import PenstockError

    profiles = load_profiles()
    chosen = name or profiles.current
    if chosen is None:
        raise PenstockError("no profile is in use; `penstock profile use NAME` chooses one")
    found = profiles.named(chosen)
    lines = [f"name       {chosen}", f"bootstrap  {found.bootstrap or ''}".rstrip()]
    lines += [f"  {key} = {value}" for key, value in sorted(found.settings.items())]
    data = {"name": chosen, "current": chosen == profiles.current, "bootstrap": found.bootstrap}
    show({**data, "settings": found.settings}, style, "\n".join(lines))


@profile.command(epilog=examples("penstock profile delete local"))
@click.argument("name")
def delete(name: str) -> None:
    """Forget the profile NAME."""
    from penstock.cli.profiles import load_profiles, save_profiles

    profiles = load_profiles()
    profiles.named(name)
    del profiles.by_name[name]
    if profiles.current == name:
        profiles.current = None
    save_profiles(profiles)
    click.echo(f"forgot {name}", err=True)
