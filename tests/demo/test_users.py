"""The rights of the demo's users are such that brokers take, and open no topic of ours by a star."""

from __future__ import annotations

from penstock.demo.plan import AGENT, PIPELINE, TOPIC
from penstock.demo.users import acls


def test_the_agent_may_not_read_and_the_pipeline_may_not_write_the_log() -> None:
    may = {(each.principal, each.operation) for each in acls() if (each.resource, each.name) == ("topic", TOPIC)}
    assert may == {(f"User:{AGENT}", "write"), (f"User:{AGENT}", "describe"), (f"User:{PIPELINE}", "read")}


def test_a_star_means_names_that_begin_with_the_users_own() -> None:
    stars = {each.name for each in acls() if each.pattern == "prefixed"}
    assert stars == {f"penstock-agent/{AGENT}/", f"spark-{PIPELINE}-", "penstock-spark-"}
    assert not [each for each in acls() if each.name.endswith("*")]
