"""`penstock sim`: a whole cluster under a seed, in virtual time; the same seed gives the same story."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.amounts import Seconds
from penstock.cli.failures import FAILED
from penstock.cli.options import examples, format_option
from penstock.cli.output import show
from penstock.model.units import count

if TYPE_CHECKING:
    from penstock.testing.sim.story import Story


@click.command(epilog=examples("penstock sim --seed 7", "penstock sim --seed 1 --seeds 3 --seconds 5"))
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="The first seed.")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="How many seeds, one by one.")
@click.option("--nodes", type=click.IntRange(1, 9), default=3, show_default=True, help="How many nodes a cluster has.")
@click.option(
    "--seconds",
    type=Seconds(min=0.1),
    default=15.0,
    show_default=True,
    help="Virtual seconds during which things go wrong; starting, healing and judging come on top.",
)
@click.option("--minutes", type=click.FloatRange(min=0), help="Real minutes after which no further seed is begun.")
@click.option("--secured", is_flag=True, help="Everybody logs in, and ACLs that change all the time decide.")
@click.option("--transactions", is_flag=True, help="Clients write in transactions, die in them, and are fenced.")
@format_option
def sim(
    seed: int,
    seeds: int,
    nodes: int,
    seconds: float,
    minutes: float | None,
    secured: bool,
    transactions: bool,
    style: str,
) -> None:
    """Run a whole cluster in virtual time, hurt it, and check that nothing acknowledged is lost.

    Real nodes and clients run on simulated machines: processes are killed and paused, machines lose power, networks
    split, disks fail, clocks are off; meanwhile records expire, logs are compacted, topics are made anew and replicas
    move. The seed decides all of it, so a failure can be replayed exactly. Exit code 1 when an invariant was violated;
    what happened before is printed then.
    """
    from penstock.testing.sim import run

    began = time.monotonic()
    stories: list[Story] = []
    for number in range(seed, seed + seeds):
        if minutes is not None and stories and time.monotonic() - began >= minutes * 60:
            break
        story = run(number, nodes=nodes, seconds=seconds, secured=secured, transactions=transactions)
        stories.append(story)
        if seeds > 1 and story.ok:
            click.echo(_line(story), err=True)
        if not story.ok:
            break
    took_s = time.monotonic() - began
    last = stories[-1]
    rate = f"{count('seed', len(stories))} in {took_s:.1f} s, {len(stories) / took_s:.2f} a second"
    show(_data(stories, took_s), style, f"{last.text()}\n{rate}")
    if not last.ok:
        click.get_current_context().exit(FAILED)


def _line(story: Story) -> str:
    acks = count("ack", story.counts.get("acknowledged", 0))
    return f"seed {story.seed}: {story.virtual_s:.1f} s, {count('step', story.steps)}, {acks}"


def _data(stories: list[Story], took_s: float) -> dict[str, Any]:
    last = stories[-1]
    return {
        "seeds": len(stories),
        "seeds_per_second": round(len(stories) / took_s, 3),
        "virtual_seconds": round(sum(story.virtual_s for story in stories), 3),
        "ok": last.ok,
        "last": {
            "seed": last.seed,
            "nodes": last.nodes,
            "digest": last.digest,
            "counts": dict(sorted(last.counts.items())),
            "violations": last.violations,
            "story": [] if last.ok else [str(happening) for happening in last.last],
        },
    }
