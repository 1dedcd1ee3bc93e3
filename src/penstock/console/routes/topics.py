"""Topics: the list, and what the pages of one topic read."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from penstock.client.admin import AclFilter, ConfigResource
from penstock.client.errors import ClientError, UnknownTopic
from penstock.console.answers import answer, answer_made
from penstock.console.commands import command
from penstock.console.failures import bad_request
from penstock.console.listings import Wanted
from penstock.console.routes.declaring import declared
from penstock.console.routes.desk import desk_of, step_of, unknown_topic
from penstock.console.routes.shapes import Stepped, TopicsListed
from penstock.console.views.access import acl_items, touching
from penstock.console.views.configs import config_list
from penstock.console.views.topics import ONLY, TOPIC_SORTS, consumers_of, partition_list, topic_list, topic_page
from penstock.model.errors import SECURITY_DISABLED
from penstock.model.ids import TopicPartition


@declared(query=TopicsListed)
async def get_topics(request: Request) -> Response:
    query = request.query_params
    only = query.get("only", "")
    if only and only not in ONLY:
        raise bad_request(f"only: {only!r} is none of {', '.join(sorted(ONLY))}")
    wanted = Wanted.of(query, TOPIC_SORTS)
    seeing = (await desk_of(request)).seeing()
    return await answer_made(lambda: topic_list(seeing, wanted, internal=query.get("internal") == "1", only=only))


@declared(query=Stepped)
async def get_topic(request: Request) -> Response:
    desk, name = await desk_of(request), request.path_params["name"]
    try:
        described = await desk.acting.admin.describe_topic(name, offsets=False)
    except UnknownTopic:
        raise unknown_topic(name) from None
    return answer(topic_page(desk.seeing(), described, step_of(request)))


async def get_partitions(request: Request) -> Response:
    desk, name = await desk_of(request), request.path_params["name"]
    described = await desk.acting.admin.describe_topic(name, configs=False)
    return answer(partition_list(desk.seeing(), described))


async def get_consumers(request: Request) -> Response:
    desk, name = await desk_of(request), request.path_params["name"]
    seeing = desk.seeing()
    desk.topic(seeing, name)
    return answer(consumers_of(seeing, name))


async def get_topic_config(request: Request) -> Response:
    desk, name = await desk_of(request), request.path_params["name"]
    resource = ConfigResource.topic(name)
    found = await desk.acting.admin.describe_configs([resource], documentation=True)
    entries = config_list(found.checked()[resource], "topic")
    return answer({"entries": entries, "command": command("topic", "describe", names=[name])})


async def get_topic_access(request: Request) -> Response:
    desk, name = await desk_of(request), request.path_params["name"]
    try:
        acls = await desk.acting.admin.describe_acls(AclFilter(resource="topic"))
    except ClientError as failure:
        if failure.error is not SECURITY_DISABLED:
            raise
        return answer({"enabled": False, "acls": [], "command": "penstock acl list"})
    same = command("acl", "list", options=["--resource", f"topic:{name}", "--match"])
    return answer({"enabled": True, "acls": acl_items(touching(acls, "topic", name)), "command": same})


async def get_producers(request: Request) -> Response:
    desk, name = await desk_of(request), request.path_params["name"]
    described = await desk.acting.admin.describe_topic(name, offsets=False, configs=False)
    items = [TopicPartition(name, each.partition) for each in described.partitions]
    found = await desk.acting.admin.describe_producers(items)
    return answer(
        {
            "producers": [
                {
                    "partition": item.partition,
                    "producer_id": str(each.producer_id),
                    "epoch": each.epoch,
                    "last_sequence": each.last_sequence,
                    "last_timestamp": str(each.last_timestamp) if each.last_timestamp >= 0 else None,
                    "open_since": str(each.transaction_start) if each.transaction_start >= 0 else None,
                }
                for item, producers in sorted(found.done.items())
                for each in producers
            ],
            "failed": {str(item.partition): str(why) for item, why in sorted(found.failed.items())},
        }
    )
