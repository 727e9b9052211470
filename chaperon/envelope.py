"""An approved job becomes the script that the real sbatch gets, and a file with its variables; and back again on the node. Pure.

    #!PYTHON -IS                          no byte of the agent's, and nothing that sbatch would read as options
    …
    main("DATA")                          one line: the agent's script, its arguments, files and the session's settings

The script may be kept by the site (accounting can archive it), so the agent's variables travel beside it, in a file of the user's.
"""

from __future__ import annotations

import binascii
import marshal
import zlib

from agent_sandbox.chaperon.outputs import Files
from agent_sandbox.chaperon.stubfile import first_lines
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = 1  # of the data. A node whose launcher has another one says so and runs nothing.
MARSHAL = 4  # the form that every Python from 3.4 on reads
LARGEST_SCRIPT = 4 << 20  # Slurm's own limit, unless a site changed it
LARGEST_DATA = 64 << 20  # unpacked

BODY = """\
import sys

sys.path.insert(0, {library})
try:
    from agent_sandbox.chaperon.node import main
except ImportError as error:
    sys.stderr.write(f"agent-sandbox: the job was not started: no usable launcher at {{sys.path[0]}} on this node ({{error}})\\n")
    sys.exit(125)
main("{data}")
"""


@record
class Launcher:
    """Where the launcher is installed, on every node: absolute paths."""

    python: str
    library: str  # the directory that holds the package
    entry: str  # the program


@record
class Job:
    """What was approved, with everything that the node must know."""

    name: str
    script: bytes
    arguments: tuple[str, ...]
    cwd: str
    submit_directory: str
    export: str | None  # the agent's own --export; None = not given
    files: Files  # patterns; "" = not asked for
    open_mode: str  # append, truncate; "" = not asked for, and truncate
    umask: int
    project: str
    session: str
    settings: Mapping[str, object]  # as Settings.as_data gives them
    variables: str = ""  # the path of the file that `pack_variables` makes


def make_script(job: Job, launcher: Launcher) -> bytes:
    """The whole script, or a refusal that names its size."""
    data = binascii.b2a_base64(zlib.compress(marshal.dumps(_to_data(job, launcher), MARSHAL)), newline=False).decode()
    text = first_lines(launcher.python) + BODY.format(library=ascii(launcher.library), data=data)
    script = text.encode("utf-8", "surrogateescape")
    if len(script) > LARGEST_SCRIPT:
        raise UserError(
            f"the job is too large: {len(script)} bytes, packed, with its script ({len(job.script)} bytes), its arguments and the session's "
            f"settings; Slurm takes {LARGEST_SCRIPT}", hint="put what is large in a file of the project, and read it from the script",
        )  # fmt: skip
    return script


def forced_options(log_directory: str) -> dict[str, str]:
    """What the real sbatch is told whatever was asked for: its own output is our log, its environment ours."""
    if "\\" in log_directory:
        raise UserError("a directory with a backslash in its name cannot hold the logs of jobs", where=log_directory)
    log = f"{log_directory.replace('%', '%%')}/%j.log"
    return {"output": log, "error": log, "input": "/dev/null", "open-mode": "append", "export": "ALL"}


def pack_variables(environment: Mapping[str, str]) -> bytes:
    return b"\0".join(f"{name}={value}".encode("utf-8", "surrogateescape") for name, value in environment.items())


def unpack_variables(packed: bytes) -> dict[str, str]:
    pairs = [entry.decode("utf-8", "surrogateescape").partition("=") for entry in packed.split(b"\0") if entry]
    return {name: value for name, _, value in pairs}


def _to_data(job: Job, launcher: Launcher) -> dict[str, object]:
    data = {**job.__dict__, "files": dict(job.files.__dict__), "settings": dict(job.settings)}
    return {"format": FORMAT, "entry": launcher.entry, "job": data}


def read_data(packed: str) -> tuple[Job, str]:
    """The job, and the launcher's program."""
    try:
        unpacker = zlib.decompressobj()
        content = unpacker.decompress(binascii.a2b_base64(packed), LARGEST_DATA)
        if not unpacker.eof:  # only at the end has its sum been checked, and marshal reads nothing that is damaged
            raise ValueError
        data = marshal.loads(content)
        found = data["format"]
    except (ValueError, EOFError, TypeError, KeyError, zlib.error):
        raise UserError("the job's data cannot be read", hint="it was damaged, or made by another version") from None
    if found != FORMAT:
        raise UserError(
            f"the job was made by another version of agent-sandbox (format {found}, here {FORMAT})",
            hint="ask an admin to install the same version on every node, then submit again",
        )
    try:
        return Job(**{**data["job"], "files": Files(**data["job"]["files"])}), data["entry"]
    except (TypeError, KeyError) as error:
        raise UserError(f"the job's data cannot be read: {error}") from None
