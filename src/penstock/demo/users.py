"""Users of the demo: the agent and the pipeline have one each, with the rights that it needs and no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.agent.exactly.topic import TOPIC as POSITIONS_TOPIC
from penstock.certificates.client_files import MECHANISM, ClientFiles, new_password
from penstock.client.admin import Acl, Admin, ScramPassword
from penstock.demo.nodes import Nodes
from penstock.demo.plan import AGENT, LETTERS, MINUTES, PIPELINE, TOPIC
from penstock.model.secret import Secret
from penstock.spark.naming import DECISIONS_TOPIC, GROUP_PREFIX, INTERNAL_TOPIC
from penstock.spark.topic_sink.transactions.names import PREFIX

RIGHTS: Final = {
    AGENT: {
        ("topic", TOPIC): ("write", "describe"),
        ("topic", POSITIONS_TOPIC): ("create", "read", "write", "describe", "describe_configs"),
        ("transactional_id", f"penstock-agent/{AGENT}/*"): ("write", "describe"),
    },
    PIPELINE: {
        ("topic", TOPIC): ("read",),
        ("topic", LETTERS): ("write",),
        ("topic", MINUTES): ("write",),
        ("topic", INTERNAL_TOPIC): ("create", "read", "write"),
        ("topic", DECISIONS_TOPIC): ("create", "read", "write"),
        ("group", f"{GROUP_PREFIX}{PIPELINE}-*"): ("read",),
        ("transactional_id", f"{PREFIX}*"): ("write", "describe"),
    },
}
"""By user and resource; a name that ends with a star means all that begin so. Other topics of ours that begin with two
underscores open to nobody who is not named for them."""


def acls() -> Iterator[Acl]:
    for user, rights in RIGHTS.items():
        for (kind, name), operations in rights.items():
            pattern = "prefixed" if name.endswith("*") else "literal"
            for operation in operations:
                yield Acl(f"User:{user}", operation, kind, name.removesuffix("*"), pattern)


async def admit(admin: Admin, nodes: Nodes) -> None:
    """Makes the users, allows them what they need, and writes the files that they log in with."""
    passwords: dict[str, Secret] = {user: new_password() for user in RIGHTS}
    changes = [ScramPassword(user, password.reveal(), MECHANISM) for user, password in passwords.items()]
    (await admin.alter_scram_users(changes)).checked()
    (await admin.create_acls(list(acls()))).checked()
    for user, password in passwords.items():
        ClientFiles(nodes.security, user).write(nodes.bootstrap.split(","), password)
