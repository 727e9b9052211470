"""Where people and programs keep credentials: this list is the test's own, so that a name lost from the shipped one is noticed.

A slash at the end = a directory, in which the secret is a file.
"""

from __future__ import annotations

from pathlib import Path

SECRET = "hunter2\n"

IN_HOME = """
.ssh/ .gnupg/ .pki/ .aws/ .azure/ .config/gcloud/ .config/gh/ .config/hub .config/glab-cli/ .config/op/ .config/helm/ .config/doctl/
.config/rclone/ .config/sops/ .config/age/ .kube/ .docker/ .config/containers/auth.json .netrc .authinfo .git-credentials
.config/git/credentials .pypirc .npmrc .yarnrc.yml .cargo/credentials .cargo/credentials.toml .gem/credentials .m2/settings.xml
.gradle/gradle.properties .terraform.d/ .terraformrc .vault-token .pgpass .my.cnf .mylogin.cnf .s3cfg .boto .mc/ .databricks.cfg
.snowflake/ .kaggle/ .config/huggingface/ .cache/huggingface/token .huggingface/ .condarc-tokens .config/anaconda/ .anaconda/ .wandb/
.config/wandb/ .netlify/ .config/netlify/ .heroku/ .fly/ .config/configstore/ .local/share/keyrings/ .password-store/ .config/Bitwarden/
.config/Bitwarden\x20CLI/ .mozilla/ .thunderbird/ .config/google-chrome/ .config/chromium/ .config/BraveSoftware/ .bash_history
.zsh_history .python_history .psql_history .mysql_history .sqlite_history .lesshst .node_repl_history .local/share/fish/fish_history
.Rhistory .julia/logs/ .Xauthority .ICEauthority .k5login .krb5/ .config/systemd/ .config/autostart/ .local/state/agent-sandbox/
"""

# The agent may at most read its own settings.
IN_SYSTEM = """
/etc/shadow /etc/gshadow /etc/sudoers /etc/sudoers.d/ /etc/ssh/ssh_host_ed25519_key /etc/munge/ /etc/krb5.keytab /etc/slurm/
/etc/slurm-llnl/ /var/spool/slurm/ /var/spool/slurmd/ /var/lib/munge/ /root/
"""


def listed(text: str) -> list[str]:
    return [name.replace("\\x20", " ") for name in text.replace("\x20CLI", "\\x20CLI").split()]


def secret_files(text: str, top: Path) -> list[Path]:
    """The file with the secret, for each entry."""
    return [top / (f"{name}secret" if name.endswith("/") else name).lstrip("/") for name in listed(text)]


def hidden_entries(text: str, top: Path) -> list[Path]:
    return [top / name.strip("/") for name in listed(text)]


READ_THEM = """
import os, sys
print("ready", flush=True)
for path in sys.stdin.read().split("\\n"):
    try:
        with open(path) as file:
            print(path, file.read().strip())
    except OSError:
        pass
print("done", len(os.listdir(".")))
"""
