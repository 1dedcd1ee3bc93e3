"""Fixtures of the compatibility tests: a node to judge, Kafka's tools pointed at it, Apache Kafka to compare with."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.compat.apache.node import ApacheKafka  # noqa: E402 (needs the path above)
from tests.compat.apache.tools import Tools  # noqa: E402
from tests.compat.judged import Penstock  # noqa: E402
from tests.compat.node import Node  # noqa: E402
from tests.coroutines import pytest_pyfunc_call  # noqa: E402

__all__ = ["pytest_pyfunc_call"]

NodeFactory = Callable[..., Node]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--target",
        choices=["penstock", "apache"],
        default="penstock",
        help="the node to judge; apache judges the tests themselves",
    )


def target_class(config: pytest.Config) -> type[Node]:
    return ApacheKafka if config.getoption("--target", default="penstock") == "apache" else Penstock


@pytest.fixture(scope="session")
def judged_is_apache(pytestconfig: pytest.Config) -> bool:
    return target_class(pytestconfig) is ApacheKafka


@pytest.fixture(scope="session")
def node(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """The node to judge, shared by all tests that only need topics of their own."""
    with target_class(pytestconfig)(tmp_path_factory.mktemp("node")) as started:
        yield started


@pytest.fixture
def make_node(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[NodeFactory]:
    """Starts a node to judge (`make_node("a")`) or Apache Kafka (`make_node("b", apache=True)`), each in its home."""
    started: list[Node] = []

    def make(name: str, *, apache: bool = False, properties: Mapping[str, str] | None = None) -> Node:
        kind = ApacheKafka if apache else target_class(pytestconfig)
        made = kind(tmp_path / name, properties=properties)
        started.append(made)
        return made.start()

    yield make
    for each in started:
        each.kill()


@pytest.fixture(scope="session")
def bootstrap(node: Node) -> str:
    return node.bootstrap


@pytest.fixture(scope="session")
def tools(bootstrap: str) -> Tools:
    return Tools(bootstrap)


_numbers = itertools.count(1)


@pytest.fixture
def topic() -> str:
    """A name that no other test uses."""
    return f"topic-{next(_numbers)}"
