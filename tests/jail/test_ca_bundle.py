"""A site's own CA inside: real clients believe a real server that it vouches for, on every backend, and only where it is named."""

from __future__ import annotations

import os
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.machines import users
from tests.machines.authority import Pair, make, need_parser, serve
from tests.machines.copies import PYTHON
from tests.machines.jail import Jail, Result
from tests.machines.needs import need, need_root

BACKENDS = pytest.mark.parametrize("backend", ["bwrap", "landlock", "firejail"], indirect=True)
OPEN = ("--quiet", "--network", "open")
NAMES = (
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "npm_config_cafile", "GIT_SSL_CAINFO", "PIP_CERT",
    "AWS_CA_BUNDLE",
)  # fmt: skip
# One line for each client: its name, and whether it believes the server. No client gets an option about certificates.
CLIENTS = f"""
try() {{
  name=$1; shift
  if "$@" > got 2>&1 < /dev/null && grep -q -e served -e HEAD got; then echo "$name believes"; else echo "$name does not"; fi
}}
try curl curl --silent --show-error "$1/page"
try git git ls-remote "$1/repository.git"
try openssl sh -c 'openssl s_client -verify_return_error -connect "${{1#https://}}" < /dev/null && echo served' sh "$1"
try python {PYTHON} -I -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1] + "/page").read())' "$1"
try requests {PYTHON} -I -c 'import sys, requests; print(requests.get(sys.argv[1] + "/page").text)' "$1"
try node node -e 'require("https").get(process.argv[1] + "/page", r => r.on("data", d => console.log(String(d))))' "$1"
rm got
"""
WITHOUT_REQUESTS = subprocess.run((PYTHON, "-I", "-c", "import requests"), capture_output=True).returncode != 0
EXPECTED = ("curl", "git", "openssl", "python", *(() if WITHOUT_REQUESTS else ("requests",)), "node")


@dataclass(frozen=True, slots=True)
class Site:
    jail: Jail
    authority: Pair
    file: Path
    address: str

    def trust(self, *paths: Path | str) -> None:
        self.jail.configure(f"[network]\nca_bundle = {[str(path) for path in paths or (self.file,)]}\n")

    def kept(self) -> list[Path]:
        return sorted((self.jail.user.home / ".local/state/agent-sandbox/ca").glob("*"))

    def verdicts(self, **more: dict[str, str]) -> set[str]:
        done = self.jail.run("sh", "-c", CLIENTS, "sh", self.address, options=OPEN, **more)  # type: ignore[arg-type]
        assert done.code == 0, done.err
        return {line for line in done.out.splitlines() if line.partition(" ")[0] in EXPECTED}


@pytest.fixture
def site(jail: Jail, tmp_path: Path) -> Iterator[Site]:
    need_root()  # a home of its own
    need_parser()
    for tool in ("curl", "git", "openssl", "node"):
        need(tool)
    authority = make("Site CA")
    (tmp_path / "page").write_text("served\n")
    bare = str(tmp_path / "repository.git")
    commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"]
    for words in (["init", "-q", f"{bare}.work"], ["-C", f"{bare}.work", *commit], ["clone", "-q", "--bare", f"{bare}.work", bare],
                  ["-C", bare, "update-server-info"]):  # fmt: skip
        subprocess.run(["git", *words], check=True, capture_output=True, timeout=60)
    file = jail.write(jail.user.home / "site" / "ca.pem", f"# the site's\n{authority.pem}")
    with serve(tmp_path, make("localhost", authority, ca=False)) as address:
        yield Site(jail, authority, file, address)


def believed(by: tuple[str, ...] = EXPECTED) -> set[str]:
    return {f"{name} believes" for name in by}


@BACKENDS
def test_every_client_believes_the_server_with_the_key_and_none_without(site: Site) -> None:
    assert site.verdicts() == {f"{name} does not" for name in EXPECTED}  # the control: they ran, and refused
    assert site.kept() == []
    site.trust()
    assert site.verdicts() == believed()
    theirs = dict.fromkeys(NAMES, "/etc/hostname")
    assert site.verdicts(env=theirs) == believed()  # the caller's values name something else


