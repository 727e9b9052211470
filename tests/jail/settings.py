"""The settings in which facts are looked at: each is one launch."""

from __future__ import annotations

from dataclasses import dataclass

from agent_sandbox.launcher.policy import Property

GRANTS = ("--ro", "{data}", "--rw", "{out}", "--hide", "{data}/secret")
LIMITS = ("memory=2G", "file_size=1M", "open_files=64", "cpu_time=1", "processes=40")
SECRETS = ("GH_TOKEN", "MYPASS", "AWS_SESSION", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "SLURM_CONF", "SLURM_JWT")
VARIABLES = {**dict.fromkeys(SECRETS, "hunter2"), "PLAIN": "plain", "HTTPS_PROXY": "http://ada:hunter2@proxy:3128"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Braces name places of a World. Gaps are accepted, so that they can be looked at – but for those in `insists_on`."""

    says: str
    options: tuple[str, ...] = ()
    config: str = ""
    admin: str | None = None
    insists_on: tuple[Property, ...] = ()
    in_terminal: bool = False
    crowded: bool = False  # with many processes of the user's outside


SETTINGS = {
    "usual": Setting(says="a home of its own, no network", options=(*GRANTS, "--network", "isolated", "--set-env", "SET_INSIDE=a=b")),
    "restricted": Setting(says="--home restricted", options=("--home", "restricted")),
    "read": Setting(says="--home read", options=("--home", "read")),
    "write": Setting(says="--home write", options=("--home", "write")),
    "vault": Setting(says="something hidden in the project", options=("--hide", "{project}/vault", "--hide", "{project}/vault-file")),
    "accounts": Setting(says="accounts are added meanwhile"),
    "proxied": Setting(says="--network proxied", options=("--network", "proxied")),
    "open": Setting(says="--network open", options=("--network", "open")),
    "closed": Setting(
        says="pids and ipc required", config='[sandbox]\nrequire = ["pids", "ipc"]\n', insists_on=(Property.PIDS, Property.IPC),
    ),
    "calls": Setting(says="strict system calls", config='[seccomp]\nmode = "strict"\ndeny = ["sched_getscheduler"]\n'),
    "device": Setting(says="a device passed through", config='[filesystem]\ndevices = ["{device}"]\n'),
    "terminal": Setting(says="at a terminal", in_terminal=True),
    "sockets": Setting(says="a socket granted", config='[sockets]\nallow = ["{granted}"]\n'),
    "vetoed": Setting(
        says="a socket granted and denied by the admin", config='[sockets]\nallow = ["{granted}"]\n',
        admin='[sockets]\ndeny = ["{granted}"]\n',
    ),
    "service": Setting(says="services that listen in what is granted", options=("--ro", "{service}")),
    "limits": Setting(says="every limit set", options=tuple(word for limit in LIMITS for word in ("--limit", limit))),
    "crowded": Setting(says="a limit on processes, and many outside", options=("--limit", "processes=40"), crowded=True),
}  # fmt: skip
