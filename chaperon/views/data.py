"""Jobs as JSON or YAML, sifted: what `squeue --json` prints → the same without jobs that are not in the scope.

Slurm 22.05 prints the jobs of everybody there, whatever ids and users it is given, and that may be much. So it is read by a process of
its own: orders on its input, the real program's output sifted to its own output.

    python -IS -c BOOT LIBRARY        input: form, user, ids, and the real program with its words, one a line
"""

from __future__ import annotations

from agent_sandbox.chaperon.command import Command
from agent_sandbox.chaperon.rebuild import rebuild
from agent_sandbox.chaperon.words import Setting
from agent_sandbox.config.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_sandbox.chaperon.views.scope import Scope
    from agent_sandbox.chaperon.words import Approved

BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from agent_sandbox.chaperon.views.data import main; main()"
MOST = 256 << 20  # bytes that are read
MEMORY = 3 << 30
FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+")
PLAIN = FIRST | frozenset(" -,=%")  # after the first character


def sifted(approved: Approved, form: str, scope: Scope) -> Command:
    """JSON is asked for in both cases: it can be read without a library."""
    others = tuple([one for one in approved.options if one.name not in ("json", "yaml")])
    options = (*others, Setting(name="json", value=approved.value(form)))
    words = rebuild(replace(approved, options=options))
    jobs = {job.job for job in approved.jobs} or scope.jobs
    orders = [form, scope.user, ",".join(map(str, sorted(jobs))), f"{scope.tools.programs}/{approved.command}", *words]
    return Command(
        program=scope.tools.python, words=("-I", "-S", "-c", BOOT, scope.tools.library), live=True,
        stdin="\n".join(orders).encode("utf-8", "surrogateescape"),
    )  # fmt: skip


def main() -> None:
    import json
    import resource
    import subprocess
    import sys

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    form, user, jobs, *argv = sys.stdin.buffer.read().decode("utf-8", "surrogateescape").split("\n")
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout
        text = process.stdout.read(MOST)
        if len(text) == MOST:
            process.kill()
            sys.exit(f"{argv[0].rpartition('/')[2]}: error: there is more than {MOST} bytes of data")
    if process.returncode or not text:
        sys.stdout.buffer.write(b"" if process.returncode else text)
        sys.exit(process.returncode if process.returncode >= 0 else 1)
    kept = sift(json.loads(text), user, frozenset([int(job) for job in jobs.split(",") if job]))
    shown = to_json(kept) if form == "json" else "\n".join(to_yaml(kept)) + "\n"
    sys.stdout.buffer.write(shown.encode("utf-8", "surrogateescape"))


def sift(document: object, user: str, jobs: frozenset[int]) -> object:
    """Only the jobs that are certainly in the scope; a document of another shape has none."""
    if not isinstance(document, dict):
        return {}
    known = {key: document[key] for key in ("meta", "errors", "warnings", "last_backfill", "last_update") if key in document}
    listing = document.get("jobs")
    return {**known, "jobs": [job for job in listing if _is_in(job, user, jobs)] if isinstance(listing, list) else []}


def _is_in(job: object, user: str, jobs: frozenset[int]) -> bool:
    if not isinstance(job, dict) or user not in (job.get("user_name"), job.get("user")):
        return False
    array, het = job.get("array"), job.get("het")
    ids = [job.get("job_id"), job.get("array_job_id"), job.get("het_job_id")]
    ids += [part.get("job_id") for part in (array, het) if isinstance(part, dict)]
    return any(_number(one) in jobs for one in ids)


def _number(value: object) -> object:
    """Newer versions write {"set": true, "number": 12}."""
    return value.get("number") if isinstance(value, dict) and value.get("set") else value if isinstance(value, int) else None


def to_json(document: object) -> str:
    """As Slurm lays it out: slashes, which only texts have, with a backslash; what is empty over two lines; no line end."""
    import json
    import re

    text = json.dumps(document, indent=2, ensure_ascii=False).replace("/", "\\/")
    return re.sub(r"^( *)(.*)(\[|\{)(\]|\})(,?)$", r"\1\2\3\n\1\4\5", text, flags=re.MULTILINE)


def to_yaml(document: object) -> Iterator[str]:
    """With the tags that Slurm writes."""
    yield "%YAML 1.1"
    yield from _lines("---", document, 0)
    yield "..."


def _lines(head: str, value: object, depth: int) -> Iterator[str]:
    pad = "  " * depth
    if isinstance(value, dict) and value:
        yield f"{head} !!map"
        for key, item in value.items():
            yield from _lines(f"{pad}!!str {_text(str(key))}:", item, depth + 1)
    elif isinstance(value, list) and value:
        yield f"{head} !!seq"
        for item in value:  # dashes stand below the key of their list, but not below the dash of another
            yield from _lines(f"{pad[2:]}-", item, depth + isinstance(item, list))
    else:
        yield f"{head} {_scalar(value)}"


def _scalar(value: object) -> str:
    import json

    if isinstance(value, str) and value:  # Slurm writes one without a character as null
        return f"!!str {_text(value)}"
    if isinstance(value, float):
        return f"!!float {value:f}"
    for kind, tag in ((bool, "!!bool"), (int, "!!int"), (dict, "!!map"), (list, "!!seq")):
        if isinstance(value, kind):
            return f"{tag} {json.dumps(value)}"
    return "!!null null"


def _text(text: str) -> str:
    """Quoted, as JSON does it, unless it is so plain that nothing could be read into it."""
    import json

    plain = text[:1] in FIRST and text[-1:] != " " and set(text) <= PLAIN
    return text if plain else json.dumps(text)
