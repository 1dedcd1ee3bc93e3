"""What holes in Kafka, its clients and Redpanda have taught. Each is a test by its number, here or by its module."""

from __future__ import annotations

import asyncio
import re
import struct
from pathlib import Path

import lz4.block
import pytest

from penstock import Producer
from penstock.client.errors import TimedOutWaiting
from penstock.model.config import BadSettings
from penstock.model.secret import Secret
from penstock.protocol.compression import LZ4, decompress
from penstock.protocol.frame import encode_response_parts, read_request_header
from penstock.protocol.messages.api_versions import ApiVersionsResponse
from penstock.protocol.wire import Malformed
from penstock.server.reception.listener import BadListeners, Listeners
from penstock.server.reception.logins import Logins
from penstock.testing import broker
from penstock.transport.dial import FIRST_REPLY_BYTES_MAX, LinkError
from penstock.transport.dial_security import DialSecurity
from penstock.transport.intake import Intake
from penstock.transport.login import password_credentials
from penstock.transport.net import AsyncioNet
from tests.patience import until
from tests.unit.client.producer.scene import read_all
from tests.unit.server.reception.test_logins import LISTENERS
from tests.unit.server.served import settings_with
from tests.unit.transport.pairs import Recorder, on_loop

LESSONS = {
    "cve_2018_1288": "replica ids that consumers made up",
    "cve_2021_38153": "passwords compared character by character",
    "cve_2022_34917": "memory for those who have not logged in",
    "cve_2023_25194": "login modules that look things up elsewhere",
    "cve_2025_27818": "the same through LDAP",
    "cve_2025_27819": "the same through a config that is changed",
    "cve_2023_34455": "a little snappy that becomes much",
    "cve_2025_12183": "lz4 that reads beyond what was given",
    "cve_2025_66566": "lz4 that shows what was in memory before",
    "cve_2024_27309": "ACLs lost while another was removed",
    "cve_2024_31141": "references in configs that others sent",
    "cve_2024_56128": "a nonce that nobody compared",
    "cve_2025_27817": "addresses of token endpoints: files, other people's servers",
    "cve_2026_33557": "tokens whose signature nobody checked",
    "cve_2026_33558": "secrets in the text of requests",
    "cve_2026_35554": "a buffer that went to another topic",
    "cve_2026_10143": "a server that asks its clients for years of work",
    "ghsa_m3px_q5gj_j9x7": "a server that has its clients reserve memory",
    "cve_2023_50976": "APIs of transactions that asked nobody",
    "cve_2023_30450": "settings of TLS that were passed over",
    "cve_2023_24619": "passwords in logs",
}


def test_every_lesson_has_a_test_by_its_name() -> None:
    tests = Path(__file__).parents[2]
    named = re.compile(r"^(?:async )?def test_((?:(?:cve_\d+_\d+|ghsa_\w{4}_\w{4}_\w{4})_)+)", re.MULTILINE)
    found = {
        number
        for path in tests.rglob("test_*.py")
        for numbers in named.findall(path.read_text())
        for number in re.findall(r"cve_\d+_\d+|ghsa_\w{4}_\w{4}_\w{4}", numbers)
    }
    assert set(LESSONS) - found == set()


# What a config may name


def test_cve_2025_27819_a_config_that_is_changed_loads_no_module(caplog: pytest.LogCaptureFixture) -> None:
    logins = Logins(settings_with(**LISTENERS), "CLIENTS")
    lookup = "com.sun.security.auth.module.JndiLoginModule required user.provider.url='ldap://127.0.0.1:1/x';"
    changed = settings_with(**{**LISTENERS, "listener_name_clients_plain_sasl_jaas_config": lookup})
    assert logins.settings_changed(changed) == set(), "nobody is cut"
    assert logins._users.accepts("alice", "wonder"), "the users are those that there were"
    assert "goes on with the users it has" in caplog.text
    assert "ldap://" not in caplog.text


@pytest.mark.parametrize("name", ["ssl_keystroe_location", "ssl_client_auht", "listener_name_tls_ssl_client_auht"])
def test_cve_2023_30450_a_setting_of_tls_that_is_misspelled_is_not_passed_over(name: str) -> None:
    with pytest.raises(BadSettings, match=name.replace("_", ".").rpartition(".ssl.")[2]):
        settings_with(**{name: "required"})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"ssl_keystore_location": "/nowhere/node.pem"},
        {"listener_name_plaintext_ssl_keystore_location": "/nowhere/node.pem"},
    ],
    ids=["no key", "no such file", "of another listener"],
)
def test_cve_2023_30450_a_listener_of_tls_without_a_key_does_not_start_in_the_clear(changes: dict[str, str]) -> None:
    listeners = {
        "listeners": "TLS://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener_security_protocol_map": "TLS:SSL,CONTROLLER:PLAINTEXT",
        "inter_broker_listener_name": "TLS",
    }
    with pytest.raises(BadListeners, match="TLS"):
        Listeners(settings_with(**listeners, **changes))


