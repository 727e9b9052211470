"""What may stand in a file of CAs, what becomes of it, and when a kept bundle is believed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.settings import Entry, Rank
from agent_sandbox.launcher.trust import build as building
from agent_sandbox.launcher.trust import kept, pem, sources
from agent_sandbox.launcher.trust.build import NEVER, build
from agent_sandbox.launcher.trust.kept import Made, get_bundle
from agent_sandbox.launcher.trust.sources import Named
from tests.machines.authority import Pair, make

NOW = int(time.time())
SITE, OTHER = make("Site CA"), make("Other CA")
SYSTEM = make("A root")


def built(*texts: str, now: int = NOW) -> building.Bundle:
    files = [("/etc/roots.crt", False, SYSTEM.pem.encode()), *((f"/site/{n}.pem", True, text.encode()) for n, text in enumerate(texts))]
    return build(files, now, "/lib")


def test_the_systems_roots_and_the_sites_become_one_file_without_doubles_and_comments() -> None:
    noted = f"# Site\r\nCertificate:\n    Data: é\n{SITE.pem}\n\nsome garbage == here\n".replace("\n", "\r\n") + OTHER.pem + SITE.pem
    found = built(noted, SYSTEM.pem + OTHER.pem)
    assert found.content.decode() == SYSTEM.pem + SITE.pem + OTHER.pem
    assert found.warnings == ()


BROKEN = {
    "cut short": (SITE.pem[:200], "does not end"),
    "no beginning": (SITE.pem.partition("\n")[2], "does not begin"),
    "two without a line between them": (SITE.pem.rstrip() + OTHER.pem, "BEGIN or END line"),
    "four dashes": (SITE.pem.replace("-----BEGIN", "----BEGIN"), "BEGIN or END line"),
    "letters that are no base64": (SITE.pem.replace("\nMII", "\nM!!"), "not base64"),
    "one that is no certificate": ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate 1 cannot be understood"),
    "nothing": ("# soon\n", "no certificate"),
    "empty": ("", "no certificate"),
    "binary": ("0\x82\x01\0\x02", "not PEM"),
    "a list of revoked ones": (SITE.pem.replace("CERTIFICATE", "X509 CRL"), "is a X509 CRL"),
    "with OpenSSL's own trust": (SITE.pem.replace("CERTIFICATE", "TRUSTED CERTIFICATE"), "TRUSTED CERTIFICATE"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_stops_with_its_name_and_the_reason(name: str) -> None:
    text, reason = BROKEN[name]
    with pytest.raises(UserError) as stopped:
        built(OTHER.pem, text)
    assert stopped.value.problem.startswith("the CA file /site/1.pem ") and reason in stopped.value.problem


KEYS = (SITE.key_pem, SITE.key_pem.replace("PRIVATE", "EC PRIVATE"), SITE.key_pem.replace("PRIVATE", "ENCRYPTED PRIVATE"), SITE.key_pem[:60],
        SITE.key_pem.replace("PRIVATE", "private"), SITE.key_pem.replace("-----BEGIN", "x----BEGIN"))  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_private_key_stops_everything_and_is_not_shown(key: str) -> None:
    with pytest.raises(UserError) as stopped:
        built(SITE.pem + key)
    assert "private key" in stopped.value.problem
    assert SITE.key_pem.splitlines()[1] not in str(stopped.value)


def test_an_expired_one_a_coming_one_and_one_that_is_no_ca_are_named() -> None:
    old, coming, leaf = make("Old CA", ends=-1), make("Coming CA", begins=1), make("www", SITE, ca=False)
    found = built(old.pem + coming.pem + leaf.pem + SITE.pem)
    assert found.content.decode() == SYSTEM.pem + coming.pem + SITE.pem
    words = [line.removeprefix("network.ca_bundle: /site/0.pem: ") for line in found.warnings]
    begins = ("CN=Old CA expired on ", "CN=Coming CA is not valid before ", "CN=www is not the certificate of a CA")
    assert len(words) == 3 and all(line.startswith(said) for line, said in zip(words, begins, strict=True)), words
    assert found.until == int(coming.certificate.not_valid_before_utc.timestamp())
    assert built(SITE.pem).until == int(SITE.certificate.not_valid_after_utc.timestamp())


def test_without_the_parser_the_way_to_get_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.setitem(sys.modules, "cryptography.x509", None)
    before = list(sys.path)
    with pytest.raises(UserError, match="cannot be loaded") as stopped:
        built(SITE.pem)
    assert "python3-cryptography" in stopped.value.hint and "--target /lib cryptography" in stopped.value.hint
    assert sys.path == before


class Place:
    """A state directory, the system's roots and one file of the site's."""

    def __init__(self, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state, self.site, self.roots = top / "state", top / "site.pem", top / "roots.crt"
        self.builds = 0
        self.write(self.site, SITE)
        self.write(self.roots, SYSTEM)
        monkeypatch.setattr(sources, "SYSTEM", ("/nonexistent", str(self.roots)))
        monkeypatch.setattr(building, "build", self._build)

    def _build(self, *arguments: object) -> building.Bundle:
        self.builds += 1
        return build(*arguments)  # type: ignore[arg-type]

    def write(self, path: Path, *pairs: Pair) -> None:
        path.write_text("".join(pair.pem for pair in pairs))

    def get(self, *more: Path, keep: bool = True) -> Made:
        paths = [str(path) for path in (self.site, *more)]
        named = [Named(path=p, entry=Entry(value=p, rank=Rank.PERSON, layer="mine", key="network.ca_bundle"), host="n1") for p in paths]
        return get_bundle(tuple(named), str(self.state), "n1", "/lib", keep=keep)

    def files(self) -> list[Path]:
        return sorted((self.state / "ca").iterdir())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def whole(*pairs: Pair) -> bytes:
    return "".join(pair.pem for pair in pairs).encode()


def test_a_bundle_is_made_once_and_again_when_a_source_changes(place: Place) -> None:
    assert [place.get(), place.get()] == [Made(content=whole(SYSTEM, SITE), warnings=())] * 2
    assert place.builds == 1
    place.write(place.site, SITE, OTHER)
    assert place.get().content == whole(SYSTEM, SITE, OTHER)
    place.write(place.roots, OTHER)
    assert place.get().content == whole(OTHER, SITE)
    assert place.builds == 3
    assert {path.stat().st_mode & 0o777 for path in place.files()} == {0o600}
    assert not [path for path in place.files() if path.name.endswith(".new")]


def test_a_source_that_was_replaced_with_its_old_size_and_time_is_noticed(place: Place) -> None:
    place.write(place.site, SITE)
    place.get()
    before = place.site.stat()
    new = place.site.with_name("new")
    new.write_bytes(OTHER.pem.encode().ljust(before.st_size, b"\n")[: max(before.st_size, len(OTHER.pem))])
    os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
    new.rename(place.site)
    assert place.get().content == whole(SYSTEM, OTHER)


def test_a_source_that_was_only_touched_needs_no_parser(place: Place) -> None:
    place.get()
    os.utime(place.site, (1, 1))
    assert place.get().content == whole(SYSTEM, SITE)
    assert place.builds == 1


def test_a_kept_bundle_that_was_cut_changed_or_taken_away_is_made_again(place: Place) -> None:
    place.get()
    bundle = next(path for path in place.files() if path.suffix == ".pem")
    note = next(path for path in place.files() if path.suffix != ".pem")
    for spoil in (lambda: bundle.write_bytes(whole(SYSTEM)), lambda: bundle.write_bytes(whole(SYSTEM, OTHER)), bundle.unlink,
                  lambda: bundle.chmod(0o666), lambda: note.write_text("ca bundle 1\nx\nnot a number\nend"), lambda: note.write_text(""),
                  lambda: note.write_bytes(note.read_bytes()[:-9]), lambda: note.write_text("ca bundle 1\nx\n9\nsource\nend")):  # fmt: skip
        before = place.builds
        spoil()
        assert place.get().content == whole(SYSTEM, SITE)
        assert place.builds == before + 1


def test_what_expires_later_is_left_out_and_named_from_then_on(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write(place.site, SITE, short := make("Short CA", ends=2))
    assert place.get() == Made(content=whole(SYSTEM, SITE, short), warnings=())
    later = time.time() + 3 * 86400
    monkeypatch.setattr(kept.time, "time", lambda: later)
    for _ in range(2):
        made = place.get()
        assert made.content == whole(SYSTEM, SITE)
        assert [("CN=Short CA expired" in line) for line in made.warnings] == [True]
    assert place.builds == 2


def test_who_only_asks_leaves_nothing_behind(place: Place) -> None:
    assert place.get(keep=False).content == whole(SYSTEM, SITE)
    assert not place.state.exists()


def test_a_machine_without_roots_says_so_and_one_that_cannot_keep_it_too(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "SYSTEM", ())
    place.state.write_text("a file where the directory should be")
    made = place.get()
    assert made.content == whole(SITE)
    assert [("no roots" in line, "cannot be kept" in line) for line in made.warnings] == [(True, False), (False, True)]


def test_what_nobody_used_for_a_month_goes_and_what_is_used_stays(place: Place) -> None:
    place.get()
    used, note = sorted(place.files(), key=lambda path: path.suffix != ".pem")
    for path in (old := used.with_name("0" * 64 + ".pem"), left := used.with_name("x.1.new")):
        path.write_text("x")
        os.utime(path, (NOW - 40 * 86400,) * 2)
    os.utime(used, (NOW - 40 * 86400,) * 2)
    place.get()  # uses it
    place.write(place.site, OTHER)
    place.get()
    assert used.exists() and note.exists() and not old.exists() and not left.exists()


@pytest.mark.parametrize("what", ["missing", "directory", "fifo", "huge", "open to all"])
def test_a_file_that_cannot_be_used_is_named_with_the_setting(place: Place, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = place.site.with_name("odd.pem")
    if what == "directory":
        path.mkdir()
    elif what == "fifo":
        os.mkfifo(path)
    elif what != "missing":
        place.write(path, SITE)
        path.chmod(0o666 if what == "open to all" else 0o644)
    if what == "huge":
        monkeypatch.setattr(sources, "MOST_BYTES", 100)
        place.site.write_text("")
    with pytest.raises(UserError) as stopped:
        place.get(path)
    said = {"missing": "on n1: No such file", "directory": "name the files", "fifo": "not a regular", "huge": "bytes", "open to all": "everybody"}
    assert str(path) in stopped.value.problem and said[what] in stopped.value.problem and stopped.value.where == "mine"


def test_reading_never_goes_wrong_in_another_way() -> None:
    """Whatever the bytes are: certificates, or a reason."""
    from hypothesis import given, settings, strategies

    begin, end = b"-----BEGIN CERTIFICATE-----\n", b"-----END CERTIFICATE-----\n"
    parts = [SITE.pem.encode(), begin, end, b"-----END X-----", b"\n", b"MIIB", b"-", b"\r\n", b"="]

    @settings(max_examples=300, deadline=None)
    @given(strategies.lists(strategies.sampled_from(parts) | strategies.binary(max_size=8), max_size=8).map(b"".join))
    def holds(data: bytes) -> None:
        try:
            found = build([("/x", True, data)], NOW, "/lib")
        except UserError:
            return
        assert found.content == SITE.pem.encode() and found.until < NEVER
        assert pem.certificates_in(data, "/x")

    holds()
