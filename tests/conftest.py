"""The same examples in every run: what a random search finds is a defect to mend, not a build that fails by chance.

`pytest --hypothesis-profile search` looks further, with examples of its own each time.
"""

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None)
settings.load_profile("fixed")
