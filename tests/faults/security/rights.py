"""What somebody may do and how somebody logs in, changed again and again; and whether every node knows it as it is.

A change whose answer got lost is asked for again until it is answered: then it is known what holds. What nodes make of
it is looked at when the cluster is whole and all have followed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from penstock.blocking import Admin
from penstock.client.admin.acls import Acl, AclFilter
from penstock.client.admin.scram_users import ScramPassword
from penstock.client.admin.session import Results
from penstock.client.errors import AuthenticationFailed, ClientError
from tests.compat.batches import Record, encode_batch
from tests.compat.cluster import ClusterNode
from tests.compat.wire import produce_reply, produce_request
from tests.faults.security.cluster import ADMIN, TURNCOAT, SecuredCluster
from tests.faults.security.entry import Person, SecuredConnection
from tests.patience import Patience, TimedOut, within

log = logging.getLogger(__name__)

FAVOURS = "favours"
"""The topic that the turncoat may write to, or not."""
KEEPER = "keeper"
"""The user whose password changes."""
NOT_YOURS = 29
HEARD_S = 60.0
_WRITE = Acl(f"User:{TURNCOAT.name}", "write", "topic", FAVOURS)


class Rights:
    def __init__(self, cluster: SecuredCluster) -> None:
        self._cluster = cluster
        self._turn = threading.Lock()
        self.may_write = False
        self.passwords = [f"{KEEPER}-0"]
        """The last one is good."""
        self.changes: Counter[str] = Counter()
        self._ask(lambda admin: admin.alter_scram_users([ScramPassword(KEEPER, self.passwords[-1])]))

    # -- changing

    def change_acl(self) -> None:
        """The turncoat may write from now on, or not any more."""
        with self._turn:
            if self.may_write:
                which = AclFilter(principal=_WRITE.principal, resource="topic", name=FAVOURS, pattern="literal")
                self._ask(lambda admin: admin.delete_acls([which]))
            else:
                self._ask(lambda admin: admin.create_acls([_WRITE]))
            self.may_write = not self.may_write
            self.changes["ACLs"] += 1

    def change_password(self) -> None:
        with self._turn:
            password = f"{KEEPER}-{len(self.passwords)}"
            self._ask(lambda admin: admin.alter_scram_users([ScramPassword(KEEPER, password)]))
            self.passwords.append(password)
            self.changes["passwords"] += 1

    def _ask(self, change: Callable[[Admin], Results[Any, Any]]) -> None:
        patience = Patience(HEARD_S)
        while True:
            try:
                with Admin(
                    bootstrap_servers=self._cluster.bootstrap,
                    request_timeout_ms=within(3_000),
                    default_api_timeout_ms=within(6_000),
                    **self._cluster.login(ADMIN).own,
                ) as admin:
                    change(admin).checked()
                return
            except (ClientError, TimeoutError) as unheard:
                if patience.over():
                    raise TimedOut(f"not heard within {HEARD_S:.0f} s") from unheard
                log.info("not heard: %s", unheard)

    # -- looking

    def check(self) -> None:
        """Of a cluster that is whole, all of whose nodes have followed."""
        with self._turn:
            for node in self._cluster.nodes.values():
                self._check_acl(node)
                assert self._lets_in(node, self.passwords[-1]), f"node {node.node_id} does not know the new password"
                for old in self.passwords[-2:-1]:
                    assert not self._lets_in(node, old), f"node {node.node_id} believes the old password still"

    def _check_acl(self, node: ClusterNode) -> None:
        batch = encode_batch([Record(b"a favour")], base_timestamp_ms=int(time.time() * 1000))
        where = (node.host.address, node.host.port, self._cluster.trusting(), TURNCOAT)
        with SecuredConnection(*where, timeout_s=10) as connection:
            error = produce_reply(connection.call(produce_request(FAVOURS, 0, batch, acks=-1))).error
        right = "may" if self.may_write else "may not"
        assert (error != NOT_YOURS) == self.may_write, f"the turncoat {right}, and node {node.node_id} answers {error}"

    def _lets_in(self, node: ClusterNode, password: str) -> bool:
        own = self._cluster.login(Person(KEEPER, password)).own
        try:
            with Admin(bootstrap_servers=node.address, default_api_timeout_ms=within(10_000), **own) as admin:
                admin.topics()
        except AuthenticationFailed:
            return False
        return True
