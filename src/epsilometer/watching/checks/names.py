"""Every check by name, with what it asks in one line; apart from the functions, which need torch."""

# What no version of Opacus gets right so far: shown, but a requirement that every training fails would say nothing.
UNMENDED = ("nonfinite-record", "size-dependence")

NAMES = {
    "sampler": "are batches drawn by Poisson sampling, as accounted?",
    "sample-rate": "are records in batches no more often than accounted?",
    "empty-batches": "does a batch without records take its step?",
    "steps": "is every step accounted?",
    "multiplier": "is the noise multiplier accounted that was asked for?",
    "target-epsilon": "is no more ε spent than was asked for?",
    "accountant": "does the accountant give an upper bound?",
    "noise-scale": "has every parameter noise σ·C in every step?",
    "noise-kept": "is the noisy gradient what the step is taken with?",
    "independent-noise": "is noise fresh in every layer and step?",
    "fresh-noise": "is noise another one in a second run?",
    "huge-record": "does a huge record add C at most?",
    "nonfinite-record": "does the sum stay finite with a record of NaN or infinity?",
    "ghost-clip-norm": "do module and optimizer agree on C?",
    "record-norms": "are norms of single records right for each kind of layer?",
    "size-dependence": "are settings the same with one record more or less?",
    "mixing": "does a record's output depend on this record only?",
    "buffers": "do buffers stay as they were?",
    "weights-moved": "did the private steps move the weights?",
    "only-private-steps": "did nothing else move them?",
}
JAX = {  # the only ones of JAX trainings besides fresh-noise and size-dependence
    "independent-steps": "is noise fresh in every step?",
    "independent-leaves": "is noise fresh in every leaf?",
}

# A training of the stated mechanism passes these: one that fails them is another than is accounted.
REFUTING = ("sampler", "steps", "multiplier", "target-epsilon", "noise-scale", "huge-record", "independent-noise", *JAX)

FAILED, NOT_APPLICABLE = "failed", "not applicable"
IGNORED = "ignored"  # what a check that failed is called where its user accepts that
NOISE_SCALE = "noise-scale"  # without its answer, canaries on a parameter of their own say nothing of the others
TARGET = "target-epsilon"  # more is spent than was asked for: what is spent is promised all the same
