"""Key stores and trust stores of every kind give the same things, and say by name what is wrong with them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
    serialize_key_and_certificates,
)

from penstock.transport.tls.settings import BadTls
from penstock.transport.tls.stores import STORE_BYTES_MAX, KeyStore, TrustStore, load_key_store, load_trust_store
from tests.unit.transport.tls.world import (
    authority,
    authority_text,
    certificate_of,
    chain_text,
    der_of,
    key_of,
    key_text,
    leaf,
    settings,
    shown_by,
    trusting,
    write_private,
)

STORES = Path(__file__).parent / "stores"
SECRET = "store-secret"


def pkcs8(secret: bytes | None = None) -> str:
    hiding: Any = form.NoEncryption() if secret is None else form.BestAvailableEncryption(secret)
    return key_of(leaf()).private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, hiding).decode()


def expected() -> KeyStore:
    key = key_of(leaf()).private_bytes(form.Encoding.DER, form.PrivateFormat.PKCS8, form.NoEncryption())
    return KeyStore((der_of(leaf()),), key)


def keys(**given: Any) -> KeyStore:
    loaded = load_key_store(settings(**given).key_store)
    assert loaded is not None
    return loaded


def trust(**given: Any) -> TrustStore:
    loaded = load_trust_store(settings(**given).trust_store)
    assert loaded is not None
    return loaded


def kept(folder: Path, name: str) -> str:
    """A store of this folder, as somebody has it who may have it."""
    return write_private(folder / name, (STORES / name).read_bytes())


def pkcs12(*, others: bool = True, secret: bytes = SECRET.encode()) -> bytes:
    from cryptography import x509

    ca = x509.load_pem_x509_certificate(authority().cert_pem.bytes())
    stranger = certificate_of(leaf("other.example", by="others"))
    cas = [stranger, ca] if others else None
    return serialize_key_and_certificates(
        b"node", key_of(leaf()), certificate_of(leaf()), cas, form.BestAvailableEncryption(secret)
    )


# Every kind.


def test_a_pem_file_holds_chain_and_key_in_either_order(tmp_path: Path) -> None:
    for text in (chain_text(leaf()) + key_text(leaf()), key_text(leaf()) + chain_text(leaf())):
        assert keys(keystore_location=write_private(tmp_path / "a.pem", text), keystore_type="PEM") == expected()


def test_words_around_the_blocks_of_a_pem_file_are_no_matter(tmp_path: Path) -> None:
    text = "Bag Attributes\n  friendlyName: größe\n" + chain_text(leaf()) + "\n\nsubject=x\n" + key_text(leaf())
    assert keys(keystore_location=write_private(tmp_path / "a.pem", text)) == expected()


def test_pem_text_in_properties_may_be_one_line() -> None:
    chain, key = (text.replace("\n", " ") for text in (chain_text(leaf()), pkcs8()))
    assert keys(keystore_key=key, keystore_certificate_chain=chain) == expected()
    anchors = trust(truststore_certificates=(authority_text() + authority_text("others")).replace("\n", " "))
    assert len(anchors.anchors) == 2


@pytest.mark.parametrize("shape", ["pkcs8", "traditional"])
def test_keys_are_read_as_pkcs8_and_as_openssl_wrote_them_before_it(shape: str) -> None:
    kind = {"pkcs8": form.PrivateFormat.PKCS8, "traditional": form.PrivateFormat.TraditionalOpenSSL}[shape]
    text = key_of(leaf()).private_bytes(form.Encoding.PEM, kind, form.NoEncryption()).decode()
    assert keys(keystore_key=text, keystore_certificate_chain=chain_text(leaf())) == expected()


def test_an_encrypted_key_wants_its_password() -> None:
    given = {"keystore_key": pkcs8(b"key-secret"), "keystore_certificate_chain": chain_text(leaf())}
    assert keys(**given, key_password="key-secret") == expected()
    with pytest.raises(BadTls, match=r"ssl\.key\.password is not given"):
        keys(**given)
    with pytest.raises(BadTls, match="password is wrong"):
        keys(**given, key_password="other")


def test_a_key_that_openssl_encrypted_in_its_old_way_is_read() -> None:
    hiding = form.BestAvailableEncryption(b"key-secret")
    text = key_of(leaf()).private_bytes(form.Encoding.PEM, form.PrivateFormat.TraditionalOpenSSL, hiding).decode()
    assert "Proc-Type" in text
    given = {"keystore_key": text, "keystore_certificate_chain": chain_text(leaf())}
    assert keys(**given, key_password="key-secret") == expected()
    with pytest.raises(BadTls, match="is not given"):
        keys(**given)


def test_a_password_for_a_key_in_the_clear_is_a_mistake() -> None:
    with pytest.raises(BadTls, match="is not encrypted"):
        keys(**shown_by(leaf()), key_password="x")


@pytest.mark.parametrize("said", [None, "PKCS12", "JKS"])
def test_a_pkcs12_store_gives_its_chain_in_order_and_nothing_that_is_not_of_it(
    tmp_path: Path, said: str | None
) -> None:
    path = write_private(tmp_path / "a.p12", pkcs12())
    store = keys(keystore_location=path, keystore_password=SECRET, keystore_type=said)
    ca = trust(**trusting()).anchors[0]
    assert store.key == expected().key
    assert store.chain == (der_of(leaf()), ca)


def test_stores_of_keytool_give_what_keytool_put_in(tmp_path: Path) -> None:
    certificate = (STORES / "node.der").read_bytes()
    jks = keys(keystore_location=kept(tmp_path, "keys.jks"), keystore_password=SECRET, key_password="key-secret")
    assert jks.chain == (certificate,)
    assert len(keys(keystore_location=kept(tmp_path, "keys.p12"), keystore_password=SECRET).chain) == 1
    for name in ("trust.jks", "trust.p12"):
        given = {"truststore_location": str(STORES / name), "truststore_password": SECRET}
        assert trust(**given).anchors == (certificate,)


def test_who_has_a_key_in_a_trust_store_vouches_for_its_own_certificate_only(tmp_path: Path) -> None:
    path = write_private(tmp_path / "a.p12", pkcs12())
    assert trust(truststore_location=path, truststore_password=SECRET).anchors == (der_of(leaf()),)
    jks = trust(truststore_location=str(STORES / "keys.jks"), truststore_password=SECRET)
    assert jks.anchors == ((STORES / "node.der").read_bytes(),)


def test_a_java_trust_store_as_others_write_it_is_read(tmp_path: Path) -> None:
    written = serialize_java_truststore(
        [PKCS12Certificate(certificate_of(leaf()), b"ca")], form.BestAvailableEncryption(SECRET.encode())
    )
    path = write_private(tmp_path / "t.p12", written)
    assert trust(truststore_location=path, truststore_password=SECRET).anchors == (der_of(leaf()),)


@pytest.mark.parametrize("make", [lambda: rsa.generate_private_key(65537, 2048), ed25519.Ed25519PrivateKey.generate])
def test_keys_of_every_common_kind_are_taken(make: Any) -> None:
    from tests.unit.transport.tls.made import self_signed

    key = make()
    certificate = self_signed(key)
    text = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()).decode()
    assert keys(keystore_key=text, keystore_certificate_chain=certificate).chain


# What is wrong with them.


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "no PEM, PKCS12 or JKS"),
        (b"nothing", "no PEM, PKCS12 or JKS"),
        (b"\xce\xce\xce\xce\0\0\0\2", "JCEKS"),
        (b"\x30\x03abc", "password is wrong, or it is damaged"),
        (b"\xfe\xed\xfe\xed\0\0\0\2", "no JKS store"),
    ],
)
def test_what_is_no_store_is_told_so(tmp_path: Path, data: bytes, word: str) -> None:
    path = write_private(tmp_path / "store", data)
    with pytest.raises(BadTls, match=word):
        keys(keystore_location=path, keystore_password="p")
    with pytest.raises(BadTls, match=word):
        trust(truststore_location=path, truststore_password="p")


def test_a_store_that_is_something_else_than_what_was_said_is_told_so(tmp_path: Path) -> None:
    pem = write_private(tmp_path / "a.pem", chain_text(leaf()) + key_text(leaf()))
    with pytest.raises(BadTls, match=r"type is JKS, but .* is PEM"):
        keys(keystore_location=pem, keystore_type="JKS", keystore_password="p")
    with pytest.raises(BadTls, match=r"type is PEM, but .* is JKS"):
        keys(keystore_location=kept(tmp_path, "keys.jks"), keystore_type="PEM")


def test_a_password_is_asked_for_once_the_content_has_told_what_the_store_is(tmp_path: Path) -> None:
    with pytest.raises(BadTls, match=r"a JKS store, but ssl\.keystore\.password"):
        keys(keystore_location=kept(tmp_path, "keys.jks"))
    pem = write_private(tmp_path / "a.pem", chain_text(leaf()) + key_text(leaf()))
    with pytest.raises(BadTls, match="is PEM, which has none"):
        keys(keystore_location=pem, keystore_password="p")
    with pytest.raises(BadTls, match="is PEM, which has none"):
        trust(truststore_location=pem, truststore_password="p")


@pytest.mark.parametrize("name", ["keys.jks", "keys.p12"])
def test_a_wrong_password_is_told_without_the_right_one(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadTls, match="password is wrong") as refusal:
        keys(keystore_location=kept(tmp_path, name), keystore_password="wrong-one")
    assert "wrong-one" not in str(refusal.value)


def test_a_key_of_another_certificate_is_refused() -> None:
    other = leaf("other.example")
    with pytest.raises(BadTls, match="not the key of the first certificate"):
        keys(keystore_key=key_text(other), keystore_certificate_chain=chain_text(leaf()))


def test_a_store_without_a_key_or_with_two_is_refused(tmp_path: Path) -> None:
    for text, word in (
        (chain_text(leaf()), "0 private keys"),
        (chain_text(leaf()) + 2 * key_text(leaf()), "2 private"),
    ):
        with pytest.raises(BadTls, match=word):
            keys(keystore_location=write_private(tmp_path / "a.pem", text))
    with pytest.raises(BadTls, match="no private key"):
        keys(keystore_location=kept(tmp_path, "trust.p12"), keystore_password=SECRET)
    with pytest.raises(BadTls, match="holds no private keys"):
        keys(keystore_location=kept(tmp_path, "trust.jks"), keystore_password=SECRET)


def test_a_trust_store_that_trusts_nobody_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTls, match="no certificate to trust"):
        trust(truststore_location=write_private(tmp_path / "a.pem", key_text(leaf())))
    with pytest.raises(BadTls, match="no certificate to trust"):
        trust(truststore_certificates="nothing")


def test_pem_that_is_no_base64_or_no_certificate_is_refused() -> None:
    for body, word in (("!!!", "no base64"), ("AAAA", "cannot be read")):
        with pytest.raises(BadTls, match=word):
            trust(truststore_certificates=f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----")


# Files.


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = write_private(tmp_path / "a.pem", chain_text(leaf()) + key_text(leaf()))
    for mode in (0o604, 0o602, 0o660, 0o644, 0o777):
        os.chmod(path, mode)
        with pytest.raises(BadTls, match=f"its mode is {mode:04o}"):
            keys(keystore_location=path)
    for mode in (0o600, 0o400, 0o700):
        os.chmod(path, mode)
        assert keys(keystore_location=path) == expected()


def test_a_group_may_read_what_belongs_to_root(tmp_path: Path) -> None:
    path = write_private(tmp_path / "a.pem", chain_text(leaf()) + key_text(leaf()))
    os.chmod(path, 0o640)
    if os.stat(path).st_uid == 0:
        assert keys(keystore_location=path) == expected()
        os.chown(path, 1234, -1)
    with pytest.raises(BadTls, match="others can get at it"):
        keys(keystore_location=path)


def test_a_trust_store_may_be_read_by_everybody(tmp_path: Path) -> None:
    path = write_private(tmp_path / "ca.pem", authority_text())
    os.chmod(path, 0o644)
    assert trust(truststore_location=path).anchors


def test_files_that_are_none_are_told_by_their_path(tmp_path: Path) -> None:
    with pytest.raises(BadTls, match="no such file"):
        keys(keystore_location=str(tmp_path / "nowhere"))
    with pytest.raises(BadTls, match="is no file"):
        trust(truststore_location=str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadTls, match="is no file"):
        keys(keystore_location=str(tmp_path / "pipe"))
    large = tmp_path / "large"
    large.write_bytes(b"")
    os.truncate(large, STORE_BYTES_MAX + 1)
    with pytest.raises(BadTls, match="more than 4 MB"):
        trust(truststore_location=str(large))


def test_nothing_secret_is_in_the_repr_of_a_store() -> None:
    store = expected()
    assert repr(store.key) not in repr(store)
    assert "key=" not in repr(store)


def test_a_client_that_only_trusts_pem_text_does_without_cryptography() -> None:
    import subprocess

    words = (
        "import sys; from penstock.transport.tls.settings import read_settings as read;"
        "from penstock.transport.tls.stores import load_trust_store, load_key_store;"
        "from penstock.transport.tls.contexts import dialling_context;"
        "s = read({'ssl.truststore.certificates': sys.stdin.read()});"
        "dialling_context(s, load_key_store(s.key_store), load_trust_store(s.trust_store));"
        "print('cryptography' in sys.modules)"
    )
    command = [sys.executable, "-c", words]
    said = subprocess.run(command, input=authority_text(), capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout == "False\n"
