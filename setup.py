"""Builds the compiled kernels when there is a compiler; without one the pure twin serves."""

from setuptools import Extension, setup

KERNELS = "src/penstock/kernels"

PARTS = {
    "_compiled": ("_walk.pxi", "_produce.pxi", "crc32c.h", "siphash.h"),
    "_compiled_client": (
        "_walk.pxi",
        "_columns.pxi",
        "_builder.pxi",
        "_sending.pxi",
        "_consumer_records.pxi",
        "_sink.pxi",
        "crc32c.h",
    ),
}
"""Each extension module with what it includes."""


def extension(name: str, parts: tuple[str, ...]) -> Extension:
    return Extension(
        f"penstock.kernels.{name}",
        [f"{KERNELS}/{name}.pyx"],
        include_dirs=[KERNELS],
        depends=[f"{KERNELS}/{part}" for part in parts],
        extra_compile_args=["-O3"],
    )


def compiled_kernels() -> list[Extension]:
    """The extensions, or nothing where Cython is missing."""
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    built: list[Extension] = cythonize(
        [extension(name, parts) for name, parts in PARTS.items()], build_dir="build/cython"
    )
    for module in built:
        # A failed compilation is a warning, not an end. Set here, because cythonize does not pass it on.
        module.optional = True
    return built


setup(ext_modules=compiled_kernels())
