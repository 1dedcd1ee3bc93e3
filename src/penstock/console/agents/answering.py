"""One question to the admin port of an agent. Blocking; for a thread."""

from __future__ import annotations

import http.client
from typing import Final
from urllib.parse import urlsplit

from penstock.agent.admin.snapshot import Snapshot, decode

ANSWER_WITHIN_S: Final = 3.0
BODY_MAX: Final = 16 << 20
"""An agent that follows ten thousand files tells some megabytes."""


class Silent(Exception):
    """Nobody answers there, or nobody of ours; the words say which."""


def status(address: str) -> Snapshot:
    """What an agent says of itself and its files, by `http://HOST:PORT`."""
    parts = urlsplit(address)
    link = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=ANSWER_WITHIN_S)
    try:
        link.request("GET", "/status?files=1")
        reply = link.getresponse()
        body = reply.read(BODY_MAX + 1)
        if reply.status != 200 or len(body) > BODY_MAX:
            raise Silent(f"{address} is no agent's admin port: it says {reply.status}")
        return decode(body)
    except http.client.HTTPException as failure:
        raise Silent(f"{address} is no agent's admin port: {failure}") from None
    except ValueError:
        raise Silent(f"{address} is no agent's admin port: it tells something else") from None
    except OSError as failure:
        raise Silent(f"no agent answers at {address}: {failure.strerror or failure}") from None
    finally:
        link.close()
