"""The named grammars of values: text → what it means, or a ValueError that says what would be right. Pure.

A grammar accepts what Slurm reads in one way only, and nothing that Slurm, the shell of a node or a terminal would act
on. `accepted` and `refused` are run by the tests for every option that has the grammar.
"""

from __future__ import annotations

import re

from agent_sandbox.chaperon.registry import amounts, jobids
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.chaperon.words import Option

LONGEST = 4096  # of most values
LONGEST_TEXT = 65_536  # of a wrapped command, an export list


@record
class Grammar:
    read: Callable[[str], object]
    accepted: tuple[str, ...]
    refused: tuple[str, ...] = ()
    longest: int = LONGEST


def read(option: Option, text: str | None) -> object:
    """What the value of the option means."""
    if text is None:
        return None
    grammar = GRAMMARS[option.grammar]
    if len(text) > grammar.longest:
        raise ValueError(f"is longer than {grammar.longest} characters")
    if option.choices:
        return _chosen(option.choices, text, listed=option.grammar == "choices")
    return grammar.read(text)


def examples(option: Option) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Values that must be accepted and refused for this option."""
    grammar = GRAMMARS[option.grammar]
    if option.choices:
        return (*option.choices, *option.accepted), ("", "no such word", *option.refused)
    return (*grammar.accepted, *option.accepted), (*grammar.refused, *option.refused)


def _chosen(choices: tuple[str, ...], text: str, *, listed: bool) -> tuple[str, ...] | str:
    known = {choice.lower(): choice for choice in choices}
    words = text.split(",") if listed else [text]
    if not all(word.lower() in known for word in words):
        raise ValueError(f"must be {'any' if listed else 'one'} of {', '.join(choices)}")
    meant = tuple([known[word.lower()] for word in words])
    return meant if listed else meant[0]


def _matching(pattern: str, wrong: str) -> Callable[[str], object]:
    compiled = re.compile(pattern)

    def check(text: str) -> object:
        if not compiled.fullmatch(text):
            raise ValueError(wrong)
        return text

    return check


def _listing(pattern: str, wrong: str) -> Callable[[str], object]:
    """A list with commas."""
    compiled = re.compile(pattern)

    def check(text: str) -> object:
        parts = tuple(text.split(","))
        if not all(compiled.fullmatch(part) for part in parts):
            raise ValueError(wrong)
        return parts

    return check


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be text on one line without control characters")
    return text


def _labels(text: str) -> tuple[str, ...]:
    parts = tuple(_printable(text).split(","))
    if not all(0 < len(part) <= 1024 for part in parts):
        raise ValueError("must be names with commas between")
    return parts


def _anything(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not hold a NUL")
    return text


def _path(text: str) -> str:
    if not text or not text.isprintable():
        raise ValueError("must be a path without control characters")
    return text


_CONDITIONS = ("after", "afterany", "afterburstbuffer", "aftercorr", "afternotok", "afterok")
_WAITED = r"[0-9]{1,10}(?:_(?:[0-9]{1,9}|\*))?(?:\+[0-9]{1,6})?"


def _dependency(text: str) -> object:
    """The jobs that are waited for."""
    parts = re.split("[,?]", text)
    if not parts or len(set(re.findall("[,?]", text))) > 1:
        raise ValueError("must not mix `,` and `?`")
    return tuple([job for part in parts for job in _condition(part)])


def _condition(part: str) -> tuple[object, ...]:
    if part.lower() == "singleton":
        return ()
    kind, _, ids = part.partition(":")
    if kind.lower() not in _CONDITIONS or not re.fullmatch(f"{_WAITED}(?::{_WAITED})*", ids):
        raise ValueError(f"must be conditions such as afterok:123:124 or singleton; known are {', '.join(_CONDITIONS)}")
    return tuple([job for one in ids.split(":") for job in jobids.read(one.partition("+")[0])])


_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,254}"
_NAMES = _listing(_WORD, "must be names of letters, digits and _.@+- with commas between")
_PLAIN = "must be letters, digits and one of "
_SIGNALS = r"(?:SIG)?(?:HUP|INT|QUIT|ABRT|KILL|ALRM|TERM|USR1|USR2|URG|CONT|STOP|TSTP|TTIN|TTOU|PIPE|CHLD|XCPU)|[1-9][0-9]?"

GRAMMARS: dict[str, Grammar] = {
    "flag": Grammar(read=_printable, accepted=()),
    "choice": Grammar(read=_printable, accepted=()),
    "choices": Grammar(read=_printable, accepted=()),
    "count": Grammar(read=amounts.count, accepted=("0", "4", "08"), refused=("", "-1", "+1", " 1", "1k", "0x4", "1.5", "٣")),
    "positive": Grammar(read=amounts.positive, accepted=("1", "08", "4000"), refused=("", "0", "-1", "+4", " 4", "4k", "٣", "9999999999")),
    "nodes": Grammar(read=amounts.nodes, accepted=("1", "2-4", "01"), refused=("", "0", "-1", "1-", "4-2", "1 - 2", "1k", "٣")),
    "size": Grammar(read=amounts.size, accepted=("0", "100", "4G", "1gb", "2T"), refused=("", "-1", "1.5G", "1P", "1Gx", "B", "1B")),
    "time": Grammar(read=amounts.duration, accepted=("5", "1:30", "1:2:3", "1-2", "1-2:3:4", "UNLIMITED", "0"),
        refused=("", "5x", "1:", " 5", "1-", "1-2:3:4:5", "99999999999", "٣")),
    "array": Grammar(read=amounts.array, accepted=("0-15", "1,3,5-7", "0-15:4", "0-15%4", "[1-3]", "[1-3%2]"),
        refused=("", "3-1", "1 ,2", "1-3:0", "0x1", "1-3%", "-1", "1,", "٣")),
    "hosts": Grammar(read=amounts.hosts, accepted=("n1", "n1,n[3-5]", "a[1-2]-b[01-03]"),
        refused=("", "/etc/passwd", "./hosts", "n[1-99999999]", "n 1", "ALL", "n[3-1]", "-w")),
    "gpus": Grammar(read=amounts.gpus, accepted=("1", "a100:2", "a100:2,v100:1"), refused=("", "-1", "a100", "a:b:1", "1;2")),
    "resources": Grammar(read=amounts.resources, accepted=("gpu", "gpu:2", "gpu:a100:2", "none", "gres:gpu:1", "shard:4,gpu:1"),
        refused=("", "gpu:", "gpu:a:b:2", "gpu 2", "help", "/x", "gpu,")),
    "tres": Grammar(read=amounts.tres, accepted=("cpu:4", "cpu=4,gres/gpu:a100:1", "license/x:1"), refused=("", "fs/x:1", "gres/", "cpu:4:5:6")),
    "jobs": Grammar(read=jobids.read, accepted=("1", "0012", "1,2", "1_2", "1_[1-5,7%2]", "1_*", "1+1", "1.batch", "1.0", "1 2", "1_3.extern"),
        refused=("", "0", "-1", "1x", "1_", "1_[", "1_[]", "1_[1-]", "٣", "1;2", "1.5x", "99999999999", "1\n2"), longest=jobids.LONGEST),
    "dependency": Grammar(read=_dependency,
        accepted=("afterok:1", "afterany:1:2,afterok:3", "after:1+5", "singleton", "afterok:1?afterok:2", "aftercorr:1_*"),
        refused=("", "afterok", "afterok:", "expand:1", "afterok:x", "afterok:1,afterok:2?afterok:3", "afterok:-1")),
    "signal": Grammar(read=_matching(rf"(?:(?:R|B|RB|BR):)?(?i:{_SIGNALS})(?:@[0-9]{{1,5}})?", "must be [R][B:]signal[@seconds], such as B:USR1@60"),
        accepted=("USR1", "B:USR1@60", "R:10", "RB:SIGTERM@5"), refused=("", "B:", "USR1@", "X:USR1", "USR9", "USR1@60s")),
    "a signal": Grammar(read=_matching(rf"(?i:{_SIGNALS})", "must be the name or the number of a signal"),
        accepted=("TERM", "sigusr1", "9"), refused=("", "USR9", "9 9")),
    "name": Grammar(read=_matching(_WORD, "must be a name of letters, digits and _.@+-"),
        accepted=("physics", "a-1_b.c"), refused=("", "a b", "a,b", "/x", "a;b")),
    "names": Grammar(read=_NAMES, accepted=("physics", "a,b"), refused=("", "a,,b", "a b", "../x", "a\nb", "a;b")),
    "identities": Grammar(read=_listing(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*\$?", "must be names or numbers of users"),
        accepted=("alice", "1000", "a,b"), refused=("", "a b", "a,")),
    "states": Grammar(read=_listing(r"[A-Za-z_&|]{1,64}", "must be names of states, with commas between"),
        accepted=("RUNNING", "pd,r", "all"), refused=("", "a b", "1,")),
    "labels": Grammar(read=_labels, accepted=("job", "a b,c"), refused=("", "a\nb", "a,,b", "a\u00a0b", "a\u202eb", "\udc80")),
    "features": Grammar(read=_matching(r"[A-Za-z0-9_.&|*()\[\]!:,@=+-]{1,1024}", _PLAIN + "_.&|*()[]!:,-"),
        accepted=("gpu&fast", "[a*2|b]"), refused=("", "a b", "`x`", "$x")),
    "word": Grammar(read=_matching(r"[A-Za-z0-9_=,:.@*+-]{1,1024}", _PLAIN + "_=,:.@*+-"),
        accepted=("a:1,b=2", "low-high:ondemand"), refused=("", "a b", "$x", "a\nb")),
    "distribution": Grammar(read=_matching(r"(?i:(?:\*|block|cyclic|plane=[0-9]{1,6})(?::(?:\*|block|cyclic|fcyclic)){0,2}(?:,(?:no)?pack)?)",
        "must be block, cyclic or plane=N, with :block, :cyclic or :fcyclic after it; arbitrary needs a file of hosts"),
        accepted=("block", "cyclic:block", "plane=4", "*:cyclic,NoPack"), refused=("", "arbitrary", "plane", "block;x")),
    "topology": Grammar(read=_matching(r"(?:\*|[0-9]{1,6})(?::(?:\*|[0-9]{1,6})){0,2}", "must be sockets[:cores[:threads]]"),
        accepted=("2", "2:4:1", "*:4"), refused=("", "2:", "a", "1-2")),
    "switches": Grammar(read=_matching(r"[0-9]{1,9}(?:@[0-9:-]{1,20})?", "must be count[@longest wait]"),
        accepted=("1", "2@10:00"), refused=("", "@5", "a")),
    "moment": Grammar(read=_matching(r"[A-Za-z0-9:+./ -]{1,64}", "must be a time such as now+1hour, 16:00 or 2030-01-20T12:34:00"),
        accepted=("now+1hour", "16:00", "2030-01-20T12:34:00", "midnight"), refused=("", "$(x)", "a\nb")),
    "address": Grammar(read=_matching(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,254}", "must be one mail address"),
        accepted=("a@b.org", "alice"), refused=("", "-t", "a b", "a,b", "|sh")),
    "text": Grammar(read=_printable, accepted=("a b; c", "größe", ""), refused=("a\nb", "a\x1b[0m", "a\0b")),
    "format": Grammar(read=_printable, accepted=("%i %j", "jobid:10,name", "%.18i|%9P"), refused=("a\nb", "a\x1bb", "a\0b")),
    "path": Grammar(read=_path, accepted=("out/%j.txt", "/dev/null", "a b"), refused=("", "a\nb", "a\0b")),
    "directory": Grammar(read=_path, accepted=("sub", ".", "a b"), refused=("", "a\nb", "a\0b")),
    "command": Grammar(read=_anything, accepted=("echo a\necho b",), refused=("a\0b",), longest=1 << 20),
    "export": Grammar(read=_anything, accepted=("ALL", "NONE", "A=1,B", "A='x,y'"), refused=("a\0b",), longest=LONGEST_TEXT),
    "anything": Grammar(read=_anything, accepted=("x",), refused=("a\0b",), longest=LONGEST_TEXT),
}  # fmt: skip
