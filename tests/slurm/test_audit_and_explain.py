"""A session leaves a log of what it asked Slurm for, without secrets; `explain` says inside and outside what the chaperon then does."""

from __future__ import annotations

import json

from tests.slurm.conftest import Site

SECRET = "hunter2"
SCRIPT = f"#!/bin/sh\n#SBATCH --time=5 --export=ALL,TOKEN={SECRET}\necho {SECRET}\n"


def events(site: Site) -> tuple[str, list[dict[str, object]]]:
    text = "".join(path.read_text() for path in sorted((site.jail.user.home / ".local/state/agent-sandbox/audit").iterdir()))
    return text, [event for event in map(json.loads, text.splitlines()) if event["event"] == "slurm"]


def test_every_request_is_in_the_log_with_verdict_and_job_and_no_secret(site: Site) -> None:
    site.jail.configure('[slurm]\nenabled = "on"\nmax_nodes = 1\n')
    site.jail.write(site.jail.project / "job.sh", SCRIPT)
    site.jail.write(site.jail.project / "all.sh", f"""
sbatch --parsable --hold job.sh word
sbatch --parsable --hold --export=ALL,A={SECRET} --comment=seen --wrap='echo {SECRET}'
SBATCH_CLUSTERS={SECRET} sbatch --hold job.sh
sbatch --wrpa 'echo {SECRET}'
sbatch -N2 job.sh
sbatch --hold --export=A={SECRET} --time=x --wrap='{SECRET}'
squeue --noheader
scancel 99999
srun hostname
""")  # fmt: skip
    inside = site.inside("sh", "all.sh", options=())
    first, second = map(int, inside.out.split()[:2])
    text, found = events(site)
    site.slurm.run(site.jail.user, "scancel", f"--user={site.jail.user.name}")
    assert SECRET not in text
    assert [(event["command"], event["verdict"], event.get("job")) for event in found] == [
        ("sbatch", "allow", first), ("sbatch", "allow", second), ("sbatch", "refuse", None), ("sbatch", "refuse", None), ("sbatch", "refuse", None),
        ("sbatch", "refuse", None), ("squeue", "allow", None), ("scancel", "refuse", None), ("srun", "refuse", None),
    ]  # fmt: skip
    assert found[0]["arguments"] == ["--parsable", "--hold", "job.sh", "word"]
    assert found[1]["arguments"] == ["--parsable", "--hold", "--export=ALL,A=…", "--comment=seen", "--wrap=…"]
    assert "slurm.max_nodes is 1" in str(found[4]["said"])
    shown = site.jail.ask("audit", "show", "-n", "100").out
    assert f"sbatch --parsable --hold job.sh word · job {first}" in shown
    assert "sbatch -N 2 job.sh · refused · sbatch: error: -N 2 (command line): asks for up to 2 nodes; slurm.max_nodes is 1" in shown
    assert site.jail.ask("audit", "verify").code == 0


def test_explain_says_the_same_inside_and_outside_and_the_chaperon_does_it(site: Site) -> None:
    config = site.jail.configure('[slurm]\nenabled = "on"\nmax_nodes = 1\nmax_time = "2h"\n')
    site.jail.write(site.jail.project / "job.sh", "#!/bin/sh\n#SBATCH -J named --output=o.txt\ntrue\n")
    asked = ("explain", "--json", "sbatch")
    jobs = [("-N2", "job.sh"), ("--hold", "job.sh"), ("--extra=x", "job.sh"), ("--json", "job.sh")]
    script = "".join(f"agent-sandbox {' '.join(asked)} {' '.join(words)}; echo ,\n" for words in jobs)
    inside = site.inside("sh", "-c", f"echo [; {script} echo 0]; sbatch --extra=x job.sh; sbatch --parsable --hold job.sh", options=())
    text, _, number = inside.out.partition("0]\n")
    within = json.loads(f"{text}0]")[:-1]
    without = [json.loads(site.outside(site.jail.program, *asked, *words).out) for words in jobs]
    assert [one["verdict"] for one in within] == [one["verdict"] for one in without] == ["refused", "allowed", "refused", "refused"], inside.err
    assert [one["options"] for one in within] == [one["options"] for one in without]
    assert without[0]["origins"] == {"slurm.max_nodes": f"{config}:3"}
    assert within[0]["origins"] == {"slurm.max_nodes": "person"}
    assert str(site.jail.user.home / ".local") not in text
    assert [row["from"] for row in without[1]["options"]] == ["line 2 of the script"] * 2 + ["command line", "rule"]
    newer = "needs Slurm 23.02; here is 22.05"
    assert newer in str(without[2]["options"]) and newer in str(within[2]["options"]) and newer in inside.err
    job = site.slurm.job(int(number))
    site.slurm.run(site.jail.user, "scancel", number.strip())
    runs = without[1]["runs"]
    assert f"--time={'0-02:00:00'}" in runs and job["TimeLimit"] == "02:00:00"
    assert f"--job-name={job['JobName']}" in runs and f"--chdir={job['WorkDir']}" in runs
