"""The Spark session that a flow asks for: embedded, or on a cluster whose machines have the same environment."""

from __future__ import annotations

import site
import sysconfig
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.spark.pipeline.flow import Flow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_session(flow: Flow) -> SparkSession:
    """A session on the flow's master, whose progress is published under the flow's name."""
    from penstock.spark.pipeline.wiring import DEFAULT_BOOTSTRAP, once_settings
    from penstock.spark.progress.listener import listen
    from penstock.spark.sessions import session
    from penstock.spark.source.client_settings import security_of

    spark = session(
        flow.spark.master,
        app_name=f"penstock-{flow.name}",
        settings={**cluster_settings(flow.spark.master), **once_settings(flow), **flow.spark.settings},
    )
    bootstrap = flow.bootstrap or DEFAULT_BOOTSTRAP
    login = security_of({**flow.kafka, "bootstrap.servers": bootstrap})
    listen(spark, owner=flow.name, bootstrap=bootstrap, login=login)
    return spark


def cluster_settings(master: str, site_packages: Sequence[str] | None = None) -> dict[str, str]:
    """What executors on other machines need.

    Penstock is installed there as it is here, at the same place (its compiled kernels do not travel in a zip). One that
    is not installed but lies beside its sources is found by its path, which the machines then share.
    """
    from penstock.spark.sessions import package_root

    if master.startswith("local"):
        return {}
    root = package_root()
    installed = site_packages if site_packages is not None else [*site.getsitepackages(), sysconfig.get_path("purelib")]
    return {} if root in installed else {"spark.executorEnv.PYTHONPATH": root}
