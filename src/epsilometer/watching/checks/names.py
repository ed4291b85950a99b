"""Every check by name, with what it asks in one line; apart from the functions, which need torch."""

# What no version of Opacus gets right so far: shown, but a requirement that every training fails would say nothing.
UNMENDED = ("nonfinite-record", "size-dependence")

NAMES = {
    "sampler": "are batches drawn by Poisson sampling, as accounted?",
    "sample-rate": "are records in batches no more often than accounted?",
    "batches": "is every batch drawn anew, whoever was in those before?",
    "copies": "is every record in the data set once?",
    "empty-batches": "does a batch without records take its step?",
    "steps": "is every step accounted?",
    "multiplier": "is the noise multiplier accounted that was asked for?",
    "target-epsilon": "is no more ε spent than was asked for?",
    "composition": "does one accountant count all trainings on these records?",
    "accountant": "does the accountant give an upper bound?",
    "noise-scale": "has every parameter noise σ·C in every step?",
    "noise-kept": "is the noisy gradient what the step is taken with?",
    "independent-noise": "is noise fresh in every layer and step?",
    "fresh-noise": "is noise another one in a second run?",
    "huge-record": "does a huge record add C at most?",
    "record-shares": "did no record add more than C to a sum of the training?",
    "record-rows": "is every record one row of gradients to clip?",
    "nonfinite-record": "does the sum stay finite with a record of NaN or infinity?",
    "ghost-clip-norm": "do module and optimizer agree on C?",
    "record-norms": "are norms of single records right for each kind of layer?",
    "size-dependence": "are settings the same with one record more or less?",
    "mixing": "does a record's output depend on this record only?",
    "buffers": "do buffers stay as they were?",
    "divisor": "are noisy sums divided by the same number, whatever the batch?",
    "between-steps": "do weights rest between two private steps?",
    "inner-optimizer": "does the optimizer within see noisy gradients only?",
    "weights-moved": "did the private steps move the weights?",
    "only-private-steps": "did nothing else move them?",
}
JAX = {  # the only ones of JAX trainings besides fresh-noise and size-dependence
    "independent-steps": "is noise fresh in every step?",
    "leaf-noise": "has every leaf noise?",
    "independent-leaves": "is noise fresh in every leaf?",
}
SEVERAL = {  # of steps that several processes take together
    "ranks": "is no record on two ranks in one step?",
    "reduction": "are gradients the sum over all ranks, divided once?",
}
REPLAYED = {  # of runs with neighbours
    "replayed-clipping": "does a changed record move the sums that it is in by its share only?",
    "replayed-sums": "are sums the same where a changed record is not in them?",
    "replayed-batches": "is no step taken on records that were chosen by what they are?",
    "replayed-state": "is all else the same with a changed record and the same noise?",
    "replayed-files": "do checkpoints hold the same with a changed record?",
    "replayed-steps": "are as many steps taken with a changed record?",
}

BY_HAND = {  # of a loop by hand, in several runs
    "effective-noise": "is noise as large as is stated, for what one record moves?",
    "effective-clipping": "does one record move a step by no more than noise is made for?",
    "effective-sampling": "are batches no larger than accounted, and Poisson samples?",
}

NOISE_LAW = "noise-law"  # no check of facts: a test of the noise of every step, which may be ignored like one
NOISE_SCALE = "noise-scale"  # without its answer, canaries on a parameter of their own say nothing of the others
BATCHES = "batches"  # of which one fault is known from the first step on
COMPOSITION = "composition"  # of trainings on the same records: each may be right, and one must promise the sum
TARGET = "target-epsilon"  # more is spent than was asked for: what is spent is promised all the same
REPLAYED_STATE = "replayed-state"  # nothing else depends on the data, as far as replayed neighbours tell
# Hints into which it has looked; not steps of other optimizers, which may come after the last private one.
SETTLED_BY_REPLAY = ("buffers", "between-steps", "inner-optimizer")
CLIPPING_CHECKS = ("huge-record", "record-shares", "ghost-clip-norm")  # of clipping that is not what noise is made for
QUESTIONS = {**NAMES, **JAX, **SEVERAL, **REPLAYED, **BY_HAND}
