from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from penstock.client.consumer.engine import Engine
from penstock.client.method_reference import BLOCKING, CLIENTS, answers, methods_of
from penstock.client.producer import Producer
from penstock.client.reference import reference_page
from penstock.client.settings import AdminSettings, CommonSettings, ConsumerSettings, ProducerSettings

DOCS = Path(__file__).parents[3] / "docs"
PAGE, GUIDE = DOCS / "reference" / "client.md", DOCS / "guides" / "client.md"


def test_the_reference_page_is_what_the_tables_print() -> None:
    assert PAGE.read_text() == reference_page(), "run: make docs"


@pytest.mark.parametrize("settings", [ProducerSettings, ConsumerSettings, AdminSettings])
def test_every_setting_has_a_line(settings: type[CommonSettings]) -> None:
    page = reference_page()
    assert [setting.name for setting in fields(settings) if f"\n| `{setting.name}` |" not in page] == []


def test_the_delivery_timeout_says_what_comes_before_it() -> None:
    (line,) = [line for line in reference_page().splitlines() if line.startswith("| `delivery_timeout_ms` |")]
    assert "max_block_ms" in line
    assert "everything" not in line


def test_the_guide_names_every_number_that_metrics_gives() -> None:
    producer = Producer().metrics()
    consumer = Engine(ConsumerSettings.of({"group_id": "g"})).measures()
    guide = GUIDE.read_text()
    assert [name for name in [*producer, *consumer] if f"`{name}`" not in guide] == []


@pytest.mark.parametrize("module", [CLIENTS["Producer"], BLOCKING["Producer"]])
def test_what_is_declared_of_send_is_what_the_kernel_says_and_takes(module: str) -> None:
    """The declaration is for readers, and never runs: what `help` shows is the kernel's."""
    (declared,) = [method for method in methods_of(module, "Producer") if method.name == "send"]
    send = vars(importlib.import_module(module))["Producer"].send
    assert (inspect.getdoc(send) or "").endswith(declared.contract)  # Cython puts the signature before it
    named = re.findall(r"(\w+): ", declared.call.partition(" -> ")[0])
    assert named == list(inspect.signature(send).parameters)[1:]


PUBLIC = [*CLIENTS.items(), *BLOCKING.items(), *((name, module) for module, name in answers())]


@pytest.mark.parametrize(("name", "module"), PUBLIC)
def test_every_public_class_and_method_says_what_it_promises(name: str, module: str) -> None:
    found = importlib.import_module(module)
    assert (vars(found)[name].__doc__ or "").strip()
    untold = [method.name for method in methods_of(module, name) if not method.contract and method.name != "__init__"]
    assert untold == []


@pytest.mark.parametrize(("name", "module"), [*CLIENTS.items(), *BLOCKING.items()])
def test_every_public_method_has_its_entry(name: str, module: str) -> None:
    made = vars(importlib.import_module(module))[name]
    # What Python sees, whatever it was inherited or compiled from.
    methods = {each for each in dir(made) if not each.startswith("_") and each != "settings"}
    page = reference_page()
    assert {method.name for method in methods_of(module, name)} - {"__init__", "settings"} == methods
    assert [method.call for method in methods_of(module, name) if f"\n- `{method.call}`" not in page] == []
