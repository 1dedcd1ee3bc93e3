"""The configuration reference as Markdown, printed from the tables: `python -m penstock.model.config.reference`.

`docs/reference/configuration.md` is this text; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from penstock.model.config.broker import BROKER_CONFIGS, BROKER_THEMES
from penstock.model.config.definition import REQUIRED, ConfigDef, Effect
from penstock.model.config.groups import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS
from penstock.model.config.tables.dynamic_only import DYNAMIC_ONLY
from penstock.model.config.topic import TOPIC_CONFIGS

_INTRODUCTION: Final = """\
# Configuration

This page is printed from the tables in `penstock.model.config`; do not edit it by hand.

Penstock takes the properties of Apache Kafka 4.3 with their names, types, defaults and bounds: a `server.properties`
file works as it is, and so does TOML with quoted names:

```toml
"node.id" = 1
"process.roles" = ["broker", "controller"]
"log.segment.bytes" = 268435456
```

In TOML names may also be nested: `segment.bytes = 268435456` under `[log]` is the same property. A name that is not a
property is an error at start. `listener.name.<listener>.` before a name sets it for one listener only, with the name of
the listener in lower case.

The column *here* says what Penstock does with a property:

| here | meaning |
|---|---|
| acted | it changes what the node does |
| accepted | it is read, checked and reported, but has no meaning here |
| later | it belongs to a part that is not built yet; until then it is read, checked and reported |

`penstock server config lint` names the properties of a file that change nothing.

The column *changes* says who can change a broker property while it runs: nobody (*no*), each broker for itself
(*per broker*), or the whole cluster at once (*cluster-wide*, which a broker may override for itself).
"""

_CHANGES: Final = {"read-only": "no", "per-broker": "per broker", "cluster-wide": "cluster-wide"}


def reference_page() -> str:
    """The whole page, ending in a newline."""
    return "\n".join([_INTRODUCTION, *_topics(), *_brokers(), *_groups(), *_client_metrics()])


def _topics() -> Iterator[str]:
    yield "## Topics\n"
    yield "A topic that does not set a property takes it from the broker property in the column *broker*.\n"
    yield "| property | type | default | allowed | broker | here | what it does |"
    yield "|---|---|---|---|---|---|---|"
    for row in _sorted(TOPIC_CONFIGS.values()):
        behind = ", ".join(f"`{synonym.name}`" for synonym in row.synonyms)
        yield _line(row, behind)
    yield ""


def _brokers() -> Iterator[str]:
    yield "## Brokers and controllers\n"
    counts = {effect: sum(row.effect is effect for row in BROKER_CONFIGS.values()) for effect in Effect}
    words = ", ".join(f"{count} {effect}" for effect, count in counts.items())
    yield f"{len(BROKER_CONFIGS)} properties: {words}.\n"
    for theme, rows in BROKER_THEMES.items():
        yield from _broker_table(theme, rows)
    yield from _broker_table("Only while the broker runs", DYNAMIC_ONLY)


def _broker_table(title: str, rows: Iterable[ConfigDef]) -> Iterator[str]:
    yield f"### {title}\n"
    yield "| property | type | default | allowed | changes | here | what it does |"
    yield "|---|---|---|---|---|---|---|"
    for row in _sorted(rows):
        yield _line(row, _CHANGES[row.update_mode])
    yield ""


def _groups() -> Iterator[str]:
    yield "## Groups\n"
    yield "Set for one group with the resource type *group*; the default comes from the broker property.\n"
    yield "| property | type | default | allowed | broker | here | what it does |"
    yield "|---|---|---|---|---|---|---|"
    for row in _sorted(GROUP_CONFIGS.values()):
        yield _line(row, ", ".join(f"`{synonym.name}`" for synonym in row.synonyms))
    yield ""


def _client_metrics() -> Iterator[str]:
    yield "## Client metrics subscriptions\n"
    yield "| property | type | default | allowed | here | what it does |"
    yield "|---|---|---|---|---|---|"
    for row in _sorted(CLIENT_METRICS_CONFIGS.values()):
        yield _line(row, None)
    yield ""


def _sorted(rows: Iterable[ConfigDef]) -> list[ConfigDef]:
    return sorted(rows, key=lambda row: row.name)


def _line(row: ConfigDef, extra: str | None) -> str:
    words = row.doc + (" Internal." if row.internal else "")
    cells = [f"`{row.name}`", row.type.name.lower(), _default(row), _escaped(row.allowed)]
    if extra is not None:
        cells.append(extra)
    return "| " + " | ".join([*cells, row.effect.value, _escaped(words)]) + " |"


def _default(row: ConfigDef) -> str:
    if row.default is REQUIRED:
        return "*required*"
    text = row.default_text
    if text is None:
        return "–"
    if text == "":
        return "empty"
    return f"`{text}`"


def _escaped(text: str) -> str:
    for char in "\\|*<>_":
        text = text.replace(char, "\\" + char)
    return text


if __name__ == "__main__":
    print(reference_page(), end="")
