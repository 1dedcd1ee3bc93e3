"""Builds the compiled kernels when there is a compiler; without one the pure twin serves."""

from setuptools import setup

setup()
