"""Where the files are, and who is asking. Pure.

The admin's directory is a constant of the installed code: no variable and no option can point it elsewhere.
"""

from __future__ import annotations

from agent_sandbox.config.record import record

ADMIN_DIR = "/app/lib/agent-sandbox"
USER_DIR = ".config/agent-sandbox"  # below the home of the passwd database
PROJECT_FILE = ".agent-sandbox.toml"
BOTS_DIR = "/var/bot"  # homes of bots


def bot_of(user: str, home: str) -> str:
    """The bot that this user is; "" = none."""
    return user if home == f"{BOTS_DIR}/{user}" else ""


@record
class Where:
    """For whom and for which project config is read: facts of the kernel and the passwd database, not of $HOME."""

    user: str
    uid: int
    home: str
    groups: tuple[str, ...]
    host: str
    project: str
    cwd: str
    bot: str = ""  # the bot that the session runs as
    admin_dir: str = ADMIN_DIR

    def user_dir(self) -> str:
        return f"{self.home.rstrip('/')}/{USER_DIR}"
