"""sbatch. Pure.

Files that Slurm would open as the user are ours: it gets a log of ours, the wrapper opens what was asked for inside.
"""

from __future__ import annotations

from agent_sandbox.chaperon.registry.jobs import shared
from agent_sandbox.chaperon.registry.make import allow, choose, force, refuse
from agent_sandbox.chaperon.words import VALUE, Command

INSIDE = "opened inside the jail"

SBATCH = Command(
    name="sbatch", permutes=False, operands="script", components=True,
    options=(
        *shared("SBATCH"),
        allow("array", "a", "array", "SBATCH_ARRAY_INX"),
        allow("batch", "", "features", "SBATCH_BATCH"),
        choose("kill-on-invalid-dep", "", "yes no"),
        allow("requeue", env="SBATCH_REQUEUE", group="requeue"),
        allow("no-requeue", env="SBATCH_NO_REQUEUE", group="requeue"),
        allow("parsable"),
        allow("test-only"),
        allow("wait", "W", env="SBATCH_WAIT"),
        force("ignore-pbs", "", "flag", "directives are read here; Slurm sees none", "SBATCH_IGNORE_PBS"),
        force("output", "o", "path", INSIDE, "SBATCH_OUTPUT"),
        force("error", "e", "path", INSIDE, "SBATCH_ERROR"),
        force("input", "i", "path", INSIDE, "SBATCH_INPUT"),
        force("open-mode", "", "choice", INSIDE, "SBATCH_OPEN_MODE", choices=("append", "truncate", "a", "t")),
        force("export", "", "export", "carried out inside the jail", "SBATCH_EXPORT"),
        refuse("export-file", "", VALUE, "would read a file outside the jail", "read it in the script"),
        force("wrap", "", "command", "becomes the script, inside", early=True),
    ),
)  # fmt: skip
