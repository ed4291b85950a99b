"""The same examples in every run: what a random search finds is a defect to mend, not a build that fails by chance.

`pytest --hypothesis-profile search` looks further, with examples of its own each time.
"""

import os

from hypothesis import settings

# Several processes share the processors: threads that wait for each other's threads take a quarter more time.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None)
settings.load_profile("fixed")
