"""`client_config`: a `client.properties` as Java's tools read it, with its references into other files resolved."""

from __future__ import annotations

from penstock.client.errors import BadSetting
from penstock.model.config.files import parse_properties
from penstock.security.references import Unresolved
from penstock.transport.config_references import Disk, resolved


def read_client_config(path: str) -> dict[str, str]:
    """The properties of the file, resolved. `BadSetting` names the file and the property, never a value."""
    where = f"client_config={path!r}"
    try:
        properties = parse_properties(Disk().file(path))
    except OSError as failure:
        raise BadSetting(f"{where}: {(failure.strerror or str(failure)).lower()}") from None
    except ValueError as wrong:
        raise BadSetting(f"{where}: {wrong}") from None
    try:
        return resolved(properties)
    except Unresolved as unresolved:
        raise BadSetting(f"{where}: {unresolved}") from None
