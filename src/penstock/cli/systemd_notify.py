"""What systemd wants to hear of a service (sd_notify), in the few lines that it takes. Silent where nobody listens."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping


class Notify:
    """Tells the service manager how we are. What it does not hear is no reason to fail."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        # A name that begins with @ is one of the abstract kind, which is no file.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        watched = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self.watchdog_s = int(environment.get("WATCHDOG_USEC", "0")) / 1e6 if watched and self._address else 0.0
        """How long we may be silent before we are killed; 0 when nobody minds."""

    def ready(self, words: str) -> None:
        self._tell("READY=1", f"STATUS={words}")

    def reloading(self) -> None:
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        self._tell("STOPPING=1", "STATUS=stopping")

    def alive(self, words: str) -> None:
        self._tell("WATCHDOG=1", f"STATUS={words}")

    def _tell(self, *lines: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as link:
                link.setblocking(False)
                link.sendto("\n".join(lines).encode(), self._address)
        except OSError:
            return
