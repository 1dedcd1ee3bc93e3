"""A renewed certificate takes the old one's place only if it is the same node's; files are looked at, ends are told."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.transport.tls.failures import Kind, TlsFailure
from penstock.transport.tls.material import identity_of, load_material, stamps_of
from penstock.transport.tls.reload import Identity, Material, days_left, expired, looks_changed, objection, warning_due
from penstock.transport.tls.settings import BadTls, TlsSettings
from penstock.transport.tls.trial import try_handshake
from tests.unit.transport.tls.world import (
    HOST,
    authority,
    certificate_of,
    chain_text,
    client_context,
    der_of,
    key_text,
    leaf,
    server_context,
    settings,
    shown_by,
    trusting,
    write_private,
)

DAY_MS = 86_400_000
NOW_MS = int(datetime.now(UTC).timestamp() * 1_000)
NAMES = frozenset({"DNS:a", "DNS:b"})


def material(subject: bytes = b"me", names: frozenset[str] = NAMES, ends_ms: int = NOW_MS + DAY_MS) -> Material:
    loaded = load_material(settings(**shown_by(leaf()), **trusting()))
    return replace(loaded, identity=Identity(subject, names, ends_ms))


def allowing(**given: bool) -> TlsSettings:
    return replace(settings(), **given)


def test_the_same_subject_and_at_least_the_old_names_are_enough() -> None:
    assert objection(material(), material(), allowing(), now_ms=NOW_MS) == ""
    assert objection(material(), material(names=NAMES | {"IP:1.2.3.4"}), allowing(), now_ms=NOW_MS) == ""


def test_another_subject_and_fewer_names_need_to_be_allowed() -> None:
    assert "another subject" in objection(material(), material(subject=b"you"), allowing(), now_ms=NOW_MS)
    assert objection(material(), material(subject=b"you"), allowing(allow_dn_changes=True), now_ms=NOW_MS) == ""
    fewer = material(names=frozenset({"DNS:b"}))
    assert "lacks DNS:a" in objection(material(), fewer, allowing(), now_ms=NOW_MS)
    assert objection(material(), fewer, allowing(allow_san_changes=True), now_ms=NOW_MS) == ""
    assert objection(material(), fewer, allowing(allow_dn_changes=True), now_ms=NOW_MS) != ""


def test_a_certificate_that_has_ended_takes_no_place_but_keeps_its_own() -> None:
    renewed = authority().issue_cert(HOST)
    read = settings(**shown_by(renewed), **trusting())
    old, other = material(), replace(material(ends_ms=NOW_MS), key_store=load_material(read).key_store)
    assert objection(old, other, allowing(), now_ms=NOW_MS) == "the new certificate has ended"
    assert objection(old, other, allowing(), now_ms=NOW_MS - 1) == ""
    assert objection(other, other, allowing(), now_ms=NOW_MS) == ""


def test_a_store_is_neither_added_nor_taken_away() -> None:
    whole = material()
    without_keys = replace(whole, key_store=None, identity=None)
    without_trust = replace(whole, trust_store=None)
    for without in (without_keys, without_trust):
        assert "cannot be added" in objection(without, whole, allowing(), now_ms=NOW_MS)
        assert "cannot be taken" in objection(whole, without, allowing(), now_ms=NOW_MS)


def test_an_identity_is_what_the_certificate_says() -> None:
    both = leaf("b.example", "10.0.0.7", common_name="x")
    found = identity_of(der_of(both))
    assert found.subject == certificate_of(both).subject.public_bytes()
    assert found.alternative_names == {"DNS:b.example", "IP:10.0.0.7"}
    assert found.not_after_ms == certificate_of(both).not_valid_after_utc.timestamp() * 1000


def test_what_cannot_be_read_has_no_identity() -> None:
    with pytest.raises(BadTls):
        identity_of(b"\x30\x00")


# When to look, and when to warn.


def test_a_file_that_was_written_or_replaced_is_seen_and_one_that_is_away_is_waited_for(tmp_path: Path) -> None:
    path = str(tmp_path / "keys.pem")
    Path(path).write_text("one")
    before = stamps_of([path])
    assert not looks_changed(before, stamps_of([path]))
    Path(path).write_text("longer")
    written = stamps_of([path])
    assert looks_changed(before, written)
    os.unlink(path)
    assert not looks_changed(written, stamps_of([path]))
    Path(path).write_text("longer")
    assert looks_changed(written, stamps_of([path]))


def test_a_link_that_points_elsewhere_now_is_seen(tmp_path: Path) -> None:
    """Kubernetes swaps a link to a directory; the path itself stays as it is."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "keys.pem").write_text("same")
        os.utime(tmp_path / name / "keys.pem", ns=(5, 5))
    (tmp_path / "now").symlink_to("one")
    path = str(tmp_path / "now" / "keys.pem")
    before = stamps_of([path])
    (tmp_path / "next").symlink_to("two")
    os.replace(tmp_path / "next", tmp_path / "now")
    assert looks_changed(before, stamps_of([path]))


