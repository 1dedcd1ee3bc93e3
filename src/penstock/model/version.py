"""Which release this is. Here, below everything, because clients and agents tell it to brokers."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
