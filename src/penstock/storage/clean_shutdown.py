"""`.kafka_cleanshutdown`: its presence says that every log below was closed properly, its content by which broker."""

from __future__ import annotations

import json

from penstock.model.ports import Files

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
UNKNOWN_BROKER_EPOCH = -1


def write_clean_shutdown(files: Files, directory: str, broker_epoch: int) -> None:
    text = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    files.write_atomic(f"{directory}/{CLEAN_SHUTDOWN}", text.encode())


def read_clean_shutdown(files: Files, directory: str) -> int | None:
    """The broker epoch of the last clean stop, -1 when the file does not tell; None when the stop was not clean."""
    try:
        text = files.read(f"{directory}/{CLEAN_SHUTDOWN}")
    except FileNotFoundError:
        return None
    try:
        return int(json.loads(text)["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        # Brokers before the epoch was recorded left the file empty; it still says that the stop was clean.
        return UNKNOWN_BROKER_EPOCH


def remove_clean_shutdown(files: Files, directory: str) -> None:
    """From here on a stop is unclean until the marker is written again."""
    try:
        files.remove(f"{directory}/{CLEAN_SHUTDOWN}")
    except FileNotFoundError:
        return
    files.sync_dir(directory)
