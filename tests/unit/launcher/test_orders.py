"""What the guard is told is what was decided."""

from __future__ import annotations

from agent_sandbox.launcher.audit import Log
from agent_sandbox.launcher.orders import Orders, pack, unpack
from agent_sandbox.launcher.plan import Cover, Data, Domain, Held, PathRule, Plan, Room, Stage
from agent_sandbox.launcher.policy import Helper, Limits
from agent_sandbox.launcher.session import Session
from agent_sandbox.launcher.supervisor.allowed import Allowed
from agent_sandbox.launcher.view import Carve, Carving

ORDERS = Orders(
    plan=Plan(
        backend="bwrap", program="/usr/bin/bwrap", options=("--bind", "/a\udcff\n", "/a"), options_fd=11, status_fd=10, command=("true", ""),
        words=("--args", "11", "--"), room=Room(path="/r", directories=("/r",), links=(("/r/a", "/a"),), files=(("/r/b", b"\0", True),)),
        helpers=(Helper(module="m", orders=b"\1", place="/r/h", door="/r/h/ask", line="l"),),
        domain=Domain(
            handled_files=7, handled_network=3, scoped=1, log_denials=True, rules=(PathRule(path="/usr", rights=5),), filters=(b"1", b"2"),
            supervised=True, environment={"A": "b"}, cwd="/p", machine="x86_64",
            allowed=Allowed(writable=("/p",), readable=("/usr",), sockets=("/s",), abstract=True, hosts=(("127.0.0.1", 80),)),
        ),
        data=(Data(fd=12, content=b"\0\xff", label="seccomp"),),
        stage=Stage(
            carves=tuple(Carve(root="/p", path=f"/p/{carving.name}", carving=carving, origin="x") for carving in Carving),
            held=(Held(path="/p", word=1, optional=True),), covers=(Cover(path="/etc/passwd", word=3),),
            limits=Limits(processes=7, wall_time=9), most_user_namespaces=2,
            scope_abstract_sockets=True, scope_signals=False, ignored_signals=(1, 2, 15),
        ),
    ),
    session=Session(id="ab1", directory="/run/x", text="{}\n"),
    log=Log(directory="/s", host="node", enabled=True, keep_days=None, max_size=64),
)  # fmt: skip


def test_packing_and_unpacking_change_nothing() -> None:
    assert unpack(pack(ORDERS)) == ORDERS
