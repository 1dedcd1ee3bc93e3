"""A new authority in three steps: at no moment does anybody who did as told lose trust in anybody."""

from __future__ import annotations

import itertools
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.certificates import (
    Authority,
    BadCertificate,
    Issued,
    Role,
    Step,
    begin_rotation,
    create_authority,
    finish_rotation,
    issue_node,
    open_authority,
    renew,
    rotation_step,
    switch_rotation,
)
from penstock.model.secret import Secret
from penstock.transport.tls.contexts import dialling_context, listening_context
from penstock.transport.tls.failures import TlsFailure
from penstock.transport.tls.settings import read_settings
from penstock.transport.tls.stores import load_key_store, load_trust_store
from penstock.transport.tls.trial import try_handshake

NOW = datetime.now(UTC)
HOST = "a.example"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return create_authority(tmp_path / "ca", Role.CLUSTER, "cluster", now=NOW)


def contexts(issued: Issued, trusted: bytes) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A node's, for listening and for dialling."""
    pem = issued.pem.decode()
    given = {
        "ssl.keystore.key": Secret(pem),
        "ssl.keystore.certificate.chain": Secret(pem),
        "ssl.truststore.certificates": Secret(trusted.decode()),
        "ssl.client.auth": "required",
    }
    read = read_settings(given)
    stores = load_key_store(read.key_store), load_trust_store(read.trust_store)
    return listening_context(read, *stores), dialling_context(read, *stores)


def get_along(one: tuple[ssl.SSLContext, ssl.SSLContext], other: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    try_handshake(one[0], other[1], HOST)
    try_handshake(other[0], one[1], HOST)


def test_neighbouring_steps_always_get_along(authority: Authority) -> None:
    """A node that is one step behind or ahead, in what it trusts and what it shows, is still one of us."""
    old = issue_node(authority, 1, [HOST], now=NOW)
    stages = [contexts(old, authority.trusted_pem)]
    both = begin_rotation(authority, now=NOW)
    stages.append(contexts(old, both.trusted_pem))
    switched = switch_rotation(both)
    new = renew(switched, old.certificate, now=NOW)
    stages.append(contexts(new, switched.trusted_pem))
    finished = finish_rotation(switched, [new.certificate])
    stages.append(contexts(new, finished.trusted_pem))
    for one, other in itertools.pairwise(stages):
        get_along(one, one)
        get_along(one, other)
    with pytest.raises(TlsFailure):
        get_along(stages[0], stages[-1])


def test_where_a_rotation_stands_is_told_by_the_files(authority: Authority) -> None:
    def step() -> Step:
        return rotation_step(open_authority(authority.directory))

    assert step() is Step.NONE
    begin_rotation(authority, now=NOW)
    assert step() is Step.TRUSTING_BOTH
    assert open_authority(authority.directory).certificate == authority.certificate
    switch_rotation(open_authority(authority.directory))
    assert step() is Step.ISSUING
    finish_rotation(open_authority(authority.directory), [])
    assert step() is Step.NONE
    left = open_authority(authority.directory)
    assert left.certificate.subject.rfc4514_string() == "CN=Penstock cluster CA 2,O=cluster"
    assert sorted(path.name for path in authority.directory.iterdir()) == ["ca.key", "ca.pem"]


def test_steps_are_taken_in_their_order(authority: Authority) -> None:
    with pytest.raises(BadCertificate, match="follows on 'trusting both'"):
        switch_rotation(authority)
    with pytest.raises(BadCertificate, match="follows on 'issuing'"):
        finish_rotation(authority, [])
    both = begin_rotation(authority, now=NOW)
    with pytest.raises(BadCertificate, match="follows on 'none'"):
        begin_rotation(both, now=NOW)
    with pytest.raises(BadCertificate, match="follows on 'issuing'"):
        finish_rotation(both, [])


def test_the_old_authority_is_not_dropped_while_somebody_needs_it(authority: Authority) -> None:
    old = issue_node(authority, 7, [HOST], now=NOW)
    switched = switch_rotation(begin_rotation(authority, now=NOW))
    with pytest.raises(BadCertificate, match="CN=node-7,O=cluster was issued by the old authority"):
        finish_rotation(switched, [old.certificate])


def test_a_beginning_that_was_cut_short_can_be_made_again(authority: Authority) -> None:
    begin_rotation(authority, now=NOW)
    # As a kill between its two files leaves it.
    (authority.directory / "ca.pem").write_bytes(authority.trusted_pem)
    found = open_authority(authority.directory)
    assert rotation_step(found) is Step.NONE
    assert rotation_step(switch_rotation(begin_rotation(found, now=NOW))) is Step.ISSUING


def test_a_second_rotation_follows_the_first(authority: Authority) -> None:
    for generation in (2, 3):
        authority = finish_rotation(switch_rotation(begin_rotation(open_authority(authority.directory), now=NOW)), [])
        assert str(generation) in authority.certificate.subject.rfc4514_string()