@BACKENDS
def test_the_bundle_is_the_whole_of_both_cannot_be_changed_and_what_it_was_made_of_stays_outside(site: Site) -> None:
    site.trust()
    script = f"""
for name in {' '.join(NAMES)}; do eval echo \\$$name; done | sort -u
cat "$SSL_CERT_FILE"
(echo x >> "$SSL_CERT_FILE") 2>/dev/null && echo written
rm -f "$SSL_CERT_FILE" 2>/dev/null && echo removed
mv "$SSL_CERT_FILE" moved 2>/dev/null && echo moved
cat {site.file} ~/.local/state/agent-sandbox/ca/* 2>/dev/null && echo seen
exit 0
"""
    inside = site.jail.run("sh", "-c", script)
    path, _, bundle = inside.out.partition("\n")
    assert path.endswith("/ca-bundle.pem"), inside.err
    assert site.jail.outside("cat", site.file).out.endswith(site.authority.pem)
    assert bundle.endswith(site.authority.pem), bundle[-2000:]  # and no word after it: nothing was written, removed, moved or seen
    mine, systems = ssl.create_default_context(cadata=bundle), ssl.create_default_context(cafile="/etc/ssl/certs/ca-certificates.crt")
    assert len(mine.get_ca_certs(binary_form=True)) == len(systems.get_ca_certs(binary_form=True)) + 1
    assert not Path(path).exists()  # with the session it is gone


def refusal(site: Site) -> str:
    done = site.jail.run("echo", "ran", options=OPEN)
    assert (done.code, done.out) == (125, "")
    return done.err


def test_what_cannot_be_used_stops_the_launch_in_words_and_no_key_gets_inside(site: Site) -> None:
    user = site.jail.user
    site.trust()
    site.file.write_text(site.authority.pem + site.authority.key_pem)
    assert f"the CA file {site.file} holds a private key" in refusal(site)
    assert not site.kept()
    site.file.write_text(site.authority.pem[:300])
    assert f"the CA file {site.file} is broken" in refusal(site)
    os.chown(site.file, 0, 0)
    site.file.chmod(0o600)
    settings = user.home / ".config/agent-sandbox/config.toml"
    said = refusal(site)
    assert f"{settings}:2: the CA file {site.file} cannot be read on " in said and "Permission denied" in said
    site.file.unlink()
    assert "No such file" in refusal(site) and "on its own node" in refusal(site)
    mine = site.jail.write(site.jail.project / "ca.pem", site.authority.pem)
    site.trust(mine)
    assert "where the command inside can write" in refusal(site)
    (user.home / "site/link.pem").symlink_to(mine)
    site.trust(user.home / "site/link.pem")
    assert "where the command inside can write" in refusal(site)


def test_a_repository_can_add_no_ca_and_an_admin_can_take_one_away(site: Site) -> None:
    site.jail.write(site.jail.project / ".agent-sandbox.toml", f"[network]\nca_bundle = ['{site.file}']\n")
    clamped = site.jail.run("printenv", "SSL_CERT_FILE", options=OPEN)
    assert (clamped.code, clamped.out) == (1, "") and "a project's own file may not set it" in clamped.err
    (site.jail.project / ".agent-sandbox.toml").unlink()
    site.trust()
    show = ("sh", "-c", 'tail -n 3 "$SSL_CERT_FILE"')
    last = "".join(site.authority.pem.splitlines(keepends=True)[-3:])
    assert site.jail.run(*show, admin={"config.toml": ""}).out == last
    for rule in (f"[filesystem]\nhidden = ['{site.file.parent}']\n", "locked = ['network.ca_bundle']\n"):
        denied = site.jail.run("printenv", "SSL_CERT_FILE", admin={"config.toml": rule})
        assert (denied.code, denied.out) == (1, "") and "network.ca_bundle" in denied.err, rule
    extra = {"config.toml": "[network]\nca_bundle = ['/app/lib/agent-sandbox/site.pem']\n", "site.pem": make("Admin's CA").pem}
    both = site.jail.run("sh", "-c", 'grep -c BEGIN "$SSL_CERT_FILE"', admin=extra)
    one = site.jail.run("sh", "-c", 'grep -c BEGIN "$SSL_CERT_FILE"')
    assert int(both.out) == int(one.out) + 1, both.err  # a person adds to the admin's, and takes none away


