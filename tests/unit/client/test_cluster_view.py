"""Bootstrap addresses, and ports that are none of Kafka's."""

from __future__ import annotations

import asyncio
import re
import socket

import pytest

from penstock.client import cluster_view
from penstock.client.cluster_view import ClusterView, parse_bootstrap
from penstock.transport.dial import LinkError


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("a:1, b", [("a", 1), ("b", 9092)]),
        ("[::1]:9092,[::1]", [("::1", 9092), ("::1", 9092)]),
    ],
)
def test_addresses_are_host_and_port(text: str, addresses: list[tuple[str, int]]) -> None:
    assert parse_bootstrap(text) == addresses


@pytest.mark.parametrize("text", ["", "a:b", "a:0", "a:65536", ","])
def test_what_is_no_address_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="address"):
        parse_bootstrap(text)


@pytest.mark.parametrize("port", ["0", "65536", "99999"])
def test_a_port_that_is_out_of_range_is_told_so(port: str) -> None:
    with pytest.raises(ValueError, match="ports go from 1 to 65535"):
        parse_bootstrap(f"127.0.0.1:{port}")


def test_a_port_that_says_nothing_is_given_up_before_a_requests_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_view, "DIAL_TIMEOUT_MS", 300)

    async def ask(address: str) -> None:
        async with ClusterView(address, timeout_ms=600_000) as view:
            await view.metadata([])

    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(LinkError, match="within 300 ms") as caught:
            asyncio.run(ask(address))
    assert "is this a Kafka port?" in caught.value.why


@pytest.mark.parametrize(
    ("text", "better"),
    [
        ("http://localhost:9092", "localhost:9092"),
        ("kafka://a:1", "a:1"),
        ("b:2,PLAINTEXT://a:1/", "a:1"),
        ("SASL_SSL://[::1]:9092", "[::1]:9092"),
    ],
)
def test_what_stands_before_an_address_is_named_with_the_right_spelling(text: str, better: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"write {better}")):
        parse_bootstrap(text)
