"""A text that must not be seen: it prints as `[hidden]`, wherever it ends up."""

from __future__ import annotations

from typing import Final, NoReturn, final

HIDDEN: Final = "[hidden]"


@final
class Secret:
    """A password, key or token. Only `reveal` gives the text, so every place that uses one can be searched for.

    Printing, formatting and logging show `[hidden]`. Pickling and copying into JSON or dictionaries by
    `dataclasses.asdict` would write the text down, so the first is an error and the second leaves the secret whole.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one who logs in with it or compares it."""
        return self._text

    def __str__(self) -> str:
        return HIDDEN

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        from hmac import compare_digest  # OpenSSL takes milliseconds to load, and most programs compare no secrets

        return compare_digest(_bytes(self._text), _bytes(other._text))

    def __hash__(self) -> int:
        return hash(self._text)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled: hand over a reference to where it is kept")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
