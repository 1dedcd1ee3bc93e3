"""An agent for which a day is nine seconds: `python -m tests.life.quick_agent agent run …`.

What an agent remembers of files that are gone it forgets after a day, and looks for it every ten minutes.
"""

from __future__ import annotations

import sys

from penstock.agent.inputs.tail import followed, saving
from penstock.cli.main import main
from tests.life.settings import DAY_MS

SWEEP_MS = 1_000.0

if __name__ == "__main__":
    followed.GONE_FOR_MS = DAY_MS  # type: ignore[misc]  # a constant of the product, by the scale of this life
    saving.SWEEP_MS = SWEEP_MS  # type: ignore[misc]
    main(sys.argv[1:])