def test_a_changed_ca_holds_from_the_next_launch_and_an_expired_one_is_named_at_each(site: Site) -> None:
    site.trust()
    site.file.write_text(make("Another CA").pem)
    assert site.verdicts() == {f"{name} does not" for name in EXPECTED}
    site.file.write_text(site.authority.pem + make("Old CA", ends=-1).pem)
    assert site.verdicts() == believed()
    for _ in range(2):
        assert f"{site.file}: CN=Old CA expired on " in site.jail.run("true").err
    log = next((site.jail.user.home / ".local/state/agent-sandbox/audit").glob("*.jsonl")).read_text()
    assert "CN=Old CA expired on " in log.splitlines()[-2]


def test_a_setting_for_the_jail_stays_and_the_rest_is_explained(site: Site) -> None:
    site.trust()
    inside = site.jail.run("printenv", "PIP_CERT", options=("--quiet", "--set-env", "PIP_CERT=/mine.pem"))
    assert inside.out == "/mine.pem\n"
    said = site.jail.ask("explain", "env", "AWS_CA_BUNDLE").out
    assert "network.ca_bundle" in said and "config.toml:2" in said
    before = [(path, path.stat().st_ino) for path in site.kept()]
    site.file.write_text(site.authority.pem + "# changed\n")
    assert site.jail.ask("--dry-run", "--json", "true").code == 0
    assert [(path, path.stat().st_ino) for path in site.kept()] == before


def test_twenty_that_start_at_once_all_have_the_whole_bundle(site: Site) -> None:
    site.trust()
    words = ["sh", "-c", 'sha256sum < "$SSL_CERT_FILE"']
    started = [site.jail.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(20)]
    ended = [one.communicate(timeout=120) for one in started]
    hashes = {out.split()[0] for out, _ in ended}
    assert len(hashes) == 1 and {(one.returncode, err) for one, (_, err) in zip(started, ended, strict=True)} == {(0, "")}, ended
    assert sorted(path.suffix == ".pem" for path in site.kept()) == [False, True]
    assert next(path.stem for path in site.kept() if path.suffix == ".pem") in hashes


def loaded_by(site: Site) -> str:
    """What Python says that it loaded, in the launcher and its guard."""
    code = f"""
import sys; sys.path.insert(0, {str(site.jail.copy / 'lib')!r})
from agent_sandbox.launcher.__main__ import main
sys.argv[1:] = ['--quiet', '--', 'true']
sys.exit(main())
"""
    done: Result = site.jail.outside(PYTHON, "-I", "-S", "-X", "importtime", "-c", code)
    assert done.code == 0, done.err[-2000:]
    return done.err


def test_a_launch_loads_nothing_of_this_without_the_key_and_no_parser_while_nothing_changes(site: Site) -> None:
    assert "launcher.trust" not in loaded_by(site)
    site.trust()
    assert "cryptography" in loaded_by(site)
    again = loaded_by(site)
    assert "launcher.trust.kept" in again
    assert not [word for word in ("cryptography", "trust.build", "trust.pem", " hashlib") if word in again]


def test_a_python_without_the_parser_says_how_to_get_it(site: Site, tmp_path: Path) -> None:
    site.trust()
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o755)
    script = f'mount --bind {empty} /usr/lib/python3/dist-packages/cryptography && exec setpriv --reuid={site.jail.user.uid} --regid=' \
             f'{site.jail.user.gid} --init-groups -- "$@"'  # fmt: skip
    argv = [need("unshare"), "--mount", "--propagation", "private", "/bin/sh", "-c", script, "sh", site.jail.program, "--quiet", "--", "true"]
    done = users.run_as(users.current_user(), argv, env=site.jail.user.environment, cwd=site.jail.project)
    assert done.returncode == 125 and "python3-cryptography" in done.stderr, done.stderr
    library = site.jail.copy / "lib"
    assert f"--target {library} cryptography" in done.stderr
