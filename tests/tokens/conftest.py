"""What of these tests needs a package that not every Python can have; .ci/run has a second environment for it."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("ctok") else ["test_exact_counts.py"]
