"""The one table of keys: what may be written in a config file, and how the ranks combine it. Pure.

The parser, `config show`, the reference page and completion are made from this table; a key cannot exist without its
rule. Choices are written *strictest first*. Shipped lists are data, in defaults.toml.
"""

from __future__ import annotations

from agent_sandbox.config.record import record

PROPERTIES = (
    "fs-read", "fs-write", "hidden", "environment", "pids", "ipc", "tmp", "users", "devices", "tty", "syscalls",
    "unix-sockets", "abstract-sockets", "network", "mail", "slurm", "limits", "project-protect", "self-protection",
)  # fmt: skip
NETWORKS = ("isolated", "proxied", "filtered", "open")
PRESETS = ("agents", "packages", "git", "science")


@record
class Key:
    """One key. `kind` names what its value looks like (kinds.py), `rule` how the ranks combine it (rules.py)."""

    name: str
    kind: str
    rule: str
    help: str
    default: bool | int | str | None = None  # None: unset
    choices: tuple[bool | str, ...] = ()  # strictest first; for a list: the only names it may hold
    veto: str = ""  # the key whose entries of a higher rank deny entries here
    admin_values: tuple[str, ...] = ()  # choices that only an admin may make
    takes_off: str = ""  # the key whose shipped entries an entry here takes off
    at_most: str = ""  # the key that this one is never looser than, and that stands in for it while it is unset
    globs: bool = False  # paths may hold * ? [
    real: bool = False  # paths are compared, and kept, with their symbolic links resolved
    unready: str = ""  # the part that uses it is not built: "holds" (harmless so far) or "refuses" (a launch must stop)

    @property
    def ready(self) -> bool:
        return not self.unready

    @property
    def paths(self) -> bool:
        return self.kind == "paths"

    @property
    def listed(self) -> bool:
        return self.kind in LISTS


LISTS = frozenset({"names", "variables", "paths", "within", "table", "tables", "hosts", "openings"})  # kinds that hold entries, each with its origin


def _flag(name: str, rule: str, help: str, *, default: bool, strict: bool = True) -> Key:
    return Key(name=name, kind="flag", rule=rule, help=help, default=default, choices=(strict, not strict))


def _choice(name: str, rule: str, default: str | None, choices: tuple[str, ...], help: str, **more: object) -> Key:
    return _make(name, "choice", rule, help, default=default, choices=choices, **more)


def _make(name: str, kind: str, rule: str, help: str, **more: object) -> Key:
    return Key(name=name, kind=kind, rule=rule, help=help, **more)  # type: ignore[arg-type]


def _sandbox() -> tuple[Key, ...]:
    return (
        _choice("sandbox.backend", "last", "auto", ("auto", "bwrap", "firejail", "landlock"),
                "which mechanism builds the jail; auto takes the first that can"),
        _make("sandbox.require", "names", "union", "properties without which a launch stops", choices=PROPERTIES),
        _make("sandbox.accept_gaps", "names", "vetoed", "required properties you can do without here",
              choices=PROPERTIES, veto="sandbox.require"),
        _flag("sandbox.nested_userns", "strictest", "let programs inside make user namespaces (Apptainer)",
              default=False, strict=False),
        _flag("sandbox.quiet", "last", "no start line; clamps and gaps are still named", default=False),
    )  # fmt: skip


def _project() -> tuple[Key, ...]:
    return (
        _make("project.parents", "paths", "narrow", "directories below which a project may lie; unset: anywhere",
              real=True),
        _make("project.protect", "within", "union", "parts of the project that run outside later: read-only inside"),
    )  # fmt: skip


def _filesystem() -> tuple[Key, ...]:
    hidden = "filesystem.hidden"
    return (
        _choice("filesystem.home", "strictest", "tmpwrite", ("restricted", "tmpwrite", "read", "write"),
                "what home is inside: a throw-away one (restricted: read-only) with listed paths, or the real one"),
        _flag("filesystem.private_tmp", "strictest", "a /tmp of its own, gone at the end", default=True),
        _make(hidden, "paths", "union", "paths that are never there inside, in every home mode", globs=True),
        _make("filesystem.reveal", "paths", "vetoed", "entries to take off the shipped list of hidden paths",
              veto=hidden, takes_off=hidden, globs=True),
        _make("filesystem.readonly", "paths", "vetoed", "more paths to see inside", veto=hidden),
        _make("filesystem.writable", "paths", "vetoed", "more paths to write inside",
              veto="filesystem.deny_writable", real=True),
        _make("filesystem.deny_writable", "paths", "admin", "paths that nobody may make writable", real=True),
        _make("filesystem.system", "paths", "vetoed", "system directories, read-only inside", veto=hidden),
        _make("filesystem.seed", "paths", "vetoed", "files that are throw-away copies inside", veto=hidden),
        _make("filesystem.devices", "paths", "vetoed", "devices to pass through, where they exist",
              veto="filesystem.deny_devices", globs=True),
        _make("filesystem.deny_devices", "paths", "admin", "devices that only an admin may pass through", globs=True),
    )  # fmt: skip


def _environment() -> tuple[Key, ...]:
    block = "environment.block"
    return (
        _choice("environment.mode", "strictest", "filtered", ("minimal", "filtered"),
                "pass only environment.keep, or everything that is not blocked"),
        _make(block, "variables", "union", "variables that do not pass; * and ?, a /i at the end for any case"),
        _make("environment.allow", "variables", "vetoed", "variables that pass although a shipped pattern blocks them",
              veto=block),
        _make("environment.keep", "variables", "vetoed", "what minimal mode passes", veto=block),
        _make("environment.set", "table", "vetoed", "variables to set inside", veto=block),
        _flag("environment.strip_passwords", "strictest", "take user:password@ out of values that pass", default=True),
    )  # fmt: skip


