"""Another site can neither read nor change anything through a browser that can reach this console."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from penstock.console.settings import ConsoleRefused, ConsoleSettings
from penstock.testing import EmbeddedBroker, broker
from tests.console.running import RunningConsole, cluster_address, running, settings_for


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedBroker]:
    with broker(secure=True) as found:
        yield found


JSON = {"content-type": "application/json"}


def told(console: RunningConsole, method: str = "POST", **headers: str) -> tuple[int, str]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    reply = console.client.request(method, "api/v1/nothing", content=b"{}", headers=named)
    return reply.status_code, reply.json()["error"]["code"]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "[::1", "localhost@evil"]
)
def test_a_name_that_somebody_pointed_here_is_not_answered(console: RunningConsole, host: str) -> None:
    reply = console.client.get("api/v1/session", headers={"host": host})
    assert reply.status_code == (421 if host else 400) or reply.status_code == 421
    assert "clusters" not in reply.text


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8080", "LOCALHOST"])
def test_the_loopback_has_many_names(console: RunningConsole, host: str) -> None:
    assert console.client.get("api/v1/session", headers={"host": host}).status_code == 200


def test_a_form_of_another_site_changes_nothing(console: RunningConsole) -> None:
    assert told(console, content_type="text/plain") == (403, "csrf")
    assert told(console, content_type="application/x-www-form-urlencoded") == (403, "csrf")
    assert told(console, content_type="application/json", origin="https://evil.example") == (403, "csrf")
    assert told(console, content_type="application/json", origin="null") == (403, "csrf")
    assert told(console, content_type="application/json", sec_fetch_site="cross-site", x_penstock="1") == (403, "csrf")
    assert told(console, content_type="application/json", origin="http://localhost:3000") == (403, "csrf")
    assert told(console, content_type="application/json", cookie="a=b") == (403, "csrf")


@pytest.mark.parametrize("path", ["session", "topics", "groups/g/explain?seconds=30", "nothing"])
def test_a_page_of_another_site_has_nothing_asked_for_it(console: RunningConsole, path: str) -> None:
    """It could read no answer, but have brokers work for half a minute."""
    for site in ("cross-site", "same-site"):
        reply = console.client.get(f"api/v1/{path}", headers={"sec-fetch-site": site})
        assert (reply.status_code, reply.json()["error"]["code"]) == (403, "csrf")
    assert console.client.get("topics", headers={"sec-fetch-site": "cross-site"}).status_code == 200, "a link"
    assert console.client.get("api/v1/session", headers={"sec-fetch-site": "none"}).status_code == 200


def test_where_nobody_logs_in_nobody_is_asked_to(secured: EmbeddedBroker) -> None:
    """The console's own login is wrong. A page that asked for another would have no form for it."""
    own = {**secured.client_settings, "password": "no longer right"}
    with running(settings_for(own), ready_path="") as console:
        for path in ("topics/orders", "topics/orders/access", "groups/g"):
            assert console.refusal(path) == (503, "own_login")
        told = console.client.get("api/v1/overview").json()["error"]
        assert told["code"] in ("starting", "own_login")


def test_a_page_of_our_own_and_a_script_get_through(console: RunningConsole) -> None:
    own = {"origin": console.address.rstrip("/"), "sec_fetch_site": "same-origin", "x_penstock": "1"}
    assert told(console, content_type="application/json", **own) == (404, "not_found")
    assert told(console, content_type="application/json") == (404, "not_found")


def test_a_body_has_a_bound_whether_its_length_is_told_or_not(console: RunningConsole) -> None:
    large = b" " * ((1 << 20) + 1)
    reply = console.client.post("api/v1/nothing", content=large, headers=JSON)
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "too_large")


def test_every_answer_says_what_a_page_may_load(console: RunningConsole) -> None:
    for path in ("api/v1/session", "api/v1/nothing", "topics", "assets/none.js"):
        headers = console.client.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_read_only_and_below_a_path(node: EmbeddedBroker) -> None:
    settings = settings_for(node.client_settings, read_only=True, base_path="/kafka", hosts=("console.example",))
    with running(settings) as console:
        assert console.refusal("topics", "POST", {"name": "new"}) == (403, "read_only")
        assert console.send("POST", "topics", {"name": "new", "dry_run": True})["plan"]
        session = console.client.get("api/v1/session", headers={"host": "console.example"}).json()
        assert (session["base_path"], session["read_only"]) == ("/kafka", True)
        bare = console.address.removesuffix("kafka/") + "api/v1/session"
        assert httpx.get(bare).status_code == 200, "a proxy that takes the path off is served too"


def test_a_prefix_that_a_proxy_took_off_is_told_back(console: RunningConsole) -> None:
    def base(prefix: str) -> str:
        reply = console.client.get("api/v1/session", headers={"x-forwarded-prefix": prefix})
        return str(reply.json()["base_path"])

    assert base("/kafka") == "/kafka"
    assert base("/a/b/") == "/a/b"
    assert base('/"><script>') == ""
    assert base("//evil.example") == ""
    assert base("/../x") == ""


def test_beyond_the_loopback_it_does_not_start_without_a_login() -> None:
    clusters = (cluster_address({"bootstrap_servers": "localhost:9092"}),)
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.com"):
        with pytest.raises(ConsoleRefused, match=r"listen on 127\.0\.0\.1"):
            ConsoleSettings(clusters, host=host)
    assert ConsoleSettings(clusters, host="::1").host == "::1"
    with pytest.raises(ConsoleRefused, match="two clusters have one name"):
        ConsoleSettings(clusters * 2)
    with pytest.raises(ConsoleRefused, match="no path to serve below"):
        ConsoleSettings(clusters, base_path="kafka/")
