"""Programs as people use them, in a `proxied` jail: they work without a flag, and one that knows no proxy is refused at once, in words."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.machines.authority import need_parser
from tests.machines.copies import PYTHON
from tests.machines.internet.machine import Internet
from tests.machines.internet.places import WEB, WEB6
from tests.machines.internet.shelf import PACKAGE, SAYS
from tests.machines.jail import Jail
from tests.machines.needs import missing, need
from tests.network.driving import SOON, inside, outside

BACKENDS = ("bwrap", "firejail", "landlock")
TOOLS = ("curl", "wget", "git", "pip3", "npm", "node", "openssl", "nc", "dig", "gcc", "keytool")
MODULE = PACKAGE.replace("-", "_")
# As a person has them: the site's index and registry, named where those programs look.
ENVIRONMENT = {"PIP_INDEX_URL": "https://index.example.org/simple", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
SETTINGS = {".npmrc": "registry=https://registry.example.org/\nupdate-notifier=false\nfund=false\naudit=false\n"}

GET = "import sys, {0}; print({0}.get(sys.argv[1]).text)"
NODE_GET = 'require("https").get(process.argv[1], r => r.on("data", d => console.log(String(d))))'
NODE_FETCH = "fetch(process.argv[1]).then(r => r.text()).then(console.log)"
WORKING = {  # what it prints must be in the answer
    "curl http": ("curl -sS http://www.example.org/", "hello from www.example.org"),
    "curl https": ("curl -sS https://www.example.org/", "hello from www.example.org"),
    "curl by IPv6": ("curl -sS http://six.example.net/", "hello from six.example.net"),
    "curl, one address dead": ("curl -sS -m 5 http://half.example.net/", "hello from half.example.net"),
    "curl redirected": ("curl -sSL 'http://www.example.org/elsewhere?to=https://other.example.org/'", "hello from other.example.org"),
    "wget http": ("wget -q -O - http://www.example.org/", "hello from www.example.org"),
    "wget https": ("wget -q -O - https://www.example.org/", "hello from www.example.org"),
    "git clone http": ("git clone -q http://git.example.org/git/repository.git it && cat it/README", "hello from a repository"),
    "git clone https": ("git clone -q https://git.example.org/git/repository.git it && cat it/README", "hello from a repository"),
    "git fetch": ("git init -q && git fetch -q https://git.example.org/git/repository.git && git show FETCH_HEAD:README", "hello from a repository"),
    "pip install": (f"pip3 install -q --target it {PACKAGE} && PYTHONPATH=it {PYTHON} -c 'import {MODULE} as m; print(m.TEXT)'", SAYS),
    "npm install": (f"cp ../.npmrc . && npm init -y >/dev/null && npm install --silent {PACKAGE} && node -p 'require(\"{PACKAGE}\")'", SAYS),
    "python urllib": (f"{PYTHON} -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read())' https://www.example.org/", "hello from"),
    "python requests": (f"{PYTHON} -c '{GET.format('requests')}' https://www.example.org/", "hello from"),
    "python httpx": (f"{PYTHON} -c '{GET.format('httpx')}' https://www.example.org/", "hello from"),
    "java": ("keytool -printcert -sslserver www.example.org", "CN=example.org"),
    "node fetch": (f"node -e '{NODE_FETCH}' https://www.example.org/", "hello from"),
    "node https.get": (f"node -e '{NODE_GET}' https://www.example.org/", "hello from"),
}  # fmt: skip
TOLD = {  # those that have to be told of a proxy, by an option of theirs
    "openssl -proxy": ("openssl s_client -brief -verify_return_error -proxy $PROXY -connect www.example.org:443 </dev/null", "CONNECTION"),
    "nc -X connect": ("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 -X connect -x $PROXY www.example.org 80", "hello from"),
    "nc -X 5": ("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 -X 5 -x $PROXY www.example.org 80", "hello from"),
    "curl --socks5-hostname": ("curl -sS --noproxy '' --socks5-hostname $PROXY https://www.example.org/", "hello from"),
}  # fmt: skip
NAME, WAY = "name", "way"  # what a program complains of: that there is no such name, or no way there
UNKNOWING = {  # its line, what it says outside, and of what it complains inside
    "openssl": ("openssl s_client -brief -connect www.example.org:443 </dev/null", "CONNECTION ESTABLISHED", NAME),
    "openssl by address": (f"openssl s_client -brief -connect {WEB}:443 </dev/null", "CONNECTION ESTABLISHED", WAY),
    "nc": (f"nc -v -w 30 -N {WEB} 80 </dev/null", "succeeded", WAY),
    "nc by name": ("nc -v -w 30 -N www.example.org 80 </dev/null", "succeeded", NAME),
    "dig": ("dig www.example.org +short", WEB, WAY),
    "dig by TCP": ("dig +tcp www.example.org +short", WEB, WAY),
    "a static program": (f"../dial {WEB} 80", "connected", WAY),
    "a static program, IPv6": (f"../dial {WEB6} 80", "connected", WAY),
    "curl without its proxy": ("curl -sS --noproxy '*' http://www.example.org/", "hello from", NAME),
    "wget without its proxy": ("wget -nv --no-proxy -O - http://www.example.org/", "hello from", NAME),
    "bash": (f"bash -c 'exec 3<>/dev/tcp/{WEB}/80 && echo connected'", "connected", WAY),
}  # fmt: skip
NO_NAME = "name resolution|could not resolve host|unable to resolve host"
COMPLAINTS = {  # Landlock has no network of its own to be unreachable in
    ("bwrap", WAY): "network (is )?unreachable", ("firejail", WAY): "network (is )?unreachable", ("landlock", WAY): "permission denied",
    **{(backend, NAME): NO_NAME for backend in ("bwrap", "firejail", "landlock")},
}  # fmt: skip
RULE, FLOOR = "network.block pastebin.com", "floor link-local"
REFUSED = {  # its line, and what it shows of the refusal
    "curl http": ("curl -sS http://pastebin.com/", f"rule: {RULE} "),
    "curl https": ("curl -sS https://pastebin.com/", "CONNECT tunnel failed, response 403"),  # it shows no more
    "curl https -v": ("curl -sSv https://pastebin.com/", RULE),
    "curl redirected": ("curl -sSL 'http://www.example.org/elsewhere?to=http://169.254.169.254/'", f"rule: {FLOOR} "),
    "wget http": ("wget -nv -O - http://pastebin.com/", RULE),
    "wget https": ("wget -nv -O - https://pastebin.com/", RULE),
    "git http": ("git clone http://pastebin.com/git/repository.git", f"remote: rule: {RULE} "),
    "git https": ("git clone https://pastebin.com/git/repository.git", "CONNECT tunnel failed, response 403"),
    "pip": (f"pip3 install --retries 1 --index-url https://pastebin.com/simple --target it {PACKAGE}", RULE),
    "npm": (f"npm install --fetch-retries 0 --registry https://pastebin.com/ {PACKAGE}", RULE),
    "python requests": (f"{PYTHON} -c '{GET.format('requests')}' https://pastebin.com/", RULE),
    "python httpx": (f"{PYTHON} -c '{GET.format('httpx')}' https://pastebin.com/", RULE),
    "node fetch": (f"node -e '{NODE_FETCH}' https://pastebin.com/", f"rule: {RULE} "),
    "node https.get": (f"node -e '{NODE_GET}' https://pastebin.com/", f"rule: {RULE} "),
    "openssl": ("openssl s_client -brief -proxy $PROXY -connect pastebin.com:443 </dev/null", RULE),
    "nc": ("nc -X connect -x $PROXY pastebin.com 443 </dev/null", RULE),
    "nc by SOCKS": ("nc -X 5 -x $PROXY pastebin.com 443 </dev/null", "not allowed by ruleset"),
    "explain": ("agent-sandbox explain host pastebin.com:443", f"refused\n  rule  {RULE}\n"),
    "network log": ("curl -s http://pastebin.com/ >/dev/null; agent-sandbox network log", RULE),
    "explain the floor": ("agent-sandbox explain host 169.254.169.254:80", f"refused\n  rule  {FLOOR}\n"),
}  # fmt: skip
DIAL = r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **words) {
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(atoi(words[2]))};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = four.sin_port};
    int is_six = strchr(words[1], ':') != NULL;
    inet_pton(is_six ? AF_INET6 : AF_INET, words[1], is_six ? (void *)&six.sin6_addr : (void *)&four.sin_addr);
    int sock = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
    if (sock < 0 || connect(sock, is_six ? (void *)&six : (void *)&four, is_six ? sizeof six : sizeof four)) return perror("dial"), 1;
    return puts("connected") < 0;
}
"""


