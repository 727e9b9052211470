"""Command lines, as data. One a line; `<` after one gives the script on its input, `A=b` before one sets a variable."""

from __future__ import annotations

import re

from tests.slurm.differential.sides import Case

JOB = '#!/bin/sh\n#SBATCH -t 5\necho hello "$@"\n'
FILES = {"job.sh": JOB, "sub/inner.sh": "#!/bin/bash\npwd\n", "no-shebang": "echo x\n", "dos.sh": "#!/bin/sh\r\necho x\r\n", "empty": "",
         "bad.sh": "#!/bin/sh\n#SBATCH --no-such\ntrue\n", "late.sh": "#!/bin/sh\ntrue\n#SBATCH --no-such -n 99999\n"}  # fmt: skip

# Submissions. Those that are held stay as they were submitted; the others run.
SUBMISSIONS = """
sbatch job.sh
sbatch -H job.sh
sbatch -H job.sh one 'two words' --three
sbatch -H ./job.sh
sbatch -H sub/inner.sh
sbatch -H -- job.sh
sbatch -H --wrap 'echo wrapped'
sbatch -H --wrap='echo wrapped; exit 3' -J named
sbatch -H <
sbatch -H -n2 <
sbatch --parsable -H job.sh
sbatch --parsable job.sh
sbatch -Q -H job.sh
sbatch --quiet job.sh
sbatch -Q --parsable -H job.sh
sbatch --test-only job.sh
sbatch --test-only --parsable job.sh
sbatch --test-only -Q job.sh
sbatch --test-only -n 99999 job.sh
sbatch --test-only --wrap=true -t 30
sbatch -W job.sh
sbatch --wait --wrap='exit 5'
sbatch --wait --parsable --wrap='kill -9 $$'
sbatch --wait -a 1-2 --wrap='exit $SLURM_ARRAY_TASK_ID'
sbatch -W -Q job.sh
sbatch -H -J name job.sh
sbatch -H --job-name='a b' job.sh
sbatch -H --job-name a:b/c job.sh
sbatch -H -J '' job.sh
SBATCH_JOB_NAME=fromenv sbatch -H job.sh
SLURM_JOB_NAME=outer sbatch -H job.sh
SBATCH_TIMELIMIT=7 sbatch -H job.sh
SBATCH_PARTITION=short SBATCH_QOS=high sbatch -H -t 3 job.sh
sbatch -H -t 1:30 job.sh
sbatch -H --time=1-2:3:4 job.sh
sbatch -H -t UNLIMITED job.sh
sbatch -H --time-min=3 -t 9 job.sh
sbatch -H -p short job.sh
sbatch -H -p short,debug job.sh
sbatch -H --account=physics --qos=high job.sh
sbatch -HQn2 -c 2 job.sh
sbatch -H --mem=100M --tmp=5 job.sh
sbatch -H --mem-per-cpu=10M -n2 job.sh
sbatch -H -N1-1 --ntasks-per-node=3 job.sh
sbatch -H -B 1:2:1 job.sh
sbatch -H --exclusive job.sh
sbatch -H --exclusive=user job.sh
sbatch -H -s job.sh
sbatch -H -O -n 20 job.sh
sbatch -H --comment='x, y; z' job.sh
sbatch -H --nice job.sh
sbatch -H --nice=50 job.sh
sbatch -H --requeue job.sh
sbatch -H --no-requeue job.sh
sbatch -H --signal=B:USR1@60 job.sh
sbatch -H --signal=TERM job.sh
sbatch -H --begin=now+1hour job.sh
sbatch -H --deadline=now+3hours job.sh
sbatch -H -a 1-3 job.sh
sbatch -H --array=1,3-9:2%2 job.sh
sbatch -H --array 5 job.sh
sbatch -H -d singleton job.sh
sbatch -H -d afterok:{0} job.sh | sbatch --parsable -H job.sh
sbatch -d afterany:{0}:{1} job.sh | sbatch --parsable -H job.sh | sbatch --parsable -H job.sh
sbatch -H -d after:{0}+5 job.sh | sbatch --parsable -H job.sh
sbatch -H -d 'afterok:{0}?afternotok:{0}' job.sh | sbatch --parsable -H job.sh
sbatch -d aftercorr:{0} -a 1-2 job.sh | sbatch --parsable -H -a 1-2 job.sh
sbatch --kill-on-invalid-dep=yes -H -d afterok:{0} job.sh | sbatch --parsable -H job.sh
sbatch -d afterok:77777 job.sh
sbatch -H -D sub inner.sh
sbatch -H -o out.txt -e err.txt job.sh
sbatch -H --out=x --err=y --inp=/dev/zero job.sh
sbatch -H --open-mode=append job.sh
sbatch -H --export=NONE job.sh
sbatch -H --export=ALL,A=b job.sh
sbatch -H -C nosuch job.sh
sbatch -H -w {host} job.sh
sbatch -H -x nosuchnode job.sh
sbatch -H --contiguous --switches=1@5 job.sh
sbatch -H -k --profile=Task --acctg-freq=task=30 job.sh
sbatch -H --cpu-freq=high --mem-bind=local job.sh
sbatch -H --wckey=x job.sh
sbatch -H --hint=nomultithread job.sh
sbatch -H --threads-per-core=1 job.sh
sbatch -H -v job.sh
sbatch -H late.sh
sbatch -H job.sh -n 5
sbatch
sbatch <empty
sbatch missing.sh
sbatch sub
sbatch no-shebang
sbatch empty
sbatch dos.sh
sbatch bad.sh
sbatch --no-such job.sh
sbatch -Z job.sh
sbatch --nodes
sbatch --parsable=yes job.sh
sbatch --mem job.sh
sbatch -n zero job.sh
sbatch -n 0 job.sh
sbatch -n -1 job.sh
sbatch -N 2-1 job.sh
sbatch -t nonsense job.sh
sbatch --mem=lots job.sh
sbatch -a 3-1 job.sh
sbatch -a x job.sh
sbatch -d nonsense:1 job.sh
sbatch --begin=never job.sh
sbatch --signal=NOPE job.sh
sbatch -p nosuch job.sh
sbatch -A nosuch job.sh
sbatch -q nosuch job.sh
sbatch -n 99999 job.sh
sbatch -N 5 job.sh
sbatch -p short -t 100 job.sh
sbatch --gres=gpu:1 job.sh
sbatch --mem=9999T job.sh
sbatch -w nosuchnode job.sh
sbatch --wrap=true job.sh
sbatch --wrap=
sbatch --priority=5 -H job.sh
sbatch --reservation=nosuch job.sh
sbatch --help
sbatch --usage
sbatch --version
sbatch -V job.sh
"""

