"""The description of the API as a page to be read: plain HTML, which needs no script. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

_CODE = re.compile(r"`([^`]+)`")


def reference_page(described: Mapping[str, Any], prefix: str, styles: Iterable[str]) -> str:
    """`prefix` stands before all addresses of the console; `styles` are the names of its style sheets."""
    links = "".join(f'<link rel="stylesheet" href="{escape(prefix)}/assets/{escape(name)}">' for name in styles)
    info = described["info"]
    operations = [
        _operation(prefix, method.upper(), path, told)
        for path, methods in described["paths"].items()
        for method, told in methods.items()
    ]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'{links}</head><body><main class="page stack"><h1>{escape(info["title"])} {escape(info["version"])}</h1>'
        f"<p>{_words(info['description'])}</p>"
        f'<p><a href="{escape(prefix)}/api/v1/openapi.json">openapi.json</a></p>'
        f"{''.join(operations)}<h2>Bodies</h2>{_shapes(described['components']['schemas'])}</main></body></html>"
    )


def _operation(prefix: str, method: str, path: str, told: Mapping[str, Any]) -> str:
    name = escape(told["operationId"])
    rows = "".join(
        f'<tr><th scope="row"><code>{escape(each["name"])}</code></th><td>{escape(each["in"])}</td>'
        f"<td>{_kind(each['schema'])}</td><td>{_words(each.get('description', ''))}</td></tr>"
        for each in told["parameters"]
    )
    bodies = [
        f"<code>{escape(kind)}</code> {_kind(content['schema'])}"
        for kind, content in told.get("requestBody", {}).get("content", {}).items()
    ]
    address = f"{method} {escape(prefix)}/api/v1{escape(path)}"
    return (
        f'<section class="panel" id="{name}"><header><h2><code>{address}</code></h2></header>'
        f"<div class='body stack'><p>{_words(told.get('description', told['summary']))}</p>"
        f'<table class="grid"><tbody>{rows}</tbody></table>'
        f"{'<p>Body: ' + ', or '.join(bodies) + '</p>' if bodies else ''}</div></section>"
    )


def _shapes(schemas: Mapping[str, Mapping[str, Any]]) -> str:
    parts = []
    for name, schema in sorted(schemas.items()):
        rows = "".join(
            f'<tr><th scope="row"><code>{escape(key)}</code></th><td>{_kind(each)}</td>'
            f"<td>{_words(each.get('description', ''))}</td></tr>"
            for key, each in schema.get("properties", {}).items()
        )
        parts.append(
            f'<section class="panel" id="{escape(name)}"><header><h2>{escape(name)}</h2></header>'
            f'<table class="grid"><tbody>{rows}</tbody></table></section>'
        )
    return "".join(parts)


def _kind(schema: Mapping[str, Any]) -> str:
    """A schema in a word or two."""
    if "$ref" in schema:
        name = escape(str(schema["$ref"]).rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "enum" in schema:
        return escape(", ".join(str(each) or '""' for each in schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    return escape(str(schema.get("type", "anything")))


def _words(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(text))
