"""One pipeline on a real Spark: what its pages tell is what it did, and it ends when it is asked to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.blocking import Producer
from penstock.console.settings import WarehouseAddress
from penstock.testing import EmbeddedBroker
from tests.console.running import running, settings_for

FILE = """\
name = "shop"
bootstrap = "{bootstrap}"
warehouse = "lake"

[sources.orders]
topics = ["real-orders"]
start = "earliest"
format = "json"
schema = "n BIGINT"
dead_letters = "topic:real-aside"
options = {{ metadataColumns = "_partition,_offset" }}

[sinks.lake]
from = "orders"
table = "orders"
trigger = "1 second"
"""


def test_a_real_pipeline_is_seen_followed_and_stopped(
    node: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Producer(**node.client_settings) as producer:
        for number in range(100):
            producer.send("real-orders", b"broken" if number == 50 else b'{"n": %d}' % number, partition=0)
    file = tmp_path / "shop.toml"
    file.write_text(FILE.format(bootstrap=node.bootstrap_servers))
    penstock = str(Path(sys.executable).parent / "penstock")
    begun = subprocess.run([penstock, "pipeline", "run", "--detach", file], capture_output=True, text=True)
    assert begun.returncode == 0, begun.stderr
    with running(settings_for(node.client_settings, warehouses=(WarehouseAddress(str(tmp_path / "lake")),))) as console:
        try:
            console.wait("tables/orders", lambda told: told["rows"] == "99", seconds=60)
            page = console.wait("pipelines/shop", lambda told: told["dead"] == "1" and told["lag"] == "0", seconds=30)
            assert (page["state"], page["acts"], [end["topic"] for end in page["sources"]]) == (
                "running", ["stop"], ["real-orders"],
            )  # fmt: skip
            assert [(end["table"], end["batch"]) for end in page["sinks"]] == [("orders", "0")]
            assert page["batches"][-1]["rows"] == "99"
            told = console.get("follow", topic="real-orders", partition=0, offset=49)
            assert told["steps"][-1]["text"].startswith('it is a row since version 1 of table orders: {"n": "49"')
            # The file says where letters go: nothing in the name of the topic does.
            told = console.get("follow", topic="real-orders", partition=0, offset=50)
            assert told["steps"][-1]["text"].startswith("put aside in topic real-aside: not JSON")
            console.send("POST", "pipelines/shop/stop")
        except BaseException:
            subprocess.run([penstock, "pipeline", "stop", "shop", "-b", node.bootstrap_servers], check=False)
            raise
        console.wait("pipelines/shop", lambda told: told["state"] == "stopped" and told["acts"], seconds=60)
        page = console.get("pipelines/shop")
        assert (page["acts"], page["redrives"]) == (["start"], ["orders"])
        assert page["commands"]["redrive orders"] == f"penstock pipeline redrive --source orders {file}"
        again = {"source": "orders"}
        plan = console.send("POST", "pipelines/shop/redrive", {**again, "dry_run": True})["plan"]
        assert (plan["letters"], plan["by_target"]) == ("1", {"real-orders": "1"})
        done = console.send("POST", "pipelines/shop/redrive", again)["done"]
        assert (done["letters"], done["done"]) == ("1", True)
        assert console.send("POST", "pipelines/shop/redrive", again)["done"]["letters"] == "0"
        assert console.refusal("pipelines/shop/redrive", "POST", {"source": "nothing"}) == (409, "conflict")
        # A file that is broken by now says why it does not start.
        file.write_text(file.read_text().replace('from = "orders"', 'from = "nothing"'))
        reply = console.client.post("api/v1/pipelines/shop/start", json={})
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "failed")
        assert "nothing" in reply.json()["error"]["message"]