# What changes jobs, on jobs that the side submitted itself.
CONTROLS = """
scancel {0} | sbatch -H job.sh
scancel {0} {1} | sbatch -H job.sh | sbatch -H job.sh
scancel {0},{1} | sbatch -H job.sh | sbatch -H job.sh
scancel {0}_2 | sbatch -H -a 1-3 job.sh
scancel {0}_[1-2] | sbatch -H -a 1-3 job.sh
scancel -v {0} | sbatch -H job.sh
scancel -Q {0} | sbatch -H job.sh
scancel -n uniquename{0} | sbatch -H job.sh
scancel --name=cancelme --me | sbatch -H -J cancelme job.sh
scancel -t PENDING -n pend --user={user} | sbatch -H -J pend job.sh
scancel -p short {0} | sbatch -H job.sh
scancel -s KILL {0} | sbatch --wrap='touch started; exec sleep 100'
scancel -b -s TERM {0} | sbatch --wrap='touch started; exec sleep 100'
scancel --full {0} | sbatch --wrap='touch started; exec sleep 100'
scancel {0} {0} | sbatch -H job.sh
scancel
scancel nonsense
scancel 0
scancel --no-such
scancel -s NOPE {0} | sbatch -H job.sh
scancel 7777777
scancel --help
scancel --usage
scancel -V
scontrol release {0} | sbatch -H job.sh
scontrol release {0} {1} | sbatch -H job.sh | sbatch -H job.sh
scontrol release jobid={0} | sbatch -H job.sh
scontrol release {0}_1 | sbatch -H -a 1-2 job.sh
scontrol hold {0} | sbatch --begin=now+1hour job.sh
scontrol hold JobId={0} | sbatch --begin=now+1hour job.sh
scontrol hold {0}_2 | sbatch --begin=now+1hour -a 1-3 job.sh
scontrol hold {0},{1} | sbatch --begin=now+1hour job.sh | sbatch --begin=now+1hour job.sh
scontrol requeue {0} | sbatch --wrap='touch started; exec sleep 100'
scontrol requeue {0} | sbatch -H job.sh
scontrol requeue {0} | sbatch --no-requeue --wrap='touch started; sleep 3'
scontrol update JobId={0} TimeLimit=3 | sbatch -H job.sh
scontrol update jobid={0} Comment='a b' JobName=renamed | sbatch -H job.sh
scontrol update job={0} Nice=5 Partition=short QOS=high | sbatch -H job.sh
scontrol update JobId={0} Dependency=afterok:{1} | sbatch -H job.sh | sbatch -H job.sh
scontrol update JobId={0} ArrayTaskThrottle=2 | sbatch -H -a 1-4 job.sh
scontrol update JobId={0} StartTime=now+2hours | sbatch -H job.sh
scontrol update JobId={0} Requeue=0 | sbatch -H job.sh
scontrol update JobId={0} Partition=nosuch | sbatch -H job.sh
scontrol update JobId={0} Priority=5000 | sbatch -H job.sh
scontrol -Q update JobId={0} TimeLimit=4 | sbatch -H job.sh
scontrol update JobId={0}_2 TimeLimit=4 | sbatch -H -a 1-3 job.sh
scontrol update JobId={0} Name=x TimeLimit=nonsense | sbatch -H job.sh
scontrol update JobId={0} NoSuchKey=1 | sbatch -H job.sh
scontrol update JobId={0} NumNodes=2 | sbatch -H job.sh
scontrol update TimeLimit=3
scontrol hold
scontrol release 7777777
scontrol nosuchverb
scontrol --help
scontrol --version
"""

