"""Every declared message, found by walking the packages that hold them."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

import penstock.protocol.disk
import penstock.protocol.messages
from penstock.protocol.schema import schema_of


def _modules() -> list[str]:
    packages = (penstock.protocol.messages, penstock.protocol.disk)
    found = [
        f"{package.__name__}.{info.name}" for package in packages for info in pkgutil.iter_modules(package.__path__)
    ]
    return ["penstock.protocol.headers", *found]


MESSAGES: dict[str, type[Any]] = {
    name: value
    for module in _modules()
    for name, value in vars(import_module(module)).items()
    if isinstance(value, type) and hasattr(value, "__schema__")
}


def versions_of(cls: type[Any]) -> range:
    versions = schema_of(cls).versions
    return range(versions.first, versions.last + 1)
