"""Where files are: a local path, a file: URI, or any other URI that pyarrow opens."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock.spark.stores.storage import FROM_ENVIRONMENT, Storage

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


def absolute(location: str) -> str:
    """The same place for every process of this machine: a local path becomes absolute, a URI stays.

    Local `file:` URIs become paths. As Hadoop does, a percent sign in one is a percent sign.
    """
    if location.startswith("file:"):
        rest = location.removeprefix("file:")
        return os.path.abspath("/" + rest.lstrip("/"))
    if "://" in location:
        return location.rstrip("/")
    return os.path.abspath(os.path.expanduser(location))


def is_local(location: str) -> bool:
    return "://" not in location


def opened(location: str, storage: Storage = FROM_ENVIRONMENT) -> tuple[FileSystem, str]:
    """The file system of an absolute location, and the path in it."""
    from pyarrow import fs

    return (fs.LocalFileSystem(), location) if is_local(location) else storage.file_system(location)


def read_text(files: FileSystem, path: str) -> str:
    """`FileNotFoundError` when it is not there."""
    with files.open_input_stream(path) as stream:
        return str(stream.read().decode())


def write_whole(files: FileSystem, path: str, text: str) -> None:
    """A file that others see whole or not at all. Its directory exists."""
    from pyarrow import fs

    if not isinstance(files, fs.LocalFileSystem):
        # Object stores show an object when it is complete.
        with files.open_output_stream(path) as stream:
            stream.write(text.encode())
        return
    beside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        with open(beside, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(beside, path)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise
