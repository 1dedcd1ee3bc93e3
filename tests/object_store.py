"""An S3 server as a process of its own (moto's), for tests of whatever lies in object stores."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyarrow import fs

SECRET = "a-secret-that-nobody-may-see"
ACCESS_KEY = "shop"

COMMAND = (sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0")


@dataclass(frozen=True)
class ObjectStore:
    """A running server."""

    endpoint: str
    settings: Mapping[str, str] = field(default_factory=dict)
    """[storage] of a pipeline; the secret is elsewhere."""

    def toml(self) -> str:
        """The same as a pipeline file has it."""
        return "\n".join(["[storage]", *(f'{name} = "{value}"' for name, value in self.settings.items())])

    def options(self) -> dict[str, str]:
        """The settings as options of formats."""
        return {f"storage.{name}": value for name, value in self.settings.items()}

    def bucket(self) -> str:
        """A new one, empty."""
        name = f"lake-{uuid.uuid4().hex[:12]}"
        self.files().create_dir(name)
        return name

    def files(self) -> fs.S3FileSystem:
        """As somebody else's program reaches it."""
        return fs.S3FileSystem(
            access_key=ACCESS_KEY,
            secret_key=SECRET,
            region="us-east-1",
            scheme="http",
            endpoint_override=self.endpoint.removeprefix("http://"),
            allow_bucket_creation=True,
        )

    def objects(self, place: str) -> dict[str, bytes]:
        """What lies below bucket/path, by the path below it."""
        files = self.files()
        found = files.get_file_info(fs.FileSelector(place, recursive=True, allow_not_found=True))
        names = [each.path for each in found if each.is_file]
        return {name.removeprefix(f"{place}/"): files.open_input_stream(name).read() for name in names}


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Until the end of the block. Its secret is in a file, which processes find that were started before."""
    server = subprocess.Popen(COMMAND, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    with tempfile.NamedTemporaryFile("w", prefix="penstock-store-") as secret:
        secret.write(SECRET)
        secret.flush()
        try:
            endpoint = _announced(server)
            yield ObjectStore(
                endpoint, {"endpoint": endpoint, "access_key": ACCESS_KEY, "secret_key": f"file:{secret.name}"}
            )
        finally:
            server.terminate()
            server.wait()
            assert server.stderr is not None
            server.stderr.close()


def _announced(server: subprocess.Popen[str]) -> str:
    """Where it listens, as it says itself; what it says afterwards is read by nobody, but read."""
    assert server.stderr is not None
    said = []
    for line in server.stderr:
        said.append(line)
        if found := re.search(r"Running on (http://127\.0\.0\.1:\d+)", line):
            threading.Thread(target=_drain, args=(server.stderr,), daemon=True).start()
            return found[1]
    raise AssertionError(f"moto did not start: {''.join(said)}")


def _drain(stream: Iterator[str]) -> None:
    try:
        for _ in stream:
            pass
    except ValueError:
        # It was closed: the server has ended.
        return
