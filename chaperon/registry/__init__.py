"""Option tables: what each Slurm command knows, from 22.05 to 25.x, and what becomes of it. Pure."""

from __future__ import annotations

from agent_sandbox.chaperon.registry.refused import REFUSED
from agent_sandbox.chaperon.registry.sacct import SACCT
from agent_sandbox.chaperon.registry.sbatch import SBATCH
from agent_sandbox.chaperon.registry.scancel import SCANCEL
from agent_sandbox.chaperon.registry.scontrol import SACCTMGR, SCONTROL
from agent_sandbox.chaperon.registry.sinfo import SINFO
from agent_sandbox.chaperon.registry.squeue import SPRIO, SQUEUE, SSHARE, SSTAT
from agent_sandbox.chaperon.registry.srun import SALLOC, SRUN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.chaperon.words import Command

COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (SBATCH, SRUN, SALLOC, SQUEUE, SCANCEL, SCONTROL, SACCT, SACCTMGR, SINFO, SSTAT, SPRIO, SSHARE, *REFUSED)
}


def variables(command: Command) -> tuple[str, ...]:
    """The environment variables that the command reads: all that a stub needs to send."""
    own = [name for option in command.options for name in option.variables]
    extra = EXTRA.get(command.name, ())
    return tuple(dict.fromkeys((*own, *extra)))


# Variables that are no option by themselves: the longest wait for --switches, the nodes that `show hostnames` means.
EXTRA = {"sbatch": ("SBATCH_WAIT4SWITCH",), "scontrol": ("SLURM_JOB_NODELIST", "SLURM_NODELIST")}
