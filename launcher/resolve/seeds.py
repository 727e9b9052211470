"""Files that enter the jail as a copy without their secrets. Pure."""

from __future__ import annotations

import re

SECRET_SECTIONS = ("credential", "http", "https", "sendemail", "gpg", "github", "hub", "lfs.customtransfer")
SECRET_NAMES = ("extraheader", "token", "password", "passwd", "oauthtoken", "cookiefile", "sslkey", "smtppass")
SECTION = re.compile(r'\s*\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
NAME = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)")
URL_WITH_LOGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s\"]*@")


def without_secrets(text: str) -> str:
    """A git configuration less the sections and lines that carry log-ins; includes go as well, they would not be cleaned."""
    kept: list[str] = []
    dropping = False
    continued = False  # a line that ends in a backslash takes the next one with it
    for line in text.splitlines():
        if not continued:
            section = SECTION.match(line)
            if section:
                dropping = _is_secret_section(section[1], section[2] or "")
            drop_line = dropping or (not section and _is_secret_line(line))
        if not drop_line:
            kept.append(line)
        continued = line.endswith("\\")
    return "\n".join(kept) + "\n" if kept else ""


def _is_secret_section(name: str, label: str) -> bool:
    head = name.lower().split(".")[0]
    return head in SECRET_SECTIONS or head in ("include", "includeif") or bool(URL_WITH_LOGIN.search(label))


def _is_secret_line(line: str) -> bool:
    name = NAME.match(line)
    return bool(URL_WITH_LOGIN.search(line)) or bool(name and any(word in name[1].lower() for word in SECRET_NAMES))
