"""Tests of this folder may be coroutines: each runs on an event loop of its own."""

from __future__ import annotations

from tests.coroutines import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]
