"""What people run works in a Landlock jail: none of what closes it may break servers on unix sockets, terminals, copies, builds.

Each is a line of shell in an empty directory of its own, which is home as well; first the programs that it needs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.escapes.backends import only
from tests.escapes.inside import PYTHON
from tests.machines.jail import Jail
from tests.machines.needs import need

pytestmark = only("landlock")

START = """
cd "$(mktemp -d)" || exit 9
export HOME=$PWD
until_there() { for _ in $(seq 100); do test -e "$1" && return; sleep 0.05; done; return 1; }
set -e -o pipefail
"""
PROGRAMS = {
    "tmux": """
        tmux new-session -d -s one "tmux display-message -p hello > made; sleep 60"; tmux list-sessions | grep one
        for _ in $(seq 100); do grep -q hello made && break; sleep 0.05; done; tmux kill-server; grep hello made""",
    "ssh-agent": """
        eval "$(ssh-agent)"; ssh-keygen -q -t ed25519 -N "" -f key; ssh-add -q key; ssh-add -l | grep ED25519; kill $SSH_AGENT_PID""",
    "socat": """
        socat UNIX-LISTEN:socket,fork EXEC:cat & until_there socket; echo hello | socat - UNIX-CONNECT:socket | grep hello; kill %1""",
    "git credential cache": """
        mkdir -m 700 cache; git init -q .; git config credential.helper "cache --socket $PWD/cache/socket"; about="protocol=https\nhost=h\n"
        printf "${about}username=u\npassword=hello\n\n" | git credential approve; printf "$about\n" | git credential fill | grep hello
        git credential-cache --socket "$PWD/cache/socket" exit""",
    "gpg-agent": """
        mkdir -m 700 keys; export GNUPGHOME=$PWD/keys; gpg -q --batch --passphrase "" --quick-generate-key a@b ed25519 sign never
        echo hello | gpg -q --sign | gpg -q --decrypt 2>&1 | grep hello; gpgconf --kill gpg-agent""",
    "node": """
        node -e 'const net = require("net"), server = net.createServer(c => c.end("hello")).listen("socket", () =>
            net.connect("socket").on("data", d => { console.log(String(d)); server.close() }))' | grep hello
        node -e 'console.log(require("child_process").execSync("echo hello").toString())' | grep hello""",
    "npm, where it comes with node": """
        command -v npm || exit 0
        mkdir one two; cd one; npm init -y > log; echo "module.exports = 'hello'" > index.js; npm pack > log 2>&1; cd ../two; npm init -y > log
        npm install --offline --no-audit --no-fund ../one/one-1.0.0.tgz > log; node -p 'require("one")' | grep hello""",
    "redis-server": """
        redis-server --port 0 --unixsocket "$PWD/socket" --save "" > log & until_there socket
        redis-cli -s socket set word hello; redis-cli -s socket get word | grep hello; redis-cli -s socket shutdown nosave; wait""",
    "java": "java -Xshare:off -version 2>&1 | grep -i version",
    "gdb": """gdb -q -batch -ex "break exit" -ex run -ex "info proc" -ex kill /bin/true 2>&1 | grep "Breakpoint 1,\\|process" """,
    "gcc": """echo "int main(void) { return 0; }" > main.c; gcc -o main main.c; ./main""",
    "make": """printf 'all: a b c d\n%%:\n\t@sleep 0.1; touch $@\n' > Makefile; make -s -j4; ls a b c d""",
    "script": """script -qec "test -t 0 && tty && echo hello" /dev/null | grep hello""",
    "bash": """diff <(echo one) <(echo one); echo hello | tee >(cat > copy) | grep hello; coproc cat; echo hello >&${COPROC[1]}; kill %1""",
    "tar": """
        mkdir in; echo x > in/file; chmod 640 in/file; touch -d 2001-01-01 in/file; tar cf it.tar in; mv in out; tar xpf it.tar
        test "$(stat -c %a-%Y in/file)" = "$(stat -c %a-%Y out/file)"; test "$(stat -c %a in/file)" = 640""",
    "cp": """
        mkdir in; echo x > in/file; ln -s file in/link; chmod 750 in; touch -d 2001-01-01 in/file; touch -h -d 2001-01-01 in/link; cp -a in out
        test "$(stat -c %a-%Y in in/file in/link)" = "$(stat -c %a-%Y out out/file out/link)" """,
    "rsync": """
        mkdir in; echo x > in/file; chmod 600 in/file; touch -d 2001-01-01 in/file; rsync -a in/ out
        test "$(stat -c %a-%Y in/file)" = "$(stat -c %a-%Y out/file)" """,
    "chmod": """touch file; chmod 600 file; chgrp "$(id -g)" file; install -m 755 file other; test -x other; flock file true""",
    "git": """
        git init -q one; cd one; git config user.name a; git config user.email b; echo x > file; git add file; git commit -qm hello; git gc -q
        git clone -q . ../two; cd ../two; git worktree add -q ../three; git log --format=%s | grep hello""",
    "vim.tiny": """vim.tiny -es -c "normal ihello" -c wq file; grep hello file""",
    "dbus-daemon": """
        dbus-daemon --session "--address=unix:path=$PWD/bus" --nofork & until_there bus
        dbus-send "--bus=unix:path=$PWD/bus" --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames | grep string; kill %1""",
}
NEEDS = {
    "tmux": "tmux", "ssh-agent": "ssh-agent ssh-add", "git credential cache": "git", "gpg-agent": "gpg gpg-agent", "node": "node",
    "npm, where it comes with node": "node", "redis-server": "redis-server redis-cli", "dbus-daemon": "dbus-daemon dbus-send",
}  # fmt: skip


def works(jail: Jail, line: str) -> None:
    inside = jail.run("bash", "-c", START + line)
    assert inside.code == 0, inside


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_works(jail: Jail, name: str) -> None:
    for program in NEEDS.get(name, name).split():
        need(program)
    works(jail, PROGRAMS[name])


PROCESSES = """
import multiprocessing, os, sys
from multiprocessing import reduction, shared_memory

