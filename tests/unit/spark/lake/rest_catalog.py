"""An Iceberg REST catalog on loopback for tests: pyiceberg's SQL catalog behind the paths of the REST specification."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest, Table


@contextmanager
def rest_catalog(
    directory: Path, properties: Mapping[str, str] | None = None, *, token: str | None = None
) -> Iterator[str]:
    """Its URI. `properties` say how it reaches the files of tables; whoever has not `token` is sent away."""
    given = {"warehouse": str(directory), **(properties or {})}
    catalog = SqlCatalog("rest", **{**given, "uri": f"sqlite:///{directory}/rest.db?timeout=30"})
    one_at_a_time = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
            parts = self.path.partition("?")[0].strip("/").split("/")[1:]
            if token is not None and self.headers.get("Authorization") != f"Bearer {token}":
                status, reply = refused(401, "NotAuthorizedException", "who are you?")
            else:
                with one_at_a_time:
                    status, reply = answered(catalog, self.command, parts, body)
            text = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        catalog.close()


def answered(catalog: Catalog, method: str, parts: list[str], body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    try:
        match method, parts:
            case _, ["config"]:
                return 200, {"defaults": {}, "overrides": {}}
            case "POST", ["namespaces"]:
                catalog.create_namespace_if_not_exists(tuple(body["namespace"]))
                return 200, {"namespace": body["namespace"], "properties": {}}
            case _, ["namespaces"]:
                return 200, {"namespaces": [list(each) for each in catalog.list_namespaces()]}
            case "POST", ["namespaces", namespace, "tables"]:
                return 200, made(catalog, (namespace, body["name"]), body)
            case _, ["namespaces", namespace, "tables"]:
                found = catalog.list_tables((namespace,))
                return 200, {"identifiers": [{"namespace": [each[0]], "name": each[1]} for each in found]}
            case "POST", ["namespaces", namespace, "tables", name]:
                return 200, committed(catalog, (namespace, name), body)
            case _, ["namespaces", namespace, "tables", name]:
                return 200, told(catalog.load_table((namespace, name)))
            case _, ["namespaces", namespace]:
                return 200, {"namespace": [namespace], "properties": {}}
        return refused(404, "NoSuchPath", f"{method} {parts}")
    except NoSuchTableError as missing:
        return refused(404, "NoSuchTableException", str(missing))
    except (CommitFailedException, TableAlreadyExistsError) as conflict:
        return refused(409, type(conflict).__name__, str(conflict))


def refused(status: int, kind: str, message: str) -> tuple[int, dict[str, Any]]:
    return status, {"error": {"message": message, "type": kind, "code": status}}


def told(table: Table) -> dict[str, Any]:
    return {"metadata-location": table.metadata_location, "metadata": json.loads(table.metadata.model_dump_json())}


def made(catalog: Catalog, identifier: tuple[str, str], body: dict[str, Any]) -> dict[str, Any]:
    staged = catalog.create_table_transaction(
        identifier,
        Schema.model_validate(body["schema"]),
        location=body.get("location"),
        partition_spec=PartitionSpec.model_validate(body.get("partition-spec") or {"spec-id": 0, "fields": []}),
        properties=body.get("properties") or {},
    )
    if body.get("stage-create"):
        metadata = json.loads(staged.table_metadata.model_dump_json())
        return {"metadata-location": None, "metadata": metadata}
    return told(staged.commit_transaction())


def committed(catalog: Catalog, identifier: tuple[str, str], body: dict[str, Any]) -> dict[str, Any]:
    identity = {"namespace": [identifier[0]], "name": identifier[1]}
    request = CommitTableRequest.model_validate({**body, "identifier": identity})

    class Named:
        def name(self) -> tuple[str, str]:
            return identifier

    named: Any = Named()
    reply = catalog.commit_table(named, request.requirements, request.updates)
    return {"metadata-location": reply.metadata_location, "metadata": json.loads(reply.metadata.model_dump_json())}
