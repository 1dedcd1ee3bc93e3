"""What the properties of a node say about one listener."""

from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.model.config import BrokerSettings
from penstock.server.securing import tls_settings
from penstock.transport.tls.settings import BadTls
from tests.unit.server.served import PROPERTIES

SECURED = {
    **PROPERTIES,
    "listeners": "IN://127.0.0.1:0,OUT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "listener.security.protocol.map": "IN:SSL,OUT:SASL_SSL,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "IN",
    "ssl.keystore.location": "/all.pem",
    "ssl.client.auth": "required",
    "listener.name.out.ssl.keystore.location": "/out.pem",
}


def settings(**changes: str) -> BrokerSettings:
    return BrokerSettings.load({**SECURED, **{name.replace("_", "."): value for name, value in changes.items()}})


def test_a_listener_takes_its_own_property_before_that_of_all() -> None:
    assert tls_settings(settings(), "IN").key_store.location == "/all.pem"
    assert tls_settings(settings(), "OUT").key_store.location == "/out.pem"


def test_a_default_is_not_taken_for_something_that_was_given() -> None:
    assert tls_settings(settings(), "IN").key_store.type is None
    assert tls_settings(settings(ssl_keystore_type="PEM"), "IN").key_store.type == "PEM"


def test_where_logins_tell_who_comes_only_the_listener_itself_can_ask_for_certificates() -> None:
    assert tls_settings(settings(), "IN").client_auth == "required"
    assert tls_settings(settings(), "OUT").client_auth == "none"
    own = settings(listener_name_out_ssl_client_auth="requested")
    assert tls_settings(own, "OUT").client_auth == "requested"


def test_a_dynamic_property_of_the_listener_counts() -> None:
    changed = settings().with_dynamic({}, {"listener.name.in.ssl.keystore.location": "/new.pem"})
    assert tls_settings(changed, "IN").key_store.location == "/new.pem"


def test_contradictions_are_named() -> None:
    with pytest.raises(BadTls, match="both given"):
        tls_settings(settings(ssl_keystore_key="x", ssl_keystore_certificate_chain="y"), "IN")


def test_who_reads_it_loads_no_tls() -> None:
    script = "import sys, penstock.server.securing; print([m for m in ('ssl', 'cryptography') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
