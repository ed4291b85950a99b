"""What each run of a replay is for."""

from __future__ import annotations

REFERENCE = "reference"  # the script as it is, watched as ever
NOISE = "noise"  # the same data, and other random numbers wherever noise could come from
NEGATED = "negated"  # the same data, and normal numbers with the other sign wherever they may be noise
ROTATING = "rotating"  # in every step another record of its batch is changed
FIXED = "fixed"  # one record of the data set is changed for good
OTHERS = "others"  # every record of the data set is another one: nothing but noisy gradients may tell
READ = "read"  # one record is changed where the script reads its data
PLACEHOLDER = "placeholder"  # the user has changed a record, by a word of the command
LINES = "jsonl"  # what a run writes down

# Models beside a private one, of what is different in the end.
AROUND, COPY = "a model around it", "a model like it"
REPLACED, HUGE, LABEL, LEFT_OUT = "replaced by another", "made huge (× 1000)", "given another label", "left out"
HUGE_LABEL = "made huge and given another label"
KINDS = (REPLACED, HUGE, LABEL, LEFT_OUT)
# How many clip norms a sum may move by: a record that is replaced takes its gradient along and brings another one.
BOUNDS = {REPLACED: 2.0, HUGE: 2.0, LABEL: 2.0, LEFT_OUT: 1.0}
GRADIENT, WITHIN, WEIGHTS = "gradient", "within", "weights"  # where noise may be in: before a step, in it, after it
