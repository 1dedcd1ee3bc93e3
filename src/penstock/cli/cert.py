"""`penstock cert create-ca|issue|renew|rotate-ca|show`: the authorities of a cluster and what they sign, as files."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.options import examples, format_option, yes_option
from penstock.cli.output import show as show_result
from penstock.cli.output import table

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from penstock.certificates import Authority, CertificateDirectory, Role, Shown

DEFAULT_FOLDER = ".penstock/security"
DAYS = 365
DAYS_MAX = 3650

folder_option = click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_FOLDER,
    show_default=True,
    help="Where authorities and certificates are kept.",
)
days_option = click.option(
    "--days", type=click.IntRange(1, DAYS_MAX), default=DAYS, show_default=True, help="How long it is good for."
)
role_argument = click.argument("role", type=click.Choice(["cluster", "clients"]))


@click.group()
def cert() -> None:
    """Make, renew and show certificates. Two authorities: the cluster's signs nodes, the clients' signs clients."""


@cert.command("create-ca", epilog=examples("penstock cert create-ca --dir certs"))
@folder_option
@click.option("--cluster-id", help="The cluster's id, which is in every subject; a new one if not given.")
@format_option
def create_ca(folder: Path, cluster_id: str | None, style: str) -> None:
    """Make the two authorities of a new cluster. The keys in DIR/*/ca.key belong where nobody else gets at them."""
    from penstock.certificates import BadCertificate

    made = _directory(folder).create(cluster_id or _known_cluster(folder) or _new_cluster_id(), now=_now())
    if not made:
        raise BadCertificate(f"{folder} holds both authorities already; `penstock cert rotate-ca` replaces one")
    data = [{"role": each.role.value, "file": str(each.directory / "ca.pem"), **_signer(each)} for each in made]
    rows = [(each["role"], each["file"], each["not_after"][:10], each["fingerprint"]) for each in data]
    show_result(data, style, table(("SIGNS", "FILE", "NOT AFTER", "SHA-256"), rows))
    click.echo("the keys beside them can sign anybody: keep them away from nodes and clients", err=True)


@cert.command(
    epilog=examples(
        "penstock cert issue alice --dir certs", "penstock cert issue etl --dir certs --days 30 --out etl.pem"
    )
)
@click.argument("user")
@folder_option
@days_option
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; DIR/clients/USER.pem if not given.",
)
@format_option
def issue(user: str, folder: Path, days: int, out: Path | None, style: str) -> None:
    """Issue the certificate of a client: a PEM file with a new key, for `ssl.keystore.location`.

    A listener of the protocol SSL that trusts DIR/clients-ca/ca.pem knows its owner as User:CN=USER. Nodes get theirs
    from `penstock server init`: nobody who is signed here can act as one.
    """
    from penstock.certificates import Role, issue_client, write_issued

    directory = _directory(folder)
    issued = issue_client(directory.open(Role.CLIENTS), user, now=_now(), days=days)
    path = out or directory.client(user)
    write_issued(issued, path)
    _tell_issued(path, style)


@cert.command("issue-node", epilog=examples("penstock cert issue-node 1 kafka-1 10.0.0.1 --dir certs"))
@click.argument("node_id", metavar="ID", type=click.IntRange(0, (1 << 31) - 1))
@click.argument("hosts", metavar="HOST...", nargs=-1, required=True)
@folder_option
@days_option
@format_option
def issue_node(node_id: int, hosts: tuple[str, ...], folder: Path, days: int, style: str) -> None:
    """Issue the certificate of a node that was made without one, for the names and addresses that it is dialled at.

    It is written to DIR/nodes/node-ID.pem, and whoever has that file can act as this node. Others know it as
    User:CN=node-ID,O=CLUSTER, which belongs into their super.users.
    """
    from penstock.certificates import Role, write_issued
    from penstock.certificates import issue_node as issued_node

    directory = _directory(folder)
    path = directory.node(node_id)
    write_issued(issued_node(directory.open(Role.CLUSTER), node_id, hosts, now=_now(), days=days), path)
    _tell([path], style)


@cert.command(
    epilog=examples("penstock cert renew certs/clients/alice.pem --dir certs", "penstock cert renew --all --dir certs")
)
@click.argument("paths", nargs=-1, metavar="[FILE...]", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@folder_option
@days_option
@click.option("--all", "everything", is_flag=True, help="Every certificate of a node or client that is kept in DIR.")
@format_option
def renew(paths: tuple[Path, ...], folder: Path, days: int, everything: bool, style: str) -> None:
    """Renew certificates: the same subject and names with a new key, in place of the old one.

    Nodes see a new file within seconds and show it to new connections; nothing has to be restarted.
    """
    from penstock.certificates import leaf_of, write_issued
    from penstock.certificates import renew as renewed

    if bool(paths) == everything:
        raise click.UsageError("name files, or say --all")
    directory = _directory(folder)
    chosen = directory.issued_files() if everything else list(paths)
    # All are issued before one is written: what is refused is refused before anything changes.
    certificates = [(path, leaf_of(path)) for path in chosen]
    issued = [(path, renewed(directory.authority_of(each), each, now=_now(), days=days)) for path, each in certificates]
    for path, each in issued:
        write_issued(each, path, replace=True)
    _tell(chosen, style)


@cert.command(
    "rotate-ca",
    epilog=examples(
        "penstock cert rotate-ca cluster begin --dir certs",
        "penstock cert rotate-ca cluster switch --dir certs",
        "penstock cert rotate-ca cluster finish --dir certs --yes",
    ),
)
@role_argument
@click.argument("step", type=click.Choice(["begin", "switch", "finish"]))
@folder_option
@yes_option
@format_option
def rotate_ca(role: str, step: str, folder: Path, yes: bool, style: str) -> None:
    """Replace an authority in three steps, while everything goes on.

    `begin` makes the new one: both are trusted, the old one signs. `switch` lets the new one sign; then every
    certificate is renewed. `finish` drops the old one, and is refused while a certificate in DIR is still signed by it.
    """
    from penstock.certificates import Role, begin_rotation, finish_rotation, rotation_step, switch_rotation

    directory = _directory(folder)
    chosen = Role(role)
    authority = directory.open(chosen)
    if step == "finish" and not yes:
        click.confirm(f"Is every certificate of the {role} authority renewed, wherever it is?", abort=True, err=True)
    if step == "begin":
        authority = begin_rotation(authority, now=_now())
    elif step == "switch":
        authority = switch_rotation(authority)
    else:
        authority = finish_rotation(authority, directory.issued(chosen))
    directory.publish()
    data = {
        "role": role,
        "step": rotation_step(authority).value,
        "trusted": [_fingerprint(each) for each in authority.trusted],
        **_signer(authority),
    }
    show_result(data, style, f"{role}: {_STANDS[step]}")
    click.echo(f"now {_next(directory, chosen, step)}", err=True)


_STANDS = {
    "begin": "the old and the new authority are trusted, the old one signs",
    "switch": "the old and the new authority are trusted, the new one signs",
    "finish": "only the new authority is trusted",
}


def _next(directory: CertificateDirectory, role: Role, step: str) -> str:
    trusted = directory.trusted if role.value == "cluster" else directory.authority_at(role) / "ca.pem"
    whom = "every node and client" if role.value == "cluster" else "every node that trusts clients' certificates"
    return {
        "begin": f"give {trusted} to {whom}, then `penstock cert rotate-ca {role.value} switch --dir {directory.path}`",
        "switch": f"`penstock cert renew --all --dir {directory.path}`, copy the files to where they are used, "
        f"then `penstock cert rotate-ca {role.value} finish --dir {directory.path}`",
        "finish": f"give {trusted} to {whom} again",
    }[step]


@cert.command(
    epilog=examples("penstock cert show --dir certs", "penstock cert show certs/clients/alice.pem --format json")
)
@click.argument("paths", nargs=-1, metavar="[FILE...]", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@folder_option
@format_option
def show(paths: tuple[Path, ...], folder: Path, style: str) -> None:
    """Show certificates with their end and the days that are left: those in DIR, or those in FILEs."""
    from penstock.certificates import BadCertificate

    chosen = list(paths) or _directory(folder).files()
    if not chosen:
        raise BadCertificate(f"there are no certificates in {folder}; `penstock cert create-ca` makes the first")
    _tell(chosen, style)


def _tell_issued(path: Path, style: str) -> None:
    _tell([path], style)
    click.echo(f"Java        ssl.keystore.type=PEM, ssl.keystore.location={path.absolute()}", err=True)
    click.echo(f"librdkafka  ssl.certificate.location and ssl.key.location={path.absolute()}", err=True)


def _tell(paths: list[Path], style: str) -> None:
    from penstock.certificates import show as shown_of

    now = _now()
    found = [(path, each) for path in paths for each in shown_of(path, now=now)]
    data = [_as_data(path, each) for path, each in found]
    rows = [
        (str(path), each.subject, ", ".join(each.names) or None, f"{each.not_after:%Y-%m-%d}", each.days_left)
        for path, each in found
    ]
    show_result(data, style, table(("FILE", "SUBJECT", "NAMES", "NOT AFTER", "DAYS LEFT"), rows))
    for path, each in found:
        if each.days_left < 0:
            click.echo(f"{path} has ended; `penstock cert renew {path}` issues it anew", err=True)


def _as_data(path: Path, shown: Shown) -> dict[str, Any]:
    return {
        "file": str(path),
        "subject": shown.subject,
        "issuer": shown.issuer,
        "names": list(shown.names),
        "authority": shown.signs_others,
        "not_before": shown.not_before.isoformat(),
        "not_after": shown.not_after.isoformat(),
        "days_left": shown.days_left,
        "fingerprint": shown.fingerprint,
    }


def _signer(authority: Authority) -> dict[str, Any]:
    certificate = authority.certificate
    return {
        "subject": certificate.subject.rfc4514_string(),
        "not_after": certificate.not_valid_after_utc.isoformat(),
        "fingerprint": authority.fingerprint,
    }


def _fingerprint(certificate: Certificate) -> str:
    from penstock.certificates.authority import fingerprint_of

    return fingerprint_of(certificate)


def _directory(folder: Path) -> CertificateDirectory:
    from penstock.certificates import CertificateDirectory

    return CertificateDirectory(folder)


def _known_cluster(folder: Path) -> str | None:
    """Of the authority that is there, when only the other one is missing."""
    from penstock.certificates import Role

    directory = _directory(folder)
    return next((directory.open(role).cluster_id for role in Role if directory.has(role)), None)


def _new_cluster_id() -> str:
    from random import SystemRandom

    from penstock.server.formatting import new_cluster_id

    return new_cluster_id(SystemRandom())


def _now() -> datetime:
    return datetime.now(UTC)
