"""A test that hangs is ended when its time is over, which moves away while the machine is busy."""

from __future__ import annotations

import signal
import threading

import pytest
import pytest_timeout

from tests import properties
from tests.patience import Patience


def set_timer(item: pytest.Item, settings: pytest_timeout.Settings) -> bool | None:
    """In place of pytest-timeout's own, whose time is that of a moment long ago: when the tests were collected."""
    if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
        return None
    patience = Patience(properties.stretched(settings.timeout))

    def look(_number: int, _frame: object) -> None:
        __tracebackhide__ = True
        if patience.over():
            pytest_timeout.timeout_sigalrm(item, settings)
        else:
            signal.setitimer(signal.ITIMER_REAL, patience.left_s)

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    item.cancel_timeout = cancel  # type: ignore[attr-defined]  # where pytest-timeout looks for it
    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, patience.left_s)
    return True