def _sockets() -> tuple[Key, ...]:
    return (
        _make("sockets.allow", "paths", "vetoed", "unix sockets that can be reached inside", veto="sockets.deny",
              globs=True),
        _make("sockets.deny", "paths", "admin", "unix sockets that nobody may allow", globs=True),
    )  # fmt: skip


def _network() -> tuple[Key, ...]:
    block = "network.block"
    return (
        _choice("network.mode", "strictest", "filtered", NETWORKS, "how much of the network is there inside"),
        _choice("network.fallback", "strictest", "stricter", ("refuse", "stricter", "weaker"),
                "what to do where the mode cannot be had", admin_values=("weaker",)),
        _make(block, "hosts", "union", "hosts, networks and ports that cannot be reached"),
        _make("network.allow", "hosts", "vetoed", "hosts, networks and ports that can", veto=block),
        _choice("network.default", "strictest", "allow", ("deny", "allow"), "what holds for hosts on no list"),
        _make("network.presets", "names", "narrow", "shipped allow lists to use; unset: all", choices=PRESETS),
        _make("network.floor_open", "openings", "admin", "parts of the floor to open: a part's name, a network, a host, a port"),
        _make("network.upstream_proxy", "upstream", "last", "the site's proxy, as host:port, where there is no other way out", default=""),
        _make("network.no_proxy", "hosts", "last", "hosts and networks to reach without the site's proxy"),
        _make("network.inject", "tables", "added", "credentials that the proxy adds for a host, and that never enter"),
        _make("network.ca_bundle", "paths", "vetoed", "files in PEM with CAs to trust inside, besides the system's", veto="filesystem.hidden"),
        _make("network.max_connections", "number", "least", "connections at one time"),
        _make("network.max_bytes", "size", "least", "bytes to and fro in one session"),
        _make("network.max_rate", "size", "least", "bytes to and fro in one second"),
        _choice("mail.stubs", "strictest", "auto", ("on", "auto", "off"), "turn sending mail into a plain refusal"),
    )  # fmt: skip


def _slurm() -> tuple[Key, ...]:
    caps = {
        "nodes": "nodes of one job", "tasks": "tasks of one job", "cpus": "CPUs of one job", "gpus": "GPUs of one job",
        "array": "tasks of one array", "jobs": "jobs in flight", "submit_rate": "submissions in one minute",
    }  # fmt: skip
    return (
        _choice("slurm.enabled", "strictest", "auto", ("off", "auto", "on"),
                "Slurm commands inside; auto: where Slurm is installed"),
        _choice("slurm.scope", "strictest", "project", ("session", "project", "user"),
                "whose jobs can be seen and changed inside"),
        *(_make(f"slurm.max_{name}", "number", "least", f"most {of}") for name, of in caps.items()),
        _make("slurm.max_time", "duration", "least", "longest time of one job"),
        _make("slurm.partitions", "names", "admin", "partitions that jobs may use; unset: any"),
        _make("slurm.accounts", "names", "admin", "accounts that jobs may use; unset: any"),
        _make("slurm.qos", "names", "admin", "QOS that jobs may use; unset: any"),
        _choice("slurm.network", "strictest", None, NETWORKS, "the network mode of jobs, if it is to be stricter",
                at_most="network.mode"),
        _choice("slurm.log_level", "last", "warning", ("error", "warning", "info", "debug"),
                "how much the chaperon logs", unready="holds"),
        _make("slurm.prefix", "text", "admin", "where Slurm is installed, if not found", default=""),
        _make("slurm.conf", "text", "admin", "Slurm's own config file, if not found", default=""),
    )  # fmt: skip


def _limits() -> tuple[Key, ...]:
    return (
        _make("limits.processes", "number", "least", "processes and threads in the jail"),
        _make("limits.open_files", "number", "least", "open files of one process"),
        _make("limits.memory", "size", "least", "address space of one process"),
        _make("limits.file_size", "size", "least", "largest file that can be written"),
        _make("limits.core_size", "size", "least", "largest core dump", default=0),
        _make("limits.cpu_time", "duration", "least", "CPU time of one process"),
        _make("limits.wall_time", "duration", "least", "time after which the whole jail is ended"),
        _choice("seccomp.mode", "strictest", "hpc", ("strict", "hpc", "off"),
                "which system calls are refused; hpc leaves MPI, CUDA and debuggers working", admin_values=("off",)),
        _make("seccomp.deny", "names", "union", "more system calls to refuse"),
    )  # fmt: skip


def _rest() -> tuple[Key, ...]:
    return (
        _make("agents.enabled", "names", "narrow", "agents whose profile may be used; unset: all", unready="holds"),
        _make("agents.deny", "names", "union", "agents that may not be started", unready="holds"),
        _make("modules.load", "names", "last", "environment modules to load before the command", unready="refuses"),
        _make("modules.init", "text", "last", "the script that defines the module command, if not found", default="",
              unready="holds"),
        _flag("audit.enabled", "strictest", "write the audit log", default=True),
        _flag("audit.kernel", "strictest", "have the kernel log what Landlock refuses (Linux 6.15, the landlock backend)", default=False),
        _make("audit.keep_days", "number", "last", "days to keep audit files", default=90),
        _make("audit.max_size", "size", "last", "most room for audit files", default=64 << 20),
    )  # fmt: skip


KEYS: dict[str, Key] = {
    key.name: key
    for group in (_sandbox, _project, _filesystem, _environment, _sockets, _network, _slurm, _limits, _rest)
    for key in group()
}
SECTIONS: dict[str, tuple[str, ...]] = {
    section: tuple(name for name in KEYS if name.startswith(section + "."))
    for section in dict.fromkeys(name.partition(".")[0] for name in KEYS)
}
