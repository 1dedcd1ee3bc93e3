"""What a login may do, by the cluster's own word."""

from __future__ import annotations

from penstock.blocking import Admin
from penstock.client.admin import Acl
from penstock.client.admin.scram_users import ScramPassword
from penstock.testing import broker


def test_each_login_is_told_of_itself() -> None:
    with broker(secure=True) as node, Admin(**node.client_settings) as admin:
        admin.alter_scram_users([ScramPassword("anna", "right and long enough")]).checked()
        for name in ("orders", "payments", "secret"):
            admin.create_topic(name, 1, 1)
        rules = [Acl("User:anna", "read", "topic", "orders"), Acl("User:anna", "describe", "topic", "payments")]
        admin.create_acls(rules).checked()
        anna = {**node.client_settings, "username": "anna", "password": "right and long enough"}
        with Admin(**anna) as hers:
            told = hers.rights(["orders", "payments", "secret", "absent"])
        assert told.cluster == frozenset()
        assert told.topics == {"orders": {"read", "describe"}, "payments": {"describe"}}
        assert told.on_topic("secret") == frozenset()
        all_of_it = admin.rights(["orders"])
        assert {"alter", "describe"} <= all_of_it.cluster
        assert {"read", "write", "alter"} <= all_of_it.on_topic("orders")
