"""`penstock dev --secure`: certificates, the first user and the settings of nodes on this machine.

Everything is in the folder `security` beside the data. A folder that has it is a secured one for good: started
without `--secure` it is secured all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import click

from penstock.cli.dev_ports import HOST, free_ports
from penstock.model.errors import PenstockError

SECURITY: Final = "security"
_TAKEN: Final = ("listeners", "advertised.listeners", "listener.security.protocol.map")


def is_secured(folder: Path) -> bool:
    return (folder / SECURITY).exists()


def check_secure(folder: Path, overrides: Iterable[str]) -> None:
    """PenstockError when the folder has data of an open cluster, or when somebody chose other listeners."""
    if not is_secured(folder) and ((folder / "node-1").exists() or (folder / "cluster.json").exists()):
        raise PenstockError(
            f"{folder} was made without --secure, and its data does not become secured by a flag: "
            "take another --data-dir, or see docs/guides/open-to-secured.md for the way there"
        )
    for name in _TAKEN:
        if name in overrides:
            raise PenstockError(f"-c {name} goes with listeners of your own; --secure has its own")


def secure_one(
    folder: Path, port: int, controller_port: int, overrides: Mapping[str, str]
) -> tuple[int, dict[str, str]]:
    """Makes a single node a secured one, formatted if it is new; answers with its port and what it runs with."""
    from penstock.certificates.cluster_secrets import overridden
    from penstock.certificates.files import private_directory
    from penstock.certificates.local import LocalSecurity
    from penstock.certificates.node_settings import Ports
    from penstock.model.config import BrokerSettings
    from penstock.server.launch import DEV_NODE_ID, dev_properties, format_node, settings_of
    from penstock.storage.files import DiskFiles
    from penstock.storage.meta_properties import read_meta_properties

    # Files name the port before the node has it, and only this node dials the other one.
    clients, replication = (port, free_ports(1)[0]) if port else free_ports(2)
    given = dev_properties(str(folder), port=clients, overrides=overrides, controller_ports=(controller_port,))
    data = BrokerSettings.load(given).metadata_log_dir
    known = read_meta_properties(DiskFiles(), data)
    security = LocalSecurity(folder)
    cluster_id = security.prepare_nodes([DEV_NODE_ID], None if known is None else known.cluster_id)
    security.secrets.make()
    ports = Ports(clients, replication, controller_port)
    secured = overridden(security.settings(cluster_id, DEV_NODE_ID, ports), overrides)
    if known is None:
        private_directory(Path(data))
        records = security.first_user([f"{HOST}:{clients}"])
        format_node(settings_of({**given, **secured}), cluster_id, ignore_formatted=True, records=records)
    return clients, secured


def announce(folder: Path, bootstrap: str) -> None:
    """What to paste into which client. The password itself stays in its files."""
    from penstock.certificates.local import LocalSecurity

    security = LocalSecurity(folder)
    if not security.reach(bootstrap.split(",")):
        click.echo(f"  user        {security.admin.java} is gone, and with it the password of admin")
        return
    java, librdkafka = security.admin.java, security.admin.librdkafka
    click.echo(f"  user        admin, whose password is in {java}")
    click.echo(f"  CA          {security.admin.trusted}")
    click.echo(f"              SHA-256 {security.fingerprint}")
    click.echo(f"  Java        kafka-topics.sh --list --bootstrap-server {bootstrap} --command-config {java}")
    click.echo(f"  librdkafka  kcat -L -F {librdkafka}")
    click.echo(f'  Python      from penstock import Admin, Consumer, Producer; Producer(client_config="{java}")')
