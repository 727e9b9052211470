"""A directory and three ports become the places and the configuration files of one cluster. Pure.

Below the directory: `etc` and `key` appear at /etc/slurm and /etc/munge, `munge` at /run/munge, in the cluster's own mount namespace;
`client/slurm.conf` is for programs outside that namespace and names the same munge by its path.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CPUS = 16  # more than there are: jobs of tests that run at the same time do not queue
PARTITIONS = ("debug", "short")
ACCOUNTS = ("users", "physics")
QOS = ("normal", "high")
CLUSTER = "test"
FIRST_JOB = 10001  # so that an id is told from every other number


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where one cluster keeps its things."""

    top: Path

    @property
    def etc(self) -> Path:
        return self.top / "etc"

    @property
    def client(self) -> Path:
        return self.top / "client"

    @property
    def key(self) -> Path:
        return self.top / "key"

    @property
    def munge(self) -> Path:
        return self.top / "munge"

    @property
    def socket(self) -> Path:
        """Munge's; at the same name in its directory as everywhere."""
        return self.munge / "munge.socket.2"

    @property
    def database(self) -> Path:
        """In the cluster's own mount namespace a file system in memory: it is quick, and gone with the last daemon."""
        return self.top / "database"

    @property
    def state(self) -> Path:
        return self.top / "state"

    @property
    def spool(self) -> Path:
        return self.top / "spool"

    @property
    def log(self) -> Path:
        return self.top / "log"

    @property
    def clients(self) -> Path:
        """One file for each test process that wants the cluster, named by its pid and start time."""
        return self.top / "clients"

    @property
    def down(self) -> Path:
        """One file for each daemon that a test wants to be down."""
        return self.top / "down"

    @property
    def ready(self) -> Path:
        return self.top / "ready"

    @property
    def keeper(self) -> Path:
        return self.top / "keeper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    controller: int
    node: int
    accounting: int


def slurm_conf(places: Places, ports: Ports, host: str, memory: int) -> str:
    """Slurm belongs to root: that user is known in every jail, so what keeps Slurm out of reach there is not a missing name."""
    node = f"CPUs={CPUS} Boards=1 SocketsPerBoard=1 CoresPerSocket={CPUS} ThreadsPerCore=1 RealMemory={memory}"
    return f"""\
ClusterName={CLUSTER}
FirstJobId={FIRST_JOB}
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
SlurmctldPort={ports.controller}
SlurmdPort={ports.node}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={places.state}
SlurmdSpoolDir={places.spool}
SlurmctldPidFile={places.state}/slurmctld.pid
SlurmdPidFile={places.spool}/slurmd.pid
SlurmctldLogFile={places.log}/slurmctld
SlurmdLogFile={places.log}/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
ReturnToService=2
KillWait=1
EnforcePartLimits=ALL
MessageTimeout=5
MinJobAge=600
MailProg=/bin/true
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={ports.accounting}
AccountingStorageEnforce=associations,limits,qos
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
NodeName={host} NodeAddr=127.0.0.1 {node} State=UNKNOWN
PartitionName={PARTITIONS[0]} Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
PartitionName={PARTITIONS[1]} Nodes=ALL MaxTime=60 State=UP OverSubscribe=FORCE:8
"""


def client_conf(places: Places) -> str:
    """The second line is for accounting: what is called a password there is the path of munge's socket."""
    return f"AuthInfo=socket={places.socket}\nAccountingStoragePass={places.socket}\nInclude {places.etc}/slurm.conf\n"


def cgroup_conf() -> str:
    """slurmd loads a cgroup plugin whatever the others are; the one that it would choose by itself needs systemd, this one writes nothing."""
    return "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"


def slurmdbd_conf(places: Places, ports: Ports) -> str:
    return f"""\
AuthType=auth/munge
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports.accounting}
SlurmUser=root
LogFile={places.log}/slurmdbd
PidFile={places.state}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=accounting
CommunicationParameters=NoInAddrAny
"""
