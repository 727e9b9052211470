from __future__ import annotations
import time, signal
import pytest
from tests.slurm.test_envelope import envelopes
from tests.machines.slurm.keeper import wait_for
from tests.machines.jail import Jail
from tests.slurm.envelopes import *
TRAP = "#!/bin/bash\ntrap 'echo usr1' USR1\ntrap 'echo term' TERM\necho ready\nfor i in $(seq 60); do sleep 0.1; done\necho end; exit 7\n"
def direct(e, script, *opts):
    return e.slurm.submit(e.jail.user, *opts, cwd=e.jail.project, input=script)
def ready(e, j):
    wait_for(lambda: "ready" in text_of(e.jail.project / f"slurm-{j}.out"), "ready")
@pytest.mark.parametrize("words", [["--signal=USR1","-b"],["--signal=USR1","-f"],["--signal=USR1"],[],["--signal=TERM","-b"]])
def test_sig(envelopes, words):
    e = envelopes
    for how in ("direct","env"):
        j = direct(e, TRAP) if how=="direct" else e.submit(TRAP)
        ready(e, j)
        time.sleep(0.2)
        print(how, words, e.slurm.run(e.jail.user, "scancel", *words, str(j)).stderr)
        d = e.wait(j)
        time.sleep(0.3)
        print(d.shown["JobState"], d.code, repr(text_of(e.jail.project / f"slurm-{j}.out")), repr(d.log))
def test_notrap(envelopes):
    e = envelopes
    S = "#!/bin/bash\necho ready; for i in $(seq 60); do sleep 0.1; done\n"
    for words in (["--signal=USR1","-b"], []):
      for how in ("direct","env"):
        j = direct(e, S) if how=="direct" else e.submit(S)
        ready(e, j)
        e.slurm.run(e.jail.user, "scancel", *words, str(j))
        d = e.wait(j)
        print(how, words, d.shown["JobState"], d.code, repr(d.out), repr(d.log), e.slurm.records(j, "JobID", "State", "ExitCode"))
