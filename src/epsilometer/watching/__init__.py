"""A training of the user's own, audited while it runs once.

The training process holds hooks (`watching.frameworks`) that write records; whoever started it reads them and judges
(`watching.monitor`). Hooks import numpy and their framework only: the script's environment need not have more.
"""