@given(st.integers(-5, 60), st.integers(0, DAY_MS - 1))
def test_days_left_are_whole_days(days: int, of_day_ms: int) -> None:
    identity = Identity(b"", frozenset(), 100 * DAY_MS)
    now_ms = 100 * DAY_MS - days * DAY_MS - of_day_ms
    assert days_left(identity, now_ms) == days
    assert expired(identity, now_ms) == (days * DAY_MS + of_day_ms <= 0)


def test_an_end_is_warned_of_once_at_each_threshold() -> None:
    identity = Identity(b"", frozenset(), 100 * DAY_MS)
    warned: int | None = None
    told = []
    for hour in range(100 * 24 + 48):
        due = warning_due(identity, hour * 3_600_000, warned)
        if due is not None:
            told.append((hour, due))
            warned = due
    assert told == [(70 * 24 + 1, 30), (93 * 24 + 1, 7), (99 * 24 + 1, 1), (100 * 24, 0)]


def test_a_node_that_starts_late_warns_of_the_nearest_threshold_only() -> None:
    identity = Identity(b"", frozenset(), 5 * DAY_MS)
    assert warning_due(identity, 0, None) == 7
    assert warning_due(identity, 0, 7) is None


# The whole of it, with files.


def test_a_renewed_file_of_the_same_node_is_taken_and_a_strangers_is_not(tmp_path: Path) -> None:
    path = tmp_path / "node.pem"
    write_private(path, chain_text(leaf()) + key_text(leaf()))
    read = settings(keystore_location=str(path), **trusting())
    old = load_material(read)
    renewed = authority().issue_cert(HOST, organization_unit_name=unit_of(old))
    write_private(path, chain_text(renewed) + key_text(renewed))
    new = load_material(read)
    assert new.key_store != old.key_store
    assert objection(old, new, read, now_ms=NOW_MS) == ""
    stranger = authority().issue_cert("stranger.example")
    write_private(path, chain_text(stranger) + key_text(stranger))
    assert objection(old, load_material(read), read, now_ms=NOW_MS) != ""


def unit_of(loaded: Material) -> str:
    """The test authority draws a unit for every certificate; a renewed one has the old one's."""
    from cryptography.x509 import load_der_x509_certificate
    from cryptography.x509.oid import NameOID

    assert loaded.key_store is not None
    subject = load_der_x509_certificate(loaded.key_store.chain[0]).subject
    return str(subject.get_attributes_for_oid(NameOID.ORGANIZATIONAL_UNIT_NAME)[0].value)


def test_a_trial_says_which_side_objects() -> None:
    mutual = {"client_auth": "required"}
    try_handshake(server_context(**mutual, **trusting()), client_context(leaf("node-1")), HOST)
    with pytest.raises(TlsFailure, match="server's certificate is not trusted") as found:
        try_handshake(server_context(leaf(by="others")), client_context(), HOST)
    assert found.value.kind is Kind.UNTRUSTED
    with pytest.raises(TlsFailure, match="client's certificate is not trusted"):
        try_handshake(server_context(**mutual, **trusting("others")), client_context(leaf("node-1")), HOST)


def test_the_end_of_a_certificate_is_told_in_milliseconds() -> None:
    ends = datetime.fromtimestamp(identity_of(der_of(leaf())).not_after_ms / 1000, UTC)
    assert ends - datetime.now(UTC) > timedelta(days=1)