def fill(shared, queue):
    shared["word"] = "hello"
    queue.put(os.getpid())

def give(pipe, pid):
    with open("given", "w") as file:
        reduction.send_handle(pipe, file.fileno(), pid)

if __name__ == "__main__":
    kind = multiprocessing.get_context(sys.argv[1])
    with kind.Manager() as manager:
        shared, queue = manager.dict(), kind.Queue()
        child = kind.Process(target=fill, args=(shared, queue)); child.start(); queue.get(); child.join()
        assert dict(shared) == {"word": "hello"}
    ours, theirs = kind.Pipe()
    child = kind.Process(target=give, args=(theirs, os.getpid())); child.start()
    os.write(reduction.recv_handle(ours), b"hello"); child.join()
    assert child.exitcode == 0 and open("given").read() == "hello"
    with kind.Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]
    memory = shared_memory.SharedMemory(create=True, size=100); memory.close(); memory.unlink()
"""


@pytest.mark.parametrize("kind", ["fork", "spawn", "forkserver"])
def test_pythons_processes_share_objects_descriptors_and_memory(jail: Jail, kind: str) -> None:
    script = jail.write(jail.project / "processes.py", PROCESSES)
    works(jail, f"{PYTHON} '{script}' {kind}")


SERVER = """
import asyncio
async def answer(reader, writer):
    writer.write(await reader.read()); writer.close()
async def main():
    server = await asyncio.start_unix_server(answer, "socket")
    reader, writer = await asyncio.open_unix_connection("socket")
    writer.write(b"hello"); writer.write_eof()
    assert await reader.read() == b"hello"
    assert await (await asyncio.create_subprocess_exec("true")).wait() == 0
    server.close()
asyncio.run(main())
"""
TERMINAL = """
import os, pty
pid, master = pty.fork()
if pid == 0:
    os.execvp("sh", ["sh", "-c", "tty; test -t 0 && echo hello"])
text = b""
try:
    while part := os.read(master, 1000): text += part
except OSError: pass
assert b"hello" in text and b"/dev/pts/" in text, text
ours, other = os.openpty()
assert os.ttyname(other).startswith("/dev/pts/")
"""


@pytest.mark.parametrize("code", [SERVER, TERMINAL], ids=["asyncio", "terminal"])
def test_pythons_servers_and_terminals_work(jail: Jail, code: str) -> None:
    script = jail.write(jail.project / "script.py", code)
    works(jail, f"{PYTHON} '{script}'")


WHEEL = {
    "hello.py": "word = 'hello'\n",
    "hello-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: hello\nVersion: 1\n",
    "hello-1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "hello-1.dist-info/RECORD": "",
}


def test_a_wheel_can_be_installed_into_a_new_environment(jail: Jail) -> None:
    import zipfile

    wheel = Path(jail.write(jail.project / "hello-1-py3-none-any.whl"))
    with zipfile.ZipFile(wheel, "w") as file:
        for name, text in WHEEL.items():
            file.writestr(name, text)
    install = f"venv/bin/pip -q --disable-pip-version-check install --no-index '{wheel}'"
    works(jail, f"{PYTHON} -m venv venv; {install}; venv/bin/python -c 'import hello'")
