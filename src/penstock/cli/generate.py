"""`penstock generate`: files for the programs around us, such as systemd, Prometheus and Grafana."""

from __future__ import annotations

import re

import click

from penstock.cli.options import examples


@click.group()
def generate() -> None:
    """Print files for other programs: a systemd unit, Prometheus' scrape configuration and alerts, a dashboard."""


@generate.command(
    epilog=examples(
        "penstock generate systemd agent > penstock-agent.service",
        "penstock generate systemd server --file /etc/penstock/server.properties --user penstock",
    )
)
@click.argument("service", type=click.Choice(["agent", "server"]), default="agent")
@click.option(
    "--file",
    metavar="FILE",
    help="What it runs; /etc/penstock/agent.toml or /etc/penstock/server.properties if not given.",
)
@click.option("--user", default="penstock", show_default=True, metavar="NAME", help="Who it runs as.")
@click.option("--program", metavar="PATH", help="The `penstock` to start; the one that prints this unit if not given.")
@click.option(
    "--write",
    "writes",
    multiple=True,
    metavar="DIR",
    help="A directory outside its own that it may write to, such as one whose files an agent moves; repeatable.",
)
def systemd(service: str, file: str | None, user: str, program: str | None, writes: tuple[str, ...]) -> None:
    """Print a unit for an agent or a server. Standard error says where to put it and how to start it."""
    from penstock.cli.generate_systemd import FILES, Unit, this_program, unit_text

    for path in (file or FILES[service], program or "/", *writes):
        if not path.startswith("/") or path != path.strip() or "\n" in path:
            raise click.UsageError(f"{path!r} must be an absolute path: systemd starts nowhere in particular")
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", user):
        raise click.UsageError(f"{user!r} is no name of a user")
    unit = Unit(service, file or FILES[service], user, program or this_program(), writes)
    click.echo(unit_text(unit), nl=False)
    name = f"penstock-{service}"
    click.echo(
        f"put it into /etc/systemd/system/{name}.service, then"
        f" `systemctl daemon-reload && systemctl enable --now {name}`",
        err=True,
    )


@generate.command(
    epilog=examples(
        "penstock generate prometheus --broker 10.0.0.1:9644 --agent 10.0.1.7:9645 > prometheus.yml",
        "penstock generate prometheus --broker 10.0.0.1:9644 --ca-file ca.pem --bearer-token-file token",
        "penstock generate prometheus --alerts > penstock-alerts.yml",
    )
)
@click.option("--broker", "brokers", multiple=True, metavar="HOST:PORT", help="A node's admin port; repeatable.")
@click.option("--agent", "agents", multiple=True, metavar="HOST:PORT", help="An agent's admin port; repeatable.")
@click.option(
    "--pipeline", "pipelines", multiple=True, metavar="HOST:PORT", help="A pipeline's admin port; repeatable."
)
@click.option("--tls", is_flag=True, help="Nodes serve it with TLS.")
@click.option("--ca-file", default="", metavar="FILE", help="Whom Prometheus trusts for it; where it finds the file.")
@click.option("--username", default="", metavar="NAME", help="penstock.admin.username of the nodes.")
@click.option("--password-file", default="", metavar="FILE", help="Where Prometheus finds the password of it.")
@click.option("--bearer-token-file", "token_file", default="", metavar="FILE", help="The same for a bearer token.")
@click.option("--alerts", is_flag=True, help="Print rules to be woken by instead.")
def prometheus(
    brokers: tuple[str, ...],
    agents: tuple[str, ...],
    pipelines: tuple[str, ...],
    tls: bool,
    ca_file: str,
    username: str,
    password_file: str,
    token_file: str,
    alerts: bool,
) -> None:
    """Print what Prometheus needs to scrape nodes, agents and pipelines; with --alerts, rules that say when to look."""
    from penstock.cli.generate_prometheus import NodeAccess, alert_rules, scrape_config

    access = NodeAccess(tls, ca_file, username, password_file, token_file)
    if alerts and (brokers or agents or pipelines or any(access)):
        raise click.UsageError("--alerts are the same for all: leave the other options away")
    if bool(username) != bool(password_file):
        raise click.UsageError("--username and --password-file go together")
    if username and token_file:
        raise click.UsageError("a scraper has one login: --username or --bearer-token-file")
    click.echo(alert_rules() if alerts else scrape_config(brokers, agents, access, pipelines), nl=False)


@generate.command(epilog=examples("penstock generate grafana > penstock-dashboard.json"))
@click.option("--title", default="Penstock", show_default=True, metavar="TEXT", help="What it is called.")
def grafana(title: str) -> None:
    """Print a dashboard for Grafana: brokers, topics, groups, disks, the quorum, nodes, agents and pipelines.

    Import it as it is (Dashboards, New, Import); at the top of the page it asks which Prometheus to use, and which
    nodes, topics and groups to show.
    """
    from penstock.cli.generate_grafana import dashboard

    click.echo(dashboard(title))
