"""What the chaperon is told when its session starts, as bytes between two processes of ours. Pure."""

from __future__ import annotations

import marshal

from agent_sandbox.config.record import record, replace
from agent_sandbox.launcher.audit import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.settings import Settings

NUMBERS = ("max_nodes", "max_tasks", "max_cpus", "max_gpus", "max_time", "max_array", "max_jobs", "max_submit_rate")
LISTS = ("partitions", "accounts", "qos")


@record
class Caps:
    """What one job, and one user, may ask for at most; None = anything."""

    max_nodes: int | None = None
    max_tasks: int | None = None
    max_cpus: int | None = None
    max_gpus: int | None = None
    max_time: int | None = None  # seconds
    max_array: int | None = None
    max_jobs: int | None = None
    max_submit_rate: int | None = None  # in one minute
    partitions: tuple[str, ...] | None = None
    accounts: tuple[str, ...] | None = None
    qos: tuple[str, ...] | None = None


@record
class Orders:
    session: str
    fifos: str  # the one directory of the jail's that we touch
    state: str  # the state directory: ledger, forced logs
    project: str
    project_id: str
    user: str
    uid: int
    home: str
    entry: str  # the installed program, the interpreter and the library that a node starts from
    python: str
    library: str
    programs: str  # where the real sbatch is
    slurm_conf: str  # "" = where Slurm looks by itself
    settings: dict[str, object]  # as Settings.as_data gives them
    caps: Caps
    scope: str
    mail: bool  # may Slurm send mail for the jail?
    log: Log


def caps_of(settings: Settings) -> Caps:
    numbers = {name: settings.number(f"slurm.{name}") for name in NUMBERS}
    lists = {name: settings.names(f"slurm.{name}") if settings.is_set(f"slurm.{name}") else None for name in LISTS}
    return Caps(**numbers, **lists)  # type: ignore[arg-type]


def pack(orders: Orders) -> bytes:
    return marshal.dumps((dict(replace(orders, caps=None, log=None).__dict__), dict(orders.caps.__dict__), dict(orders.log.__dict__)))


def unpack(packed: bytes) -> Orders:
    orders, caps, log = marshal.loads(packed)
    return Orders(**{**orders, "caps": Caps(**caps), "log": Log(**log)})
