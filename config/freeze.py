"""defaults.toml → defaults.marshal beside it: run once, by the installer, in the copy that it installs.

Parsing the lists at each launch would cost more than merging them. The file has no meaning of its own: it is as
trusted as the code beside it, and a source tree has none, so that an edited defaults.toml is what counts there.
"""

from __future__ import annotations

import marshal
import os
import tempfile

from agent_sandbox.config.defaults import FROZEN, read_lists


def freeze() -> None:
    handle, name = tempfile.mkstemp(dir=os.path.dirname(FROZEN))
    with os.fdopen(handle, "wb") as file:
        marshal.dump(read_lists(), file)
    os.chmod(name, 0o644)
    os.replace(name, FROZEN)


if __name__ == "__main__":
    freeze()
