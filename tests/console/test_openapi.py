"""The description of the API holds: whatever it allows, and what it does not, is answered as it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok
from schemathesis.generation.modes import GenerationMode

from penstock.blocking import Admin, Producer
from penstock.console.routes.declaring import declaration_of
from penstock.console.routes.openapi import description
from penstock.console.routes.table import TABLE
from penstock.testing import EmbeddedBroker, broker
from tests.console.running import RunningConsole, running, settings_for
from tests.patience import within

EXAMPLES = 4
STREAMS = {"/events", "/login/oidc", "/login/oidc/back"}
"""An endless answer, and ways to other sites."""
QUICK: dict[str, Any] = {"seconds": 0, "wait": 0}
"""What a request would only wait for."""


@pytest.fixture(scope="module")
def node() -> Iterator[EmbeddedBroker]:
    with broker(secure=True) as found:
        yield found


@pytest.fixture(scope="module")
def console(node: EmbeddedBroker) -> Iterator[RunningConsole]:
    with Admin(**node.client_settings) as admin:
        admin.create_topic("0", 1, 1)
    with Producer(**node.client_settings) as producer:
        producer.send("0", b'{"n": 1}')
    with running(settings_for(node.client_settings)) as found:
        yield found


def operations() -> list[str]:
    return [f"{method} {path}" for method, path, _ in TABLE if path not in STREAMS]


@pytest.fixture(scope="module")
def described(console: RunningConsole) -> dict[str, Any]:
    schema = schemathesis.openapi.from_dict(console.get("openapi.json"))
    schema.config.update(base_url=f"{console.address}api/v1")
    found = {}
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        found[f"{operation.method.upper()} {operation.path}"] = operation
    return found


def address(row: str) -> str:
    return row.replace(":path}", "}")


# Threads of the console draw random numbers too, which is no strategy's doing.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
@pytest.mark.parametrize("row", operations())
def test_what_is_described_is_what_is_served(described: dict[str, Any], row: str) -> None:
    operation = described[address(row)]
    strategy = operation.as_strategy(generation_mode=GenerationMode.POSITIVE) | operation.as_strategy(
        generation_mode=GenerationMode.NEGATIVE
    )

    @given(strategy)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any) -> None:
        case.query = {name: QUICK.get(name, value) for name, value in (case.query or {}).items()}
        response = case.call(timeout=within(30))
        case.validate_response(response, checks=[schemathesis.checks.not_a_server_error, *conforming()])

    ask()


def conforming() -> list[Any]:
    from schemathesis.specs.openapi import checks

    return [
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]


def test_every_route_is_described_with_a_sentence() -> None:
    told = description(TABLE, "/api/v1")
    assert json.dumps(told)
    listed = {(method.upper(), path) for path, methods in told["paths"].items() for method in methods}
    assert listed == {(method, address(path)) for method, path, _ in TABLE}
    assert [name for name, count in counted(told).items() if count > 1] == []


def counted(told: dict[str, Any]) -> dict[str, int]:
    names = [each["operationId"] for methods in told["paths"].values() for each in methods.values()]
    return {name: names.count(name) for name in names}


def test_what_can_be_looked_at_beforehand_says_so() -> None:
    """Whoever declares a preview has `dry_run` in its body, and nobody else."""
    for _, path, endpoint in TABLE:
        declared = declaration_of(endpoint)
        if declared.body is not None:
            assert ("dry_run" in declared.body.__struct_fields__) == declared.previews, path


def test_the_description_can_be_read(console: RunningConsole) -> None:
    reply = console.client.get("api/v1/")
    assert (reply.status_code, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    for path, methods in console.get("openapi.json")["paths"].items():
        for method in methods:
            assert f"{method.upper()} /api/v1{path}</code>" in reply.text
    assert "<script" not in reply.text
    styles = re.findall(r'href="(/assets/[^"]+\.css)"', reply.text)
    assert styles
    assert all(console.client.get(name.removeprefix("/")).is_success for name in styles)
