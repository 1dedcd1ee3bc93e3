"""The description of the API, as OpenAPI 3.1 has it: printed from the table of routes and the shapes of requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from penstock.console.routes.declaring import Declaration, Endpoint, declaration_of
from penstock.model.version import VERSION

Row = tuple[str, str, Endpoint]

_PART: Final = re.compile(r"{(\w+)(?::\w+)?}")
_ERROR: Final = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "attempt", "params"],
            "properties": {
                "code": {"type": "string", "description": "For programs."},
                "message": {"type": "string", "description": "What happened, for people."},
                "attempt": {"type": "string", "description": "What to try."},
                "params": {"type": "object"},
            },
        }
    },
}
_CLUSTER: Final = {
    "name": "cluster",
    "in": "query",
    "required": False,
    "schema": {"type": "string"},
    "description": "Which cluster, by its name; the first if not given.",
}
_INTRODUCTION: Final = """\
Everything that the pages show, and everything that they do. 64-bit numbers are texts. Whatever changes something
tells the command that does the same; where `dry_run` is known, it tells what would be done and changes nothing.
"""


def description(table: Iterable[Row], server: str) -> dict[str, Any]:
    rows = list(table)
    declarations = {row: declaration_of(row[2]) for row in rows}
    bodies = sorted(
        {each.body for each in declarations.values() if each.body is not None}, key=lambda each: each.__name__
    )
    _, schemas = msgspec.json.schema_components(bodies, ref_template="#/components/schemas/{name}")
    paths: dict[str, dict[str, Any]] = {}
    for row in rows:
        method, path, endpoint = row
        told = _operation(method, path, endpoint, declarations[row])
        paths.setdefault(_PART.sub(r"{\1}", path), {})[method.lower()] = told
    return {
        "openapi": "3.1.0",
        "info": {"title": "Penstock console", "version": VERSION, "description": _INTRODUCTION},
        "servers": [{"url": server}],
        "paths": paths,
        "components": {"schemas": {**schemas, "Error": _ERROR}},
    }


def _operation(method: str, path: str, endpoint: Endpoint, declared: Declaration) -> dict[str, Any]:
    name, words = endpoint.__name__, (endpoint.__doc__ or "").strip()
    summary = words.split(". ")[0].split(".\n")[0].rstrip(".") or name.replace("_", " ").capitalize()
    told: dict[str, Any] = {
        "operationId": name,
        "summary": " ".join(summary.split()),
        "parameters": [*_in_path(path), _CLUSTER, *_in_query(declared.query), *_headers(declared.headers)],
        "responses": {
            "200": {"description": "Done.", "content": {declared.answers: {"schema": {}}}},
            "default": {
                "description": "Why not, and what to try.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    if words:
        told["description"] = words
    if declared.answers == "application/json":
        told["responses"]["200"]["content"][declared.answers]["schema"] = {"type": "object"}
    if declared.own_errors:
        told["responses"]["default"]["content"] = {declared.answers: {"schema": {}}}
    if method != "GET":
        told["requestBody"] = {"required": False, "content": _body(declared)}
    return told


def _body(declared: Declaration) -> dict[str, Any]:
    schema: dict[str, Any] = {} if declared.body_types[1:] or declared.own_errors else {"type": "object"}
    if declared.body is not None:
        schema = {"$ref": f"#/components/schemas/{declared.body.__name__}"}
    # What is no JSON has no schema: it is text.
    return {
        kind: {"schema": schema if kind == "application/json" else {"type": "string"}} for kind in declared.body_types
    }


def _in_path(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PART.findall(path)
    ]


def _in_query(shape: type[msgspec.Struct] | None) -> list[dict[str, Any]]:
    if shape is None:
        return []
    _, schemas = msgspec.json.schema_components([shape], ref_template="#/components/schemas/{name}")
    found: Mapping[str, Any] = schemas[shape.__name__]
    required: Sequence[str] = found.get("required", ())
    return [_parameter(name, "query", schema, name in required) for name, schema in found["properties"].items()]


def _headers(names: Sequence[str]) -> list[dict[str, Any]]:
    return [_parameter(name, "header", {"type": "string", "minLength": 1, "maxLength": 200}, False) for name in names]


def _parameter(name: str, where: str, schema: Mapping[str, Any], required: bool) -> dict[str, Any]:
    own = {key: value for key, value in schema.items() if key not in ("description", "default")}
    # A parameter that is not there is left out: it is never null.
    if "anyOf" in own:
        kinds = [kind for kind in own["anyOf"] if kind != {"type": "null"}]
        own = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    elif "enum" in own:
        own["enum"] = [each for each in own["enum"] if each is not None]
    told: dict[str, Any] = {"name": name, "in": where, "required": required, "schema": own}
    if "description" in schema:
        told["description"] = schema["description"]
    if schema.get("default") is not None:
        told["schema"] = {**own, "default": schema["default"]}
    return told
