#!/usr/bin/python3 -IS
"""In the jail, under the names of Slurm's commands: a command line becomes a request to the chaperon, its answer output and exit code.

One file that imports nothing of ours: the launcher writes it into the session, with its interpreter and the directory of FIFOs
filled in. It holds no rule: what may be asked is decided outside. It decides nothing about options either: where the chaperon
wants a script, it says which, and the stub asks again with that file, read with the rights of the jail. docs/chaperon-protocol.md.
"""

import errno
import posix as os  # all of it that is used here; the rest costs more than everything else
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable
else:
    import _signal as signal  # the same without names, which cost as much

FIFOS = "@FIFOS@"
MOST_SCRIPT = 4 << 20
PIECE = 64 << 10
LOOK, LOOKS = 1000, 3  # milliseconds without a word after which the line is looked at, and how often before it is given up
ATOMIC = 4096  # bytes that a pipe which has room takes without waiting
READ = (
    "SLURM", "SBATCH_", "SRUN_", "SALLOC_", "SQUEUE_", "SACCT", "SINFO_", "SCANCEL_", "SCONTROL_", "SPRIO_", "SSHARE_", "SSTAT_", "SREPORT_", "TZ=",
)  # fmt: skip
STOPS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
GONE = "the chaperon of this session has ended: Slurm cannot be reached from this jail any more; start a new session"
LOST = "the chaperon ended before it answered; what was submitted stays: `squeue` in a new session shows it"


class Problem(Exception):
    """Said as Slurm says its errors; the exit code is 1."""


class Stopped(Exception):
    """By a signal, whose number it carries."""


