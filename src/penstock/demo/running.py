"""All of it: stage, story, view, evidence, verdicts, summary; an exit code; and nothing left behind."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import Final

from rich.console import Console

from penstock.client.errors import ClientError
from penstock.demo import summary
from penstock.demo.checks import Verdict, judge
from penstock.demo.evidence import Findings
from penstock.demo.gathering import gather
from penstock.demo.lines import Show, show_for
from penstock.demo.nodes import Nodes
from penstock.demo.plan import Plan
from penstock.demo.sight import Sight
from penstock.demo.stage import Stage
from penstock.demo.story import Story
from penstock.demo.traffic import lines_until
from penstock.demo.watching import watch
from penstock.model.errors import PenstockError
from penstock.transport.dial import LinkError

OK, FAILED, INTERRUPTED = 0, 1, 130
DRAW_EVERY_S: Final = 0.25
_EXPECTED: Final = (PenstockError, ClientError, LinkError, OSError, TimeoutError)
"""What the world may do; anything else is a mistake of ours and keeps its traceback."""


def run(nodes: Nodes, plan: Plan, console: Console) -> int:
    """The demo, from nothing to its exit code: 0 when every check is good. Everything ends unless it is to be kept."""
    stage = Stage(nodes, plan)
    stays = False
    try:
        findings = asyncio.run(_interruptible(stage, console))
        verdicts = judge(findings.evidence)
        _print(console, stage, findings, verdicts)
        if plan.keep:
            stage.write_on()
            stage.leave()
            stays = True
        failed = [each.name for each in verdicts if not each.good]
        if stays or not failed:
            summary.print_next(console, stage, kept=stays)
        return FAILED if failed else OK
    except (KeyboardInterrupt, asyncio.CancelledError):
        console.print("\n  interrupted: everything that was started is being stopped")
        return INTERRUPTED
    except Exception as failure:
        reason = _innermost(failure)
        if not isinstance(reason, _EXPECTED):
            raise
        console.print(f"\n  ✖ FAILED {reason}", style="bold red", highlight=False, markup=False, soft_wrap=True)
        return FAILED
    finally:
        if not stays:
            # Whoever presses Ctrl-C now wants what is already being done.
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            stage.end()


def _innermost(failure: BaseException) -> BaseException:
    """The first failure in groups of them."""
    return _innermost(failure.exceptions[0]) if isinstance(failure, BaseExceptionGroup) else failure


async def _interruptible(stage: Stage, console: Console) -> Findings:
    """A SIGTERM or a hangup ends it like Ctrl-C."""
    task = asyncio.current_task()
    assert task is not None, "it runs as a task"
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    return await _play(stage, console)


async def _play(stage: Stage, console: Console) -> Findings:
    plan, sight = stage.plan, Sight()
    show = show_for(console, lines_until(plan.seconds, plan.seconds, plan.lines_per_s))
    story = Story(stage, sight, on_event=show.tell)
    show.start()
    try:
        async with asyncio.TaskGroup() as beside:
            drawing = beside.create_task(_draw(story, show))
            await story.begin()
            watching = beside.create_task(watch(stage, sight))
            await story.play()
            sight.now = "everything is read back and checked"
            found = await gather(stage, story.timings())
            drawing.cancel()
            watching.cancel()
        return found
    finally:
        show.close()


async def _draw(story: Story, show: Show) -> None:
    while True:
        story.sight.elapsed_s = time.monotonic() - story.began_s
        story.sight.now_ms = time.time_ns() // 1_000_000
        show.draw(story.sight)
        await asyncio.sleep(DRAW_EVERY_S)


def _print(console: Console, stage: Stage, found: Findings, verdicts: list[Verdict]) -> None:
    summary.print_checks(console, verdicts)
    summary.print_figures(console, found)
    failed = [each.name for each in verdicts if not each.good]
    if failed:
        console.print(f"\n  ✖ FAILED: {', '.join(failed)}\n", style="bold red", highlight=False)
    else:
        summary.print_answer(console, stage)
