"""The settings of a node: a file's properties checked one by one and as a whole. `values.py` reads them."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.model.config.broker import BROKER_CONFIGS, broker_definition, chain_of, known_to_plugins, unknown_name
from penstock.model.config.cross_checks import cross_check
from penstock.model.config.definition import ConfigValue, Missing
from penstock.model.config.values import NodeValues
from penstock.model.errors import PenstockError, Refused


class BadSettings(PenstockError):
    """The properties do not make a node. `problems` has one sentence for each thing to change."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class BrokerSettings(NodeValues):
    """The values of a node that were checked as a whole. Dynamic configs make another (`with_dynamic`)."""

    @classmethod
    def load(cls, properties: Mapping[str, str]) -> BrokerSettings:
        """The settings that `properties` describe. BadSettings lists everything that is wrong with them."""
        properties = with_node_id(properties)
        return cls._checked(properties, [problem for name in properties if (problem := unknown_name(name)) is not None])

    def with_dynamic(self, cluster: Mapping[str, str], broker: Mapping[str, str]) -> BrokerSettings:
        """The settings with dynamic configs over them, the broker's own over the cluster's. BadSettings as `load`."""
        return self._checked(overlay(overlay(self.properties, cluster), broker), [])

    @classmethod
    def _checked(cls, properties: Mapping[str, str], problems: list[str]) -> BrokerSettings:
        settings = cls(properties, read_values(properties, problems))
        if problems := problems or cross_check(settings):
            raise BadSettings(problems)
        return settings


def with_node_id(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with node.id and broker.id standing for each other when only one is given."""
    filled = dict(properties)
    for given, missing in (("node.id", "broker.id"), ("broker.id", "node.id")):
        if given in filled and missing not in filled:
            filled[missing] = filled[given]
    return filled


def overlay(properties: Mapping[str, str], dynamic: Mapping[str, str]) -> dict[str, str]:
    """The properties with dynamic ones over them. Weaker spellings of the same thing go, or they could win."""
    merged = dict(properties)
    for name, text in dynamic.items():
        for synonym in chain_of(name):
            merged.pop(synonym, None)
        merged[name] = text
    return merged


def read_values(properties: Mapping[str, str], problems: list[str]) -> dict[str, ConfigValue]:
    """Typed values of every property, given or not. What cannot be read or is missing is added to `problems`."""
    values: dict[str, ConfigValue] = {}
    for name, row in BROKER_CONFIGS.items():
        if name not in properties and isinstance(row.default, Missing):
            problems.append(f"{name} must be set")
        values[name] = row.default_value
    for name, text in properties.items():
        given = broker_definition(name)
        if given is None:
            if known_to_plugins(name):
                values[name] = text.strip()
            continue
        try:
            values[name] = given.parse(text)
        except Refused as refused:
            problems.append(refused.why.replace(f"configuration {given.name}:", f"configuration {name}:"))
    return values
