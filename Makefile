# `make test` sets up what is missing and runs everything; `make help` lists the rest.

SHELL := /bin/bash
PYTEST_ARGS ?=
BIN := .venv/bin
NPM := $(shell command -v npm >/dev/null || echo npm) # some packages of nodejs bring it, and are in conflict with Debian's
PACKAGES := acl bind9-dnsutils bubblewrap busybox curl dbus-bin dbus-daemon dnsmasq-base firejail gcc gdb git gnupg iproute2 libc6-dev libseccomp2 \
    lmod make mariadb-client-core mariadb-server-core msmtp munge netcat-openbsd nodejs $(NPM) openjdk-17-jre-headless openssh-client openssl passwd procps \
    python3-cryptography python3-httpx python3-pip python3-requests python3-venv redis-server rsync s-nail shellcheck slurm-client slurmctld slurmd \
    slurmdbd socat strace sudo tinyproxy-bin tmux util-linux vim-tiny wget

.PHONY: test lint packages install install-system bench docs filters clean help

test: lint  ## everything: packages, .venv, ruff, mypy, pytest (PYTEST_ARGS='-k name' for some)
	@echo "== pytest"
	@$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

lint: .venv/ready  ## ruff and mypy
	@echo "== ruff"
	@$(BIN)/ruff check .
	@echo "== mypy"
	@$(BIN)/mypy

packages:  ## the system packages that the tests use (root or passwordless sudo; otherwise says what is missing)
	@missing=$$(LC_ALL=C comm -23 <(printf '%s\n' $(PACKAGES)) \
	    <(dpkg-query -W -f '$${db:Status-Status} $${Package}\n' $(PACKAGES) 2>/dev/null | sed -n 's/^installed //p' | LC_ALL=C sort)); \
	[ -n "$$missing" ] || exit 0; \
	as_root='sudo -n'; [ "$$(id -u)" != 0 ] || as_root=; \
	if ! command -v apt-get >/dev/null || ! $$as_root true 2>/dev/null; then \
	    echo "== missing packages, whose tests will be skipped:" $$missing; exit 0; \
	fi; \
	echo "== installing" $$missing; \
	policy=/usr/sbin/policy-rc.d; \
	if [ ! -e $$policy ]; then : 'the tests start their own daemons: the packages shall start none'; \
	    trap "$$as_root rm -f $$policy" EXIT; \
	    printf '#!/bin/sh\nexit 101\n' | $$as_root install -m 755 /dev/stdin $$policy; \
	fi; \
	apt="$$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq"; \
	$$apt update && $$apt install --yes --no-install-recommends $$missing >/dev/null || echo "== apt-get failed; going on"

.venv/ready: pyproject.toml | packages
	@echo "== .venv"
	@[ -x $(BIN)/python ] || "$$(bootstrap/python)" -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

install:  ## install a copy of this clone as it is now, and link it as ~/.local/bin/agent-sandbox
	@python=$$(bootstrap/python) && "$$python" -I bootstrap/install.py --link

install-system:  ## install a copy for all users, root-owned, in /usr/local: agent-sandbox and botadm (as root)
	@python=$$(bootstrap/python) && "$$python" -I bootstrap/install.py --system

bench: .venv/ready  ## what a launch costs
	$(BIN)/python -m bench launch

docs: .venv/ready  ## write the generated pages (docs/backends.md from a run: as root)
	$(BIN)/python -m agent_sandbox.config.reference
	$(BIN)/python -m tests.unit.launcher.network.page
	$(BIN)/python -m tests.jail.page

filters: .venv/ready  ## compile the seccomp filters
	$(BIN)/python -m agent_sandbox.launcher.seccomp.compile

clean:  ## remove what make and the tools made here
	rm -rf .venv .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## /\1 \t/p' $(MAKEFILE_LIST) | expand -t 16