class Line:
    """Two FIFOs of our own, and the one where everybody announces themselves."""

    def __init__(self) -> None:
        self.name = os.urandom(16).hex()
        self.said = self.heard = -1
        try:
            self.ask = os.open(f"{FIFOS}/ask", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise Problem(GONE if error.errno in (errno.ENXIO, errno.ENOENT) else f"the chaperon cannot be reached: {error.strerror}")

    def open(self) -> None:
        """Ours is open at both ends, so that what we say stays there until it is heard; theirs for reading, so that its end is seen."""
        for end in ("in", "out"):
            os.mkfifo(f"{FIFOS}/{self.name}.{end}", 0o600)
        self.said = os.open(f"{FIFOS}/{self.name}.in", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.heard = os.open(f"{FIFOS}/{self.name}.out", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def announce(self) -> None:
        """In one piece, after a line end: whatever somebody else wrote there before is a line of its own."""
        room = select.poll()
        room.register(self.ask, select.POLLOUT)
        while True:
            try:
                os.write(self.ask, b"\nchaperon/1 %s\n" % self.name.encode())
                return
            except BlockingIOError:
                room.poll()
            except BrokenPipeError:
                raise Problem(GONE)

    def has_name(self) -> bool:
        try:
            os.stat(f"{FIFOS}/{self.name}.in")
        except OSError:
            return False
        return True

    def close(self) -> None:
        for handle in (self.said, self.heard, self.ask):
            if handle >= 0:
                os.close(handle)
        for end in ("out", "in"):
            try:
                os.unlink(f"{FIFOS}/{self.name}.{end}")
            except OSError:  # the chaperon was first
                pass


class Talk:
    """One request over one line."""

    def __init__(self, line: Line, request: bytes) -> None:
        self.line, self.left = line, memoryview(request)
        self.taken = bytearray()
        self.output: list[tuple[int, bytes]] = []
        self.end: tuple[bytes, bytes] | None = None  # the last frame
        self.poll = select.poll()
        self.size = len(request)
        self.looks: int | None = LOOKS  # None = somebody has come

    def run(self) -> tuple[bytes, bytes]:
        self.say()
        self.line.announce()
        self.poll.register(self.line.heard, select.POLLIN)
        self.poll.register(self.line.ask, 0)
        if self.left:
            self.poll.register(self.line.said, select.POLLOUT)
        while self.end is None:
            self.turn()
        while self.output:
            self.write(None)
        return self.end

    def turn(self) -> None:
        waits = self.output[0][0] if self.output else -1
        if waits >= 0:
            self.poll.register(waits, select.POLLOUT)
        ready = [handle for handle, _ in self.poll.poll(self.looks and LOOK)]
        if waits >= 0:
            self.poll.unregister(waits)
        if not ready:
            self.look()
        if self.line.said in ready:
            self.say()
            if not self.left:
                self.poll.unregister(self.line.said)
        if self.line.heard in ready:
            self.hear()
        elif self.line.ask in ready:  # nobody reads there any more, nor ever opened our line
            raise Problem(GONE)
        while self.output and self.write(0):
            pass

    def look(self) -> None:
        """Who comes to a line takes its names away, and hears at once. One without names of which nobody took a byte has lost its directory."""
        from fcntl import ioctl
        from termios import FIONREAD

        unheard = int.from_bytes(ioctl(self.line.said, FIONREAD, bytes(4)), sys.byteorder)
        if unheard < self.size - len(self.left):
            self.looks = None
        elif self.looks and not self.line.has_name():
            self.looks -= 1
            if not self.looks:
                raise Problem(GONE)

    def say(self) -> None:
        try:
            while self.left:
                self.left = self.left[os.write(self.line.said, self.left) :]
        except BlockingIOError:
            pass

    def hear(self) -> None:
        piece = os.read(self.line.heard, PIECE)
        if not piece:
            raise Problem(LOST)
        self.taken += piece
        while len(self.taken) >= 5 and self.end is None:
            size = 5 + int.from_bytes(self.taken[1:5], "big")
            if len(self.taken) < size:
                return
            self.obey(bytes(self.taken[:1]), bytes(self.taken[5:size]))
            del self.taken[:size]

    def obey(self, kind: bytes, content: bytes) -> None:
        if kind in b"OR":
            self.output.append((1 if kind == b"O" else 2, content))
        elif kind in b"XW":
            self.end = (kind, content)
        else:
            raise Problem("the chaperon speaks another version of the protocol")

    def write(self, patience: "int | None") -> bool:
        """Pass on a piece of output; False = it is not taken now. Our own reader must not make the chaperon wait."""
        handle, content = self.output[0]
        room = select.poll()
        room.register(handle, select.POLLOUT)
        if not room.poll(patience):
            return False
        try:
            content = content[os.write(handle, content[:ATOMIC]) :]
        except BlockingIOError:
            return False
        except BrokenPipeError:
            raise Stopped(signal.SIGPIPE)
        except OSError:  # closed by who started us: nobody wants it
            content = b""
        self.output[:1] = [(handle, content)] if content else []
        return True


def frame(kind: bytes, content: bytes) -> bytes:
    return kind + len(content).to_bytes(4, "big") + content


def encode(name: str, words: "list[str]", script: "tuple[bytes, bytes] | None") -> bytes:
    mask = os.umask(0)
    os.umask(mask)
    variables = [key + b"=" + value for key, value in os.environ.items()]
    wanted = variables if name == "sbatch" else [one for one in variables if one.startswith(tuple(map(str.encode, READ)))]
    body = b"".join((
        frame(b"N", name.encode()), frame(b"A", listed(map(to_bytes, words))), frame(b"D", here()),
        frame(b"B", listed(wanted)), frame(b"U", mask.to_bytes(2, "big")),
        frame(b"P", script[0]) + frame(b"S", script[1]) if script else b"", frame(b"E", b""),
    ))  # fmt: skip
    return frame(b"V", b"\0\1" + len(body).to_bytes(4, "big")) + body


def to_bytes(text: str) -> bytes:
    """As the kernel gave it."""
    return text.encode(sys.getfilesystemencoding(), "surrogateescape")


def tell(text: str) -> None:
    try:
        os.write(2, text.encode("utf-8", "surrogateescape"))
    except OSError:
        pass


def listed(words: "Iterable[bytes]") -> bytes:
    return b"".join([word + b"\0" for word in words])


def here() -> bytes:
    try:
        return os.getcwdb()
    except OSError as error:
        raise Problem(f"getcwd failed: {error.strerror}")


def guess(words: "list[str]") -> "tuple[bytes, bytes] | None":
    """The script, most probably: the first word that is a file. If it is not, the chaperon will say so, and neither is it then a
    mistake that it cannot be read, or is long: `-o` may stand before it."""
    for word in words:
        if word.startswith("--wrap"):
            return None
        if not word.startswith("-") and is_file(word):
            try:
                return to_bytes(word), read(to_bytes(word))
            except Problem:
                return None
    return None


def is_file(path: str) -> bool:
    try:
        return os.stat(path).st_mode & 0o170000 == 0o100000
    except (OSError, ValueError):
        return False


def read(path: bytes, typed: bytes = b"") -> bytes:
    """Whole; an empty path is the standard input. As sbatch does: at its path, then the name as it was typed on PATH, then here."""
    name = typed or path
    places = [path]
    if name[:1] not in b"/.":
        places += [directory + b"/" + name for directory in os.environ.get(b"PATH", b"").split(b":") if directory]
    for place in (*places, name):
        try:
            handle = os.open(place, os.O_RDONLY | os.O_CLOEXEC) if place else 0
            return read_whole(handle)
        except OSError:
            continue
    raise Problem(f"Unable to open file {name.decode('utf-8', 'surrogateescape')}")


def read_whole(handle: int) -> bytes:
    pieces, size = [], 0
    while piece := os.read(handle, 1 << 20):
        pieces.append(piece)
        size += len(piece)
        if size > MOST_SCRIPT:
            raise Problem(f"the script has more than {MOST_SCRIPT} bytes")
    return b"".join(pieces)


def ask(request: bytes) -> "tuple[bytes, bytes]":
    line = Line()
    try:
        line.open()
        return Talk(line, request).run()
    except OSError as error:
        raise Problem(f"the chaperon cannot be reached: {error.strerror}")
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        line.close()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)


def converse(name: str, words: "list[str]") -> int:
    script = guess(words) if name == "sbatch" else None
    for _ in range(2):
        kind, content = ask(encode(name, words, script))
        if kind == b"X":
            return content[0] if content else 1
        path, _, typed = content.partition(b"\0")
        script = path, read(path, typed)
    raise Problem("the chaperon wants one file after the other")


def stop(number: int, _: object) -> None:
    raise Stopped(number)


def die(number: int) -> None:
    """Of the signal itself, so that a shell sees what it would see of the real command."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)


def main() -> None:
    name = sys.argv[0].rpartition("/")[2]
    code = 1
    try:
        for number in STOPS:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, stop)
        code = converse(name, sys.argv[1:])
    except Problem as problem:
        tell(f"{name}: error: {problem}\n")
    except Stopped as stopped:
        die(stopped.args[0])
    os._exit(code)


if __name__ == "__main__":
    main()
