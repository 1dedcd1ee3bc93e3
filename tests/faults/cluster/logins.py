"""How the clients of a load get in: nothing on an open cluster, else what each library calls it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Login(NamedTuple):
    librdkafka: Mapping[str, str]
    own: Mapping[str, Any]
    """Keywords of Penstock's own clients."""


OPEN = Login({}, {})
