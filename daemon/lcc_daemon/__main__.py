"""`python -m lcc_daemon`: how the hook client starts the daemon."""

import sys

from lcc_daemon.cli import main

sys.exit(main())
