"""The guide of pipelines tells every metric that they have, and no other."""

from __future__ import annotations

import re

from penstock.spark.pipeline.metrics import names
from tests.docs.pages import ROOT


def test_the_guide_lists_every_metric_in_the_order_of_the_page() -> None:
    text = (ROOT / "docs" / "guides" / "pipelines.md").read_text()
    assert re.findall(r"^\| `(penstock_pipeline_\w+)`", text, re.M) == names()
