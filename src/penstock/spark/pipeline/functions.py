"""Functions of the user's, by `module:function`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.spark.errors import BadOption


def function_of(reference: str, directory: Path) -> Callable[..., Any]:
    """`module:function`, imported. What is beside the pipeline file is pickled as it is, not by its name."""
    from pyspark.cloudpickle import register_pickle_by_value

    name_of_module, _, name = reference.partition(":")
    try:
        module = importlib.import_module(name_of_module)
        function = getattr(module, name)
    except ImportError as missing:
        raise BadOption(f"{reference} cannot be imported: {missing}") from missing
    except AttributeError:
        raise BadOption(f"module {name_of_module} has no {name!r}") from None
    if module.__file__ is not None and Path(module.__file__).parent == directory:
        register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # Spark's copy has no types
    if not callable(function):
        raise BadOption(f"{reference} is no function")
    found: Callable[..., Any] = function
    return found
