"""``python -m mnmt_repro.cli``."""

import sys

from mnmt_repro.cli import main

sys.exit(main())