@pytest.fixture(scope="session")
def dial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program without libraries, and without a thought of a proxy."""
    need("gcc")
    path = tmp_path_factory.mktemp("dial") / "dial"
    subprocess.run(["gcc", "-static", "-x", "c", "-o", path, "-"], input=DIAL.encode(), check=True, capture_output=True)
    return path


@pytest.fixture
def site(net: Internet, jail: Jail, dial: Path) -> Iterator[Jail]:
    need_parser()
    for tool in TOOLS:
        need(tool)
    if subprocess.run((PYTHON, "-c", "import requests, httpx"), capture_output=True).returncode:
        missing("python3-requests or python3-httpx is not installed")
    net.trust(jail)
    for name, text in SETTINGS.items():
        jail.write(jail.project / name, text)
    program = jail.write(jail.project / "dial")
    program.write_bytes(dial.read_bytes())
    program.chmod(0o755)
    yield jail


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_the_clients_work_with_no_flag(net: Internet, site: Jail, backend: str) -> None:
    expected = WORKING | TOLD
    found = inside(net, site, "proxied", lines(expected), ENVIRONMENT)
    assert {name: did for name, did in found.items() if did.code != 0 or expected[name][1] not in did.said} == {}


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_a_program_that_knows_no_proxy_is_refused_at_once_and_says_why(net: Internet, site: Jail, backend: str) -> None:
    before = outside(net, site, lines(UNKNOWING))
    assert {name: did for name, did in before.items() if did.code != 0 or UNKNOWING[name][1] not in did.said} == {}
    found = inside(net, site, "proxied", lines(UNKNOWING))
    wrong = [name for name, did in found.items() if not re.search(COMPLAINTS[backend, UNKNOWING[name][2]], did.said, re.IGNORECASE)]
    assert {name: did for name, did in found.items() if did.code == 0 or did.seconds > SOON or name in wrong} == {}


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_a_refusal_is_shown_with_its_rule_at_once_and_explain_agrees(net: Internet, site: Jail, backend: str) -> None:
    found = inside(net, site, "proxied", lines(REFUSED))
    assert {name: did for name, did in found.items() if REFUSED[name][1] not in did.said or did.seconds > SOON} == {}
    assert not any("hello from" in did.said for did in found.values())
    log = net.outside(site, site.program, "network", "log").out
    for asked, rule in (("pastebin.com:443", RULE), ("169.254.169.254:80", FLOOR)):
        assert re.search(rf"refused +{asked} .*{rule}$", log, re.MULTILINE), log


def lines(table: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {name: row[0].replace("$PROXY", "${https_proxy#http://}") for name, row in table.items()}
