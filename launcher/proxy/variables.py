"""The proxy's port and a jail's variables → the variables that make programs inside use the proxy. Pure.

Most programs read the eight common names: curl, wget, pip, requests, httpx, conda, mamba, cargo, uv, go, R, Julia, Ruby, gRPC.
Here is more only for those that need more, or that a file of the site's could send to a proxy which is not there inside.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# One spelling of each: httpx dies of `[::1]`, and takes a network for one address.
DIRECT = ("localhost", "127.0.0.1", "::1")
COMMON = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
# Named by the user for the outside: what they said would lead nowhere. Not set by ourselves, since the common names do.
# pip: with this one it forgets NO_PROXY, and an index inside could not be used.
ELSEWHERE = (
    "FTP_PROXY", "GRPC_PROXY", "WS_PROXY", "WSS_PROXY", "PIP_PROXY", "CARGO_HTTP_PROXY", "GLOBAL_AGENT_HTTP_PROXY", "GLOBAL_AGENT_HTTPS_PROXY",
    "BUNDLE_HTTP_PROXY", "BUNDLE_HTTPS_PROXY", "HEX_HTTP_PROXY", "HEX_HTTPS_PROXY", "npm_config_http_proxy",
)  # fmt: skip
JAVA = ("http.proxyHost", "http.proxyPort", "http.nonProxyHosts", "https.proxyHost", "https.proxyPort", "ftp.proxyHost", "socksProxyHost")


def variables_for(port: int | str, given: Mapping[str, str], shim: str) -> dict[str, str]:
    """`given`: the jail's other variables; `shim`: where node.cjs lies inside. What is said here replaces what is there."""
    url, direct = f"http://127.0.0.1:{port}", ",".join(DIRECT)
    common = {**dict.fromkeys(COMMON, url), "NO_PROXY": direct}
    elsewhere = [name for word in ELSEWHERE for name in (word, word.lower()) if name in given]
    return {
        **common, **{name.lower(): value for name, value in common.items()},
        **dict.fromkeys(elsewhere, url),
        **_of_git(given, url),
        "npm_config_proxy": url, "npm_config_https_proxy": url, "npm_config_noproxy": direct,  # before a npmrc
        "YARN_HTTP_PROXY": url, "YARN_HTTPS_PROXY": url,  # from 2 on it reads no common name
        "RSYNC_PROXY": f"127.0.0.1:{port}",
        "PERL_LWP_ENV_PROXY": "1",
        "JAVA_TOOL_OPTIONS": _of_java(given.get("JAVA_TOOL_OPTIONS", ""), port),
        "NODE_USE_ENV_PROXY": "1",  # from 22.21 and 24.5 on; the shim is for those before
        "NODE_OPTIONS": _of_node(given.get("NODE_OPTIONS", ""), shim),
    }  # fmt: skip


def _of_git(given: Mapping[str, str], url: str) -> dict[str, str]:
    """A file's http.proxy goes before the common names, and these before a file. Entries that the user has stay."""
    said = given.get("GIT_CONFIG_COUNT", "")
    count = int(said) if said.isdecimal() and len(said) < 6 else 0
    at = next((number for number in range(count) if given.get(f"GIT_CONFIG_KEY_{number}") == "http.proxy"), count)
    return {"GIT_CONFIG_COUNT": str(max(count, at + 1)), f"GIT_CONFIG_KEY_{at}": "http.proxy", f"GIT_CONFIG_VALUE_{at}": url}


def _of_java(said: str, port: int | str) -> str:
    """Any other way of telling a JVM is not heard by all of them; each says on stderr that it was told."""
    kept = _without(said, tuple([f"-D{name}=" for name in JAVA]))
    ours = [f"-D{scheme}.proxy{part}" for scheme in ("http", "https") for part in ("Host=127.0.0.1", f"Port={port}")]
    return " ".join([*kept, *ours, "-Dhttp.nonProxyHosts=localhost|127.*|[::1]"])


def _of_node(said: str, shim: str) -> str:
    kept = without_shim(said, shim.rpartition("/")[2])
    path = shim if not set(shim) & set(' "\\') else '"' + shim.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return " ".join([*kept, f"--require={path}"])


def without_shim(said: str, name: str) -> list[str]:
    """Less that of the session that a job was sent from: a file that is not there keeps node from starting, and one in /tmp may be anybody's."""
    return _without(said, ("--require=",), f"/{name}")


def _without(said: str, beginnings: tuple[str, ...], end: str = "") -> list[str]:
    """As it was written, if there is nothing to leave out: spaces in quotes count."""
    words = said.split()
    kept = [word for word in words if not (word.startswith(beginnings) and word.strip('"').endswith(end))]
    return kept if len(kept) < len(words) else [said] * bool(words)
