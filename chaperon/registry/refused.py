"""Commands that are refused as a whole, each with what to do instead. Pure."""

from __future__ import annotations

from agent_sandbox.chaperon.words import Command

OUTSIDE = "would run outside the jail"

REFUSED = tuple([
    Command(name=name, permutes=False, operands="script", reason=reason, instead=instead)
    for name, reason, instead in (
        ("sdiag", "shows what other people ask of the scheduler", "use sinfo and squeue"),
        ("sreport", "shows what other people used", "use sacct, or sshare for your share"),
        ("strigger", f"the programs that it starts {OUTSIDE}", "use sbatch --dependency, or look with squeue"),
        ("sattach", "comes with a later version", "read the job's output file"),
        ("sbcast", f"it writes files on the nodes, which {OUTSIDE}", "copy files in the script"),
        ("scrontab", f"jobs that come back by themselves {OUTSIDE}", "use sbatch --begin, and submit again in the script"),
        ("scrun", f"containers {OUTSIDE}", "run the container in the script"),
    )
])  # fmt: skip
