"""How a process logs in at a cluster of which it knows the address alone."""

from __future__ import annotations

import os
from collections.abc import Mapping

from penstock.client.errors import ClientError
from penstock.client.settings import CommonSettings
from penstock.spark.kafka_settings import CLIENT_CONFIG_VARIABLE
from penstock.spark.progress.warnings_once import warn_once


def login_of_the_process(bootstrap: str) -> Mapping[str, str]:
    """What a query says of its login stays with its source; everybody else is told by the environment."""
    path = os.environ.get(CLIENT_CONFIG_VARIABLE)
    if path is None:
        return {}
    login = {"client_config": path}
    try:
        CommonSettings.of({"bootstrap_servers": bootstrap, **login})
    except ClientError as unusable:
        words = f"{CLIENT_CONFIG_VARIABLE}: {unusable}. Progress is told without a login."
        warn_once("login", path, words=words)
        return {}
    return login
