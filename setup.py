"""Builds the compiled kernels when there is a compiler; without one the pure twin serves."""

from setuptools import Extension, setup

KERNELS = "src/penstock/kernels"


def compiled_kernels() -> list[Extension]:
    """The extension, or nothing where Cython is missing."""
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    kernels = Extension(
        "penstock.kernels._compiled",
        [f"{KERNELS}/_compiled.pyx"],
        include_dirs=[KERNELS],
        depends=[f"{KERNELS}/{name}" for name in ("_walk.pxi", "crc32c.h", "siphash.h")],
        extra_compile_args=["-O3"],
    )
    built: list[Extension] = cythonize([kernels], build_dir="build/cython")
    for extension in built:
        # A failed compilation is a warning, not an end. Set here, because cythonize does not pass it on.
        extension.optional = True
    return built


setup(ext_modules=compiled_kernels())
