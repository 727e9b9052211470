"""What can be got there: a Python package with its index, a package of npm's registry, a git repository. Made by the test, small, and whole."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import subprocess
import tarfile
import zipfile
from pathlib import Path

PACKAGE, VERSION = "sandbox-greeting", "1.0.0"
SAYS = "hello from a package"


def fill(www: Path) -> None:
    (www / "page").parent.mkdir(parents=True, exist_ok=True)
    (www / "page").write_text("served\n")
    add_wheel(www)
    add_npm(www)
    add_repository(www / "git" / "repository.git")


def add_wheel(www: Path) -> None:
    """As PEP 427 and PEP 503 want them."""
    module, name = PACKAGE.replace("-", "_"), f"{PACKAGE.replace('-', '_')}-{VERSION}"
    files = {
        f"{module}.py": f"TEXT = {SAYS!r}\n",
        f"{name}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {VERSION}\n",
        f"{name}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{name}.dist-info/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{name}.dist-info/RECORD"))
    wheel = www / "wheels" / f"{name}-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    page = www / "simple" / PACKAGE / "index.html"
    page.parent.mkdir(parents=True)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    page.write_text(f'<!DOCTYPE html><html><body><a href="/wheels/{wheel.name}#sha256={digest}">{wheel.name}</a></body></html>')


def add_npm(www: Path) -> None:
    """The registry's page of the package lies where its name is asked for."""
    described = {"name": PACKAGE, "version": VERSION, "main": "index.js"}
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for path, text in {"package.json": json.dumps(described), "index.js": f"module.exports = {SAYS!r};\n"}.items():
            member = tarfile.TarInfo(f"package/{path}")
            member.size, member.mode = len(text), 0o644
            archive.addfile(member, io.BytesIO(text.encode()))
    (www / "tarballs").mkdir()
    (www / "tarballs" / f"{PACKAGE}.tgz").write_bytes(whole.getvalue())
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(whole.getvalue()).digest()).decode()
    version = {**described, "dist": {"tarball": f"https://registry.example.org/tarballs/{PACKAGE}.tgz", "integrity": integrity}}
    (www / PACKAGE).write_text(json.dumps({"name": PACKAGE, "dist-tags": {"latest": VERSION}, "versions": {VERSION: version}}))


def add_repository(bare: Path) -> None:
    work = bare.with_suffix(".work")
    (work / "sub").mkdir(parents=True)
    (work / "README").write_text("hello from a repository\n")
    (work / "sub" / "data").write_bytes(bytes(range(256)) * 4000)  # more than one window of TCP
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.invalid", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"], ["clone", "-q", "--bare", ".", str(bare)]):
        subprocess.run([*git, *words], cwd=work, check=True, capture_output=True, timeout=60)