# What only looks, on the same jobs from both sides: {held} {array} {running} {done} {failed} were submitted from inside.
VIEWS = """
squeue
squeue -h
squeue -l
squeue -a -r
squeue --me
squeue -u {user}
squeue --user {user} --states=all
squeue --user={uid}
squeue -j {held}
squeue -j{held},{running}
squeue --jobs={array}
squeue --jobs {array}_1
squeue -j {array}_[1-2]
squeue -j 0{held}
squeue -h -j {done} -t all
squeue -j {done}
squeue -t PD
squeue -t R,CD,F
squeue -t all --sort=i -o '%i %j %T %M %l %D %R'
squeue -h -t all -S -i -o '%.18i|%.9P|%.8j|%.8u|%.2t'
squeue -t all -O jobid:20,name:30,state,timelimit,username,account,qos
squeue -O JobArrayID,Name,ReasonList -h
squeue -t all --Format=jobid,comment,dependency,prioritylong
squeue -n held
squeue -p short
squeue -p debug,short -A users,physics
squeue -q normal
squeue -w {host}
squeue -s
squeue --start
squeue --json
squeue --yaml
squeue --json -j {held}
SQUEUE_FORMAT='%i %j' squeue
SQUEUE_STATES=PD squeue -h
squeue -o '%i %Z %o'
squeue -O jobid,stdout:100,command:40,workdir:100
squeue -j nonsense
squeue -j 7777777
squeue --no-such
squeue -t nosuch
squeue -u nosuchuser
squeue -O nosuchfield
squeue --help
squeue --usage
squeue -V
sacct
sacct -X
sacct -n -X -P -o jobid,jobname,state,exitcode
sacct -j {done}
sacct -j {failed} -o jobid,state,exitcode,derivedexitcode -P
sacct -j {done}.batch -n -o jobid,jobname
sacct -j {array} -P -X
sacct --jobs={done},{failed} --parsable2 --format=jobid%20,jobname%30,partition,account,alloccpus,state
sacct -u {user} -X
sacct --user {user} -s CD -S now-1hour -X -P
sacct -s F -S today -E now -X -n
sacct --name=done -X
sacct --name=done,failed -P -n
sacct -b
sacct -l -j {done} -P
sacct -q normal -X -n
sacct -r debug -X -n
sacct --json -j {done}
sacct -o jobid,submitline%60,workdir%60 -j {done} -P
sacct -e
sacct --helpformat
sacct -j nonsense
sacct -j 7777777
sacct -o nosuchfield
sacct --no-such
sacct -S nonsense
sacct -V
sacct --usage
sinfo
sinfo -h
sinfo -l
sinfo -N
sinfo -N -l
sinfo -s
sinfo -R
sinfo -p short
sinfo -o '%P %a %l %D %t %N %C %m'
sinfo -O partition,nodes,cpus,statecompact
sinfo -t idle,mix -h
sinfo -n {host} -h
sinfo --json
sinfo -p nosuch
sinfo --no-such
sinfo -V
sinfo --usage
scontrol show job {held}
scontrol show job {done}
scontrol -o show job {running}
scontrol -d show job {held}
scontrol show job={held}
scontrol show jobid {failed}
scontrol show jobs
scontrol show job {array}
scontrol show job {array}_1
scontrol show JOB {array}_2
scontrol show step
scontrol show step {running}
scontrol show step {running}.batch
scontrol show job 7777777
scontrol show job nonsense
scontrol show node
scontrol show node {host}
scontrol show nodes nosuchnode
scontrol show partition
scontrol show partition short
scontrol show partition=debug
scontrol show partition nosuch
scontrol -o show partition
scontrol show config
scontrol show hostnames n[1-3],m5
scontrol show hostlist n1,n2,n3
scontrol show hostname n[01-02]
SLURM_JOB_NODELIST=a[1-2] scontrol show hostnames
scontrol show nosuch
scontrol show
sprio
sprio -l
sprio -h -j {held}
sprio -w
sprio -V
sshare
sshare -n
sshare -l
sshare -P
sshare -u {user} -h
sshare -U
sshare -A physics
sshare -o account,user,rawshares
sstat -j {running} -o jobid,ntasks,maxrssnode
sstat -a -j {running} -n -P -o jobid,ntasks
sstat -j {running}.batch -o jobid -P
sstat -e
sstat -j 7777777
sstat
sstat -V
sacctmgr show cluster
sacctmgr -n show cluster format=cluster
sacctmgr list qos
sacctmgr show qos format=name,priority -P
sacctmgr -p show tres
sacctmgr show tres type=cpu
sacctmgr show configuration
sacctmgr -n -P list qos where name=high format=name
sacctmgr show nosuch
sacctmgr -V
"""

# What is refused as a whole, or has no place here.
REFUSED = """
srun true
salloc true
sdiag
sreport cluster utilization
strigger --get
sattach 1.0
sbcast a b
sacctmgr show user
sacctmgr show assoc
scontrol show assoc_mgr
scontrol ping
scontrol write batch_script {held} -
squeue -M test
sacct -a -B
"""
VARIABLE = re.compile(r"([A-Z_0-9]+)=('[^']*'|\S*) (.*)")


def read(kind: str, text: str, **words: str) -> list[Case]:
    return [_case(f"{kind}{number:03}", line, words) for number, line in enumerate(text.strip().splitlines(), 1)]


def _case(name: str, text: str, words: dict[str, str]) -> Case:
    label = text
    for word, value in words.items():
        text = text.replace(f"{{{word}}}", value)
    line, *before = text.split(" | ")
    env = {}
    while match := VARIABLE.fullmatch(line):
        env[match[1]], line = match[2].strip("'"), match[3]
    line, given, source = line.partition(" <")
    return Case(label=label, name=name, line=line, before=tuple(before), files=FILES, env=env, input=FILES[source or "job.sh"] if given else "")
