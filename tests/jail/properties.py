"""What a jail is: the one table of facts. Each belongs to a property, and says what is tried, in which setting, and what must come of it.

`refused`: the act works outside and does not inside. `given`: it works inside. `untouched`: done inside it leaves nothing outside, where
done outside it does. `told`: done inside, it is named when the session ends. Names in braces are places of a `World`; the acts are
functions of acts.py; the settings are those of settings.py. `lacking` names the backends that cannot give it: each of them must then name
a gap or a weak point in that property by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from agent_sandbox.launcher.policy import Property

FIREJAIL, LANDLOCK = "firejail", "landlock"
MAILERS = (Path(__file__).resolve().parents[2] / "launcher/mail/names.txt").read_text().split()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    says: str
    act: tuple[str, ...]
    setting: str
    lacking: tuple[str, ...]
    given: bool = False
    leaves: str = ""  # a path that is there outside when the act was done; "answer": the one that the act names
    told: str = ""  # what the launcher says about it in the end
    property: Property = Property.FS_READ

    def name(self) -> str:
        return f"{self.property}: {self.says}"


def refused(says: str, *act: str, setting: str = "usual", lacking: tuple[str, ...] = ()) -> Fact:
    return Fact(says=says, act=act, setting=setting, lacking=lacking)


def given(says: str, *act: str, setting: str = "usual", lacking: tuple[str, ...] = ()) -> Fact:
    return Fact(says=says, act=act, setting=setting, lacking=lacking, given=True)


def untouched(says: str, leaves: str, *act: str, setting: str = "usual", lacking: tuple[str, ...] = ()) -> Fact:
    return Fact(says=says, act=act, setting=setting, lacking=lacking, leaves=leaves)


def told(says: str, words: str, *act: str, setting: str = "usual", lacking: tuple[str, ...] = ()) -> Fact:
    return Fact(says=says, act=act, setting=setting, lacking=lacking, told=words)


TABLE: dict[Property, tuple[Fact, ...]] = {
    Property.FS_READ: (
        given("the project can be read", "read", "{project}/here"),
        given("programs of the system can be run", "runs", "/usr/bin/env"),
        given("a path granted for reading can be read", "read", "{data}/table"),
        given("a file of the system that is replaced outside can be read", "reads_when_asked", "/etc/passwd", "{project}/chore-account",
              setting="accounts", lacking=(LANDLOCK,)),
        refused("a file of yours outside the project cannot be read", "read", "{home}/notes"),
        refused("a directory of yours outside the project cannot be listed", "lists", "{home}/private", "diary"),
        refused("a program of yours outside the project cannot be run", "runs", "{home}/private/tool"),
        refused("a link in the project leads to nothing outside", "read", "{project}/to-notes"),
        refused("the root directory of a process outside is no way around", "read", "/proc/{pid}/root{home}/notes"),
        refused("the working directory of a process outside is no way around", "read", "/proc/{pid}/cwd/notes"),
        refused("other disks cannot be read", "read", "{mnt}/file"),
        refused("directories in / cannot be read", "read", "{top}/file"),
        refused("the names of directories in / cannot be listed", "lists", "/", "{top_name}", lacking=(FIREJAIL,)),
        refused("a directory made in / later cannot be read", "reads_when_asked", "{later}/file", "{project}/chore-later", lacking=(FIREJAIL,)),
    ),
    Property.FS_WRITE: (
        given("the project can be written", "makes", "{project}/made"),
        given("files in the project can be moved from directory to directory", "moves", "{project}/here-too", "{project}/sub/there"),
        given("modes of files in the project can be changed", "changes_mode", "{project}/here"),
        given("times of files in the project can be changed", "changes_times", "{project}/here"),
        given("a path granted for writing can be written", "makes", "{out}/made"),
        refused("a file granted for reading cannot be written", "appends", "{data}/table"),
        refused("… nor opened for reading and writing", "opens_for_both", "{data}/table"),
        refused("… nor cut short", "truncates", "{data}/truncates"),
        refused("… nor removed", "removes", "{data}/removes"),
        refused("… nor moved", "moves", "{data}/moves", "{data}/moved"),
        refused("… nor moved into the project", "moves", "{data}/moves-away", "{project}/moved"),
        refused("… nor given a second name in the project", "links", "{data}/links", "{project}/linked"),
        refused("… nor replaced by a file of the project", "moves", "{project}/replacement", "{data}/replaced"),
        refused("nothing can be made beside it", "makes", "{data}/made"),
        refused("… no directory", "makes_directory", "{data}/made-directory"),
        refused("… no symbolic link", "makes_link", "{data}/made-link"),
        refused("… no FIFO", "makes_fifo", "{data}/made-fifo"),
        refused("… no socket", "talks_to_itself", "{data}/made-socket"),
        refused("its directories cannot be removed", "removes_directory", "{data}/empty"),
        refused("its mode cannot be changed", "changes_mode", "{data}/mode"),
        refused("… nor by an open file", "changes_mode_of_open", "{data}/mode-of-open"),
        refused("its owner cannot be changed", "changes_owner", "{data}/owner"),
        refused("its times cannot be changed", "changes_times", "{data}/times"),
        refused("… nor by an open file", "changes_times_of_open", "{data}/times-of-open"),
        refused("its attributes cannot be changed", "sets_attribute", "{data}/attribute"),
        refused("… nor by an open file", "sets_attribute_of_open", "{data}/attribute-of-open"),
        refused("its flags (chattr) cannot be changed", "sets_flags", "{data}/flags"),
        refused("the mode of a file that is not granted cannot be changed", "changes_mode", "{home}/notes-mode"),
        refused("the times of a file that is not granted cannot be changed", "changes_times", "{home}/notes-times"),
        refused("a file that is not granted cannot be cut short", "truncates", "{home}/notes-short"),
        untouched("what is made in home stays in the throw-away home", "{home}/left", "makes", "{home}/left"),
        untouched("other disks cannot be written", "{mnt}/left", "makes", "{mnt}/left"),
        refused("home cannot be written in read mode", "makes", "{home}/made-in-read", setting="read"),
        given("home can be written in write mode", "makes", "{home}/made-in-write", setting="write"),
        refused("… but for what runs when you log in", "appends", "{home}/.bashrc", setting="write", lacking=("bwrap", FIREJAIL, LANDLOCK)),
    ),
    Property.HIDDEN: (
        refused("a hidden key cannot be read", "read", "{key}"),
        refused("… in a restricted home", "read", "{key}", setting="restricted"),
        refused("… in a home that can be read", "read", "{key}", setting="read"),
        refused("… in a home that can be written", "read", "{key}", setting="write", lacking=(LANDLOCK,)),
        refused("a hidden directory cannot be listed", "lists", "{home}/.ssh", "id_ed25519"),
        refused("a hidden file below a path granted for reading cannot be read", "read", "{data}/secret/token"),
        given("… and what lies beside it can", "read", "{data}/beside"),
        refused("a hidden file in the project cannot be read", "read", "{project}/vault/token", setting="vault", lacking=(LANDLOCK,)),
        refused("a link in the project does not lead to a hidden file", "read", "{project}/to-key"),
        refused("another spelling of its path does not either", "read", "{home}/.//.ssh/../.ssh/id_ed25519"),
        refused("nor does the root directory of a process outside", "read", "/proc/{pid}/root{key}"),
        refused("a hidden file that is replaced outside meanwhile cannot be read", "reads_when_asked", "{netrc}", "{project}/chore-netrc"),
        refused("… in a home that can be read", "reads_when_asked", "{netrc}", "{project}/chore-netrc", setting="read", lacking=(FIREJAIL,)),
        refused("a hidden file that is made outside meanwhile cannot be read", "reads_when_asked", "{home}/.pgpass", "{project}/chore-pgpass"),
        refused("… in a home that can be read", "reads_when_asked", "{home}/.pgpass", "{project}/chore-pgpass", setting="read",
                lacking=(FIREJAIL,)),
        refused("a hidden file in the project that is replaced outside meanwhile cannot be read",
                "reads_when_asked", "{project}/vault-file", "{project}/chore-vault", setting="vault",
                lacking=("bwrap", FIREJAIL, LANDLOCK)),
        refused("that a hidden file exists cannot be seen", "sees", "{key}", lacking=(LANDLOCK,)),
        refused("… in a home that can be read", "sees", "{home}/.ssh", setting="read", lacking=(FIREJAIL, LANDLOCK)),
        refused("… below a path granted for reading", "sees", "{data}/secret", lacking=(FIREJAIL, LANDLOCK)),
        untouched("nothing can be put in a hidden directory", "{home}/.ssh/authorized_keys", "makes", "{home}/.ssh/authorized_keys"),
        untouched("… in a home that can be written", "{home}/.ssh/planted", "makes", "{home}/.ssh/planted", setting="write", lacking=(LANDLOCK,)),
    ),
    Property.ENVIRONMENT: (
        given("a plain variable passes", "has_variable", "PLAIN", "plain"),
        given("a variable that was set for the jail is there", "has_variable", "SET_INSIDE", "a=b"),
        refused("a token does not pass", "has_variable", "GH_TOKEN", "hunter2"),
        refused("a password does not pass", "has_variable", "MYPASS", "hunter2"),
        refused("credentials of a cloud do not pass", "has_variable", "AWS_SESSION", "hunter2"),
        refused("the way to an ssh agent does not pass", "has_variable", "SSH_AUTH_SOCK", "hunter2"),
        refused("the way to the session bus does not pass", "has_variable", "DBUS_SESSION_BUS_ADDRESS", "hunter2"),
        refused("a password in the address of a proxy is taken out", "has_variable", "HTTPS_PROXY", "http://ada:hunter2@proxy:3128"),
        refused("no process inside has a secret variable", "finds_in_processes", "hunter2"),
    ),
    Property.PIDS: (
        given("processes inside can be signalled", "ends_own_child"),
        given("a debugger can trace what it started", "traces_own_child"),
        refused("a process outside cannot be signalled", "signals", "{pid}"),
        refused("… nor by a pidfd", "signals_by_file", "{pid}"),
        refused("… nor traced", "traces", "{pid}"),
        refused("its memory cannot be read", "reads_memory", "{pid}"),
        refused("its open files cannot be taken", "takes_open_file", "{pid}"),
        refused("its environment cannot be read", "read", "/proc/{pid}/environ"),
        refused("where its open files lie cannot be read", "reads_link", "/proc/{pid}/fd/0"),
        refused("its arguments cannot be read", "read", "/proc/{pid}/cmdline", lacking=(LANDLOCK,)),
        refused("that it exists cannot be seen", "lists", "/proc", "{pid}", lacking=(LANDLOCK,)),
        refused("its priority cannot be changed", "lowers_priority", "{pid}"),
        refused("its limits cannot be changed", "changes_limit", "{pid}"),
        refused("its processors cannot be changed", "changes_processors", "{pid}", lacking=(LANDLOCK,)),
        refused("its arguments cannot be read, where pids is required", "read", "/proc/{pid}/cmdline", setting="closed"),
        refused("that it exists cannot be seen, where pids is required", "lists", "/proc", "{pid}", setting="closed"),
        refused("it cannot be signalled, where pids is required", "signals", "{pid}", setting="closed"),
        refused("its environment cannot be read, where pids is required", "read", "/proc/{pid}/environ", setting="closed"),
        refused("its priority cannot be changed, where pids is required", "lowers_priority", "{pid}", setting="closed"),
        refused("its processors cannot be changed, where pids is required", "changes_processors", "{pid}", setting="closed",
                lacking=(LANDLOCK,)),
    ),
    Property.IPC: (
        given("programs inside can share memory", "makes_shared_memory"),
        refused("System V shared memory of outside cannot be attached", "attaches", "{key_number}", lacking=(LANDLOCK,)),
        refused("… nor by its number", "attaches_number", "{memory}", lacking=(LANDLOCK,)),
        refused("a System V message queue of outside cannot be found", "finds_queue", "{key_number}", lacking=(LANDLOCK,)),
        refused("System V semaphores of outside cannot be found", "finds_semaphores", "{key_number}", lacking=(LANDLOCK,)),
        refused("a POSIX message queue of outside cannot be opened", "opens_posix_queue", "{queue}"),
        refused("/dev/shm of outside cannot be read", "read", "{shm}", lacking=(LANDLOCK,)),
        untouched("what is made in /dev/shm is not there outside", "{shm}-left", "makes", "{shm}-left", lacking=(LANDLOCK,)),
        refused("System V shared memory of outside cannot be attached, where ipc is required", "attaches", "{key_number}", setting="closed"),
        refused("a System V message queue of outside cannot be found, where ipc is required", "finds_queue", "{key_number}", setting="closed"),
        refused("a POSIX message queue of outside cannot be opened, where ipc is required", "opens_posix_queue", "{queue}", setting="closed"),
        refused("/dev/shm of outside cannot be read, where ipc is required", "read", "{shm}", setting="closed"),
    ),
    Property.TMP: (
        given("temporary files can be made", "makes_temporary"),
        refused("a file in /tmp of outside cannot be read", "read", "{tmp}"),
        refused("the names in /tmp of outside cannot be listed", "lists", "/tmp", "{tmp_name}"),
        refused("a file in /var/tmp of outside cannot be read", "read", "{var_tmp}"),
        untouched("temporary files are gone afterwards", "answer", "makes_temporary"),
        untouched("what is made in /tmp is not there outside", "{tmp}-left", "makes", "{tmp}-left"),
        untouched("what is made in /var/tmp is not there outside", "{var_tmp}-left", "makes", "{var_tmp}-left"),
    ),
    Property.USERS: (
        given("one's own name is known", "knows_user", "{user}"),
        given("the name of root is known", "knows_user", "root"),
        refused("the names of other people cannot be looked up", "knows_user", "{other}", lacking=(LANDLOCK,)),
        refused("… nor by number", "knows_number", "{other_number}", lacking=(LANDLOCK,)),
        refused("the groups of other people cannot be looked up", "knows_group", "{other}", lacking=(LANDLOCK,)),
        refused("who else is in a group of the system's cannot be looked up", "knows_member", "users", "{other}", lacking=(LANDLOCK,)),
        refused("… nor any of it when an account was added outside meanwhile", "knows_user_when_asked", "{other}", "{project}/chore-account",
                setting="accounts", lacking=("bwrap", FIREJAIL)),
    ),
    Property.DEVICES: (
        *(given(f"{path} is there", "opens_for_both", path) for path in ("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom")),
        refused("a device that was not passed through cannot be opened", "opens_for_both", "{device}"),
        refused("file systems of one's own cannot be mounted (/dev/fuse)", "opens_for_both", "/dev/fuse"),
        refused("network devices cannot be made (/dev/net/tun)", "opens_for_both", "/dev/net/tun"),
        given("a device that is passed through can be opened", "opens_for_both", "{device}", setting="device", lacking=(FIREJAIL,)),
    ),
    Property.TTY: (
        given("the terminal is there", "has_terminal", setting="terminal"),
        given("new terminals can be made", "makes_terminal"),
        refused("nothing can be typed for you into the terminal", "types_ahead", setting="terminal"),
        refused("… nor with other bits set in the request", "types_ahead_with_high_bits", setting="terminal"),
        refused("another terminal of yours cannot be opened", "opens_terminal", "{terminal}"),
    ),
    Property.SYSCALLS: (
        refused("no program gains rights", "has_new_privileges"),
        refused("a setuid program of root's runs as you", "becomes_root", "{project}/id"),
        refused("there is no io_uring", "makes_ring"),
        refused("keyrings cannot be reached", "adds_key"),
        refused("user namespaces cannot be made", "makes_user_namespace"),
        refused("nothing can be mounted", "mounts_in_own_namespace"),
        refused("files cannot be named by handles", "names_file_by_handle", "{project}/here"),
        refused("kernel pointers cannot be compared", "compares_kernel_pointers"),
        refused("old personalities cannot be taken", "takes_old_personality"),
        refused("a system call that the settings deny is refused", "asks_for_scheduler", setting="calls"),
        refused("strict: processes cannot be traced", "traces_own_child", setting="calls"),
    ),
    Property.UNIX_SOCKETS: (
        given("sockets of one's own work", "talks_to_itself", "{project}/own.socket"),
        given("pairs of sockets work", "makes_pair"),
        given("a granted socket can be reached", "connects", "{granted}", setting="sockets"),
        refused("… but not against the admin", "connects", "{granted}", setting="vetoed"),
        refused("a socket beside the granted one cannot be reached", "connects", "{beside_granted}", setting="sockets"),
        refused("the session bus cannot be reached", "connects", "{bus}"),
        refused("a container daemon in /run cannot be reached", "connects", "{docker}"),
        refused("… nor by /var/run", "connects", "/var{docker}"),
        refused("… nor by a link in the project", "connects", "{project}/to-docker"),
        refused("… nor by the root directory of a process outside", "connects", "/proc/{pid}/root{docker}"),
        refused("… nor in the open network mode", "connects", "{docker}", setting="open"),
        refused("an ssh agent in /tmp cannot be reached", "connects", "{agent}"),
        refused("a service in a hidden directory of home cannot be reached", "connects", "{home}/.gnupg/S.gpg-agent"),
        refused("a service elsewhere in home cannot be reached", "connects", "{home}/service.socket"),
        refused("… in a home that can be read", "connects", "{home}/service.socket", setting="read", lacking=(FIREJAIL,)),
        refused("… in a home that can be written", "connects", "{home}/service.socket", setting="write",
                lacking=("bwrap", FIREJAIL, LANDLOCK)),
        refused("a service in /dev/shm cannot be reached", "connects", "{shm}-socket"),
        refused("the system's log cannot be written", "sends", "{log}"),
        refused("a service that takes packets cannot be reached", "connects_in_order", "{packets}"),
        refused("a service that listens in a path granted for reading cannot be reached", "connects", "{service}/socket", setting="service",
                lacking=("bwrap", FIREJAIL)),
        refused("a service that listens in the project cannot be reached", "connects", "{project}/service.socket", setting="service",
                lacking=("bwrap", FIREJAIL, LANDLOCK)),
    ),
    Property.ABSTRACT_SOCKETS: (
        given("abstract sockets of one's own work", "talks_to_itself", "@{name}-own"),
        refused("abstract sockets of outside cannot be reached", "connects", "@{name}"),
        refused("… nor sent to", "sends", "@{name}-log"),
        refused("… nor reached in the open network mode", "connects", "@{name}", setting="open"),
        refused("… nor sent to in it", "sends", "@{name}-log", setting="open"),
    ),
    Property.NETWORK: (
        refused("isolated: services of this machine cannot be reached", "dials", "127.0.0.1", "{port}"),
        refused("… nor by IPv6", "dials", "::1", "{port6}"),
        refused("… nor by TCP fast open", "dials_fast", "127.0.0.1", "{port}"),
        refused("… nor by MPTCP", "dials", "127.0.0.1", "{port}", "262"),
        refused("… nor by UDP", "asks_by_udp", "127.0.0.1", "{udp}"),
        refused("… nor where pids and ipc are required", "dials", "127.0.0.1", "{port}", setting="closed"),
        given("… and programs reach one another on a loopback of their own", "serves_itself", lacking=LANDLOCK),
        refused("proxied: services of this machine cannot be reached", "dials", "127.0.0.1", "{port}", setting="proxied"),
        refused("… nor by IPv6", "dials", "::1", "{port6}", setting="proxied"),
        refused("… nor by TCP fast open", "dials_fast", "127.0.0.1", "{port}", setting="proxied"),
        refused("… nor by MPTCP", "dials", "127.0.0.1", "{port}", "262", setting="proxied"),
        refused("… nor by UDP", "asks_by_udp", "127.0.0.1", "{udp}", setting="proxied"),
        given("… nor through the proxy, which says why", "asks_the_proxy", "127.0.0.1", "{port}", setting="proxied"),
        given("… and programs reach one another on a loopback of their own", "serves_itself", lacking=LANDLOCK, setting="proxied"),
        refused("virtual machine sockets cannot be made", "opens_socket", "40", "1", "0"),
        refused("netlink is for interfaces only", "opens_socket", "16", "3", "15"),
        given("open: services of this machine can be reached", "dials", "127.0.0.1", "{port}", setting="open"),
        refused("open: virtual machine sockets cannot be made", "opens_socket", "40", "1", "0", setting="open"),
    ),
    Property.MAIL: (
        given("every mailer by name is the refusal in words (77)", "answers_with", "77", *MAILERS),
        refused("a mailer that is installed cannot be run by its path", "runs", "{mailer}"),
        given("it can where an open network was asked for", "runs", "{mailer}", setting="open"),
    ),
    Property.SLURM: (
        refused("a socket beside munge's cannot be reached", "connects", "{munge}"),
        refused("… nor in the open network mode", "connects", "{munge}", setting="open"),
        refused("Slurm's own settings cannot be read", "read", "{slurm_conf}"),
        refused("the way to Slurm's settings does not pass", "has_variable", "SLURM_CONF", "hunter2"),
        refused("a token for Slurm does not pass", "has_variable", "SLURM_JWT", "hunter2"),
    ),
    Property.LIMITS: (
        refused("memory", "takes_memory", "{much_memory}", setting="limits"),
        refused("the size of files", "writes_much", "{project}/much", "2000000", setting="limits"),
        refused("open files", "opens_files", "100", setting="limits"),
        refused("CPU time", "works_for", "1.5", setting="limits"),
        refused("core dumps", "may_dump_core", setting="limits"),
        refused("processes", "starts_processes", "60", setting="limits"),
        given("processes outside do not count", "starts_processes", "5", setting="crowded", lacking=(FIREJAIL, LANDLOCK)),
    ),
    Property.PROJECT_PROTECT: (
        given("git works", "commits", "{project}"),
        refused("no hook can be added", "makes_and_removes", "{project}/.git/hooks/pre-commit", lacking=(LANDLOCK,)),
        refused("git's settings cannot be changed", "appends", "{project}/.git/config", lacking=(LANDLOCK,)),
        refused("the repository cannot be moved away", "moves_and_back", "{project}/.git", "{project}/.git-moved", lacking=(LANDLOCK,)),
        refused("settings of an editor cannot be changed", "appends", "{project}/.vscode/tasks.json", lacking=(LANDLOCK,)),
        told("what is made of what is not there yet is named in the end", ".envrc: look at it", "makes", "{project}/.envrc"),
        refused("the hooks cannot be moved away", "moves_and_back", "{project}/.git/hooks", "{project}/.git/hooks-moved", lacking=(LANDLOCK,)),
    ),
    Property.SELF_PROTECTION: (
        refused("our settings cannot be changed", "appends", "{settings}/config.toml"),
        untouched("… nor added to", "{settings}/conf.d/new.toml", "makes", "{settings}/conf.d/new.toml"),
        refused("our log cannot be listed", "lists", "{state}", "audit"),
        untouched("nothing can be put beside it", "{state}/new", "makes", "{state}/new"),
        refused("our code cannot be changed", "appends", "{tools}/bin/agent-sandbox"),
        refused("… in a home that can be written", "appends", "{tools}/bin/agent-sandbox", setting="write", lacking=(LANDLOCK,)),
        refused("our settings cannot be changed in a home that can be written", "appends", "{settings}/config.toml", setting="write",
                lacking=(LANDLOCK,)),
        refused("our log cannot be listed in a home that can be written", "lists", "{state}", "audit", setting="write", lacking=(LANDLOCK,)),
    ),
}  # fmt: skip


def _facts() -> Iterator[Fact]:
    for property, facts in TABLE.items():
        for fact in facts:
            yield replace(fact, property=property)


FACTS = tuple(_facts())
