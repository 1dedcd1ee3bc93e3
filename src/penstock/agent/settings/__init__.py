"""The agent's file: TOML in, frozen settings out, every mistake with its place.

`examine` never stops at the first mistake; `read_agent` raises them all. Nothing is opened, bound or asked here: what
the world says to the settings is found out when the agent starts. Imports `declared`, the inputs' own readers (when
their kind is named) and the readers of transforms and routing. Begin with `model.py`.
"""

from penstock.agent.settings.model import AgentSettings, InputSettings, OutputSettings, SpoolSettings
from penstock.agent.settings.reading import Examined, examine, read_agent

__all__ = [
    "AgentSettings",
    "Examined",
    "InputSettings",
    "OutputSettings",
    "SpoolSettings",
    "examine",
    "read_agent",
]
