"""defaults.toml → defaults.marshal beside it, and the presets likewise: run once, by the installer, in the copy that it installs.

Parsing the lists at each launch would cost more than merging them. The file has no meaning of its own: it is as
trusted as the code beside it, and a source tree has none, so that an edited defaults.toml is what counts there.
"""

from __future__ import annotations

import marshal
import os
import tempfile
from typing import Any

from agent_sandbox.config import defaults, shipped


def freeze() -> None:
    _write(defaults.FROZEN, defaults.read_lists())
    _write(shipped.FROZEN, shipped.read_files())


def _write(path: str, content: dict[str, Any]) -> None:  # of whatever nesting: marshal takes it
    handle, name = tempfile.mkstemp(dir=os.path.dirname(path))
    with os.fdopen(handle, "wb") as file:
        marshal.dump(content, file)
    os.chmod(name, 0o644)
    os.replace(name, path)


if __name__ == "__main__":
    freeze()
