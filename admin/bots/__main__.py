"""`python -m agent_sandbox.admin.bots` is botadm."""

import sys

from agent_sandbox.admin.cli import main

sys.exit(main())
