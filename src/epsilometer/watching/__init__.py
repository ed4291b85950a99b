"""A training of the user's own, audited while it runs once.

The training process holds hooks (`watching.opacus`) that write records; whoever started it reads them and judges
(`watching.monitor`). The hooks import numpy and torch only: the script's environment need not have more.
"""
