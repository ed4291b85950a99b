"""One command in several runs at once: the reference, one with other noise, and some with one record changed.

All runs share their random numbers, and after each private step's own noise every run gets the noisy gradient of the
reference. So whatever else differs depends on the data, and on no noise: a counterexample without statistics
(docs/design.md). Runs go in lockstep through shared memory; what lies here runs within the watched script (numpy, torch
and the standard library only), but for `runs`, `copies`, `files` and `merge`, which are the parent's.
"""
