"""Objects of a store below one place, with a put that refuses what is there already. Waits end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import IO, TYPE_CHECKING, Any, Final

from penstock.spark.errors import BadOption, Missing, SparkRoomError

if TYPE_CHECKING:
    from penstock.spark.stores.storage import Storage

NEEDS_OBSTORE: Final = "checkpoints in an object store need obstore: pip install 'penstock[spark,stores]'"
REQUEST_WITHIN: Final = timedelta(seconds=30)
RETRIES_WITHIN: Final = timedelta(seconds=60)
RETRIES: Final = 5


class StoreFailed(SparkRoomError):
    """The store did not do what it was asked for; says what and where. Another try may have more luck."""


class Objects:
    """`Objects.at(place, storage)`. Names are relative to the place."""

    def __init__(self, store: Any, place: str) -> None:
        self._store, self.place = store, place

    @classmethod
    def at(cls, place: str, storage: Storage) -> Objects:
        try:
            from obstore.exceptions import BaseError
            from obstore.store import from_url
        except ImportError as missing:
            raise Missing(NEEDS_OBSTORE) from missing
        options: dict[str, Any] = dict(storage.for_objects(place))
        http = options.pop("allow_http", "false") == "true"
        try:
            store: Any = from_url(
                place,
                client_options={"timeout": REQUEST_WITHIN, "connect_timeout": REQUEST_WITHIN, "allow_http": http},
                retry_config={"max_retries": RETRIES, "retry_timeout": RETRIES_WITHIN},
                **options,
            )
        except (BaseError, ValueError) as wrong:
            raise BadOption(f"{place} cannot be opened for checkpoints: {_first_line(wrong)}") from wrong
        return cls(store, place)

    def put_new(self, name: str, data: bytes) -> bool:
        """Whether it is there by our doing; False when there was one already."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._told("written", name):
            try:
                obstore.put(self._store, name, data, mode="create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return False
            return True

    def put(self, name: str, data: bytes | IO[bytes]) -> None:
        import obstore

        with self._told("written", name):
            obstore.put(self._store, name, data)

    def get(self, name: str) -> bytes | None:
        import obstore

        with self._told("read", name):
            try:
                return bytes(obstore.get(self._store, name).bytes())
            except FileNotFoundError:
                return None

    def parts(self, name: str) -> Iterator[bytes]:
        """A large one, piece by piece; `FileNotFoundError` when it is not there."""
        import obstore

        with self._told("read", name):
            yield from map(bytes, obstore.get(self._store, name).stream())

    def names(self, below: str) -> list[str]:
        import obstore

        with self._told("listed", below):
            return [each["path"] for part in obstore.list(self._store, prefix=below) for each in part]

    def delete(self, names: Iterable[str]) -> None:
        """One that is gone already is no failure."""
        import obstore

        for name in names:
            with self._told("deleted", name), contextlib.suppress(FileNotFoundError):
                obstore.delete(self._store, name)

    @contextlib.contextmanager
    def _told(self, what: str, name: str) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except FileNotFoundError:
            raise
        except (BaseError, OSError) as failure:
            raise StoreFailed(f"{self.place}/{name} could not be {what}: {_first_line(failure)}") from failure


def _first_line(failure: Exception) -> str:
    """What the library says before it prints what it was made of, which may have settings in it."""
    return next(iter(str(failure).splitlines()), type(failure).__name__)[:300]