# What is unpacked


def lz4_frame(block: bytes) -> bytes:
    """One block of up to 64 KB, as it is, in a frame without checksums; 0x82 is the header's own."""
    return struct.pack("<IBBB", 0x184D2204, 0x60, 0x40, 0x82) + struct.pack("<I", len(block)) + block + bytes(4)


def test_the_frame_of_these_tests_is_one() -> None:
    packed = lz4.block.compress(b"aaaa" * 100, store_size=False)
    assert decompress(LZ4, lz4_frame(packed), 400) == b"aaaa" * 100


@pytest.mark.parametrize(
    "block",
    [
        b"\x1fa\x02\x00" + b"\xff" * 20 + b"\x00" + b"\x50abcde",  # a match that begins before the data
        b"\x1fa\x00\x00\x50abcde",  # a match of what is not there yet
        b"\x0f\xff\xff" + b"\xff" * 20 + b"\x00" + b"\x50abcde",
        b"\xf0\xff\xff\xff\xff\xff",  # more literals than bytes
        b"\xf0\xff\xffabc",
        b"\x50ab",
    ],
)
def test_cve_2025_12183_cve_2025_66566_lz4_gives_nothing_that_was_not_packed(block: bytes) -> None:
    secret = b"what was in memory before" * 2_000
    assert decompress(LZ4, lz4_frame(lz4.block.compress(secret, store_size=False)), len(secret)) == secret
    del secret
    with pytest.raises(Malformed):
        decompress(LZ4, lz4_frame(block), 64 << 10)


# What clients trust


@pytest.mark.parametrize("at_login", [False, True], ids=["first reply", "reply to a login"])
@on_loop
async def test_ghsa_m3px_q5gj_j9x7_a_server_that_has_proved_nothing_gets_little_memory(at_login: bool) -> None:
    """Neither for what it announces nor for what it sends."""
    loop = asyncio.get_running_loop()
    peers: list[Recorder] = []
    sent = 0

    def answer(stream: Recorder, frame: bytearray) -> bool:
        nonlocal sent
        header, _ = read_request_header(frame)
        if at_login and header.request_api_key == 18:
            known = [
                ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=1) for key in (12, 17, 18, 36)
            ]
            reply = ApiVersionsResponse(api_keys=known)
            stream.send(encode_response_parts(header.correlation_id, reply, 18, header.request_api_version))
            return True
        sent = 32 << 20
        stream.send([struct.pack(">ii", 900 << 20, header.correlation_id), bytes(sent)])
        return True

    def accept() -> Recorder:
        peers.append(Recorder(loop, Intake(loop), 1 << 20))
        peers[-1].finishes = answer
        return peers[-1]

    net = AsyncioNet(loop)
    listening = await net.listen("127.0.0.1", 0, accept)
    credentials = password_credentials("SCRAM-SHA-256", "alice", Secret("wonder"))
    link = await net.dial("127.0.0.1", listening.port, 5_000, DialSecurity(None, credentials, asyncio.to_thread))
    try:
        with pytest.raises(LinkError, match=f"a frame of {900 << 20} bytes|announces {900 << 20} bytes"):
            await link.negotiate(timeout_ms=5_000)
        assert sent, "the server has sent what it could"
        assert link.frame_bytes_max == FIRST_REPLY_BYTES_MAX
        assert link._own is None
    finally:
        listening.close()
        link.abort()
        await until(lambda: all(peer.gone for peer in peers))


@on_loop
async def test_cve_2026_35554_what_was_given_up_is_not_sent_as_something_else() -> None:
    """Records time out while their request still waits to be written; their memory is nobody else's meanwhile."""
    with broker({"num.partitions": 1}) as node:
        settings = {"linger_ms": 0, "batch_size": 20_000, "request_timeout_ms": 300, "delivery_timeout_ms": 400}
        async with Producer(
            node.bootstrap_servers, retry_backoff_ms=5, retry_backoff_max_ms=20, **settings
        ) as producer:
            for topic in ("first", "second"):
                await producer.send(topic, f"{topic} 0".encode())
            with node.paused():
                given_up = [producer.send("first", b"first %d" % number + b"." * 9_000) for number in range(1, 400)]
                failures = await asyncio.gather(*given_up, return_exceptions=True)
                assert any(isinstance(failure, TimedOutWaiting) for failure in failures)
                later = [producer.send("second", b"second %d" % number + b"," * 9_000) for number in range(1, 100)]
            await asyncio.gather(*later, return_exceptions=True)
            report = await producer.send("second", b"second and last")
            assert report.topic == "second"
        for topic, other in (("first", b","), ("second", b".")):
            (found,) = await read_all(node.bootstrap_servers, topic)
            values = [bytes(record.value or b"") for record in found]
            assert len(values) >= 1
            assert [value for value in values if not value.startswith(topic.encode()) or other in value] == []
