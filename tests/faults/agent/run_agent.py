"""An agent in a process of its own, to be killed: `python -m tests.faults.agent.run_agent agent.toml`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from penstock.agent.agent import Agent
from penstock.agent.settings import read_agent


async def main() -> None:
    await Agent(read_agent(Path(sys.argv[1]))).run()


if __name__ == "__main__":
    asyncio.run(main())
