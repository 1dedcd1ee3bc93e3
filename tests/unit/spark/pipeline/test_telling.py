"""A pipeline is seen and stopped from elsewhere, through the cluster alone."""

from __future__ import annotations

import threading
from dataclasses import replace

from penstock.spark.pipeline import home
from penstock.spark.pipeline.listing import elsewhere, stop_elsewhere
from penstock.spark.pipeline.telling import Telling
from penstock.testing import broker
from tests.compat.processes import wait_for
from tests.unit.spark.pipeline.files import flow_of


def test_it_is_listed_stopped_by_a_record_and_says_that_it_stopped() -> None:
    with broker() as running:
        bootstrap = running.bootstrap_servers
        flow = replace(flow_of(), bootstrap=bootstrap)
        stop = threading.Event()
        telling = Telling(flow, stop, restarts=2)
        telling.start()
        found = wait_for("word of it", lambda: elsewhere(bootstrap).get("orders"), timeout_s=20)
        assert (found.state, found.restarts, found.file) == (home.RUNNING, 2, "/somewhere/orders.toml")

        def obey() -> None:
            assert stop.wait(20)
            telling.end(home.STOPPED)

        runner = threading.Thread(target=obey)
        runner.start()
        assert stop_elsewhere("orders", bootstrap, within_s=20)
        runner.join()
        assert elsewhere(bootstrap)["orders"].state == home.STOPPED
