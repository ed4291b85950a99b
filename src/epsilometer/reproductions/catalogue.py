"""All published tables and figures by name."""

from epsilometer.errors import unknown_name
from epsilometer.reproductions.abadi_accounting import ABADI_ACCOUNTING
from epsilometer.reproductions.abadi_cifar10 import ABADI_CIFAR10
from epsilometer.reproductions.abadi_mnist import ABADI_MNIST
from epsilometer.reproductions.abadi_parameters import ABADI_PARAMETERS
from epsilometer.reproductions.annamalai_init import ANNAMALAI
from epsilometer.reproductions.annamalai_shuffle import SHUFFLE
from epsilometer.reproductions.carlini_lira import CARLINI_LIRA
from epsilometer.reproductions.cebere_gcr import GCR
from epsilometer.reproductions.chaudhuri_sample_size import SAMPLE_SIZE
from epsilometer.reproductions.guo_reconstruction import GUO_RECONSTRUCTION
from epsilometer.reproductions.jagielski_appendix_b import APPENDIX_B
from epsilometer.reproductions.jagielski_figure2 import FIGURE2
from epsilometer.reproductions.jagielski_table2 import TABLE2
from epsilometer.reproductions.melis_property import MELIS_PROPERTY
from epsilometer.reproductions.nasr_adaptive import NASR_ADAPTIVE
from epsilometer.reproductions.nasr_defences import NASR_DEFENCES
from epsilometer.reproductions.nasr_ladder import NASR_LADDER
from epsilometer.reproductions.nasr_mnist import NASR_MNIST
from epsilometer.reproductions.reproduction import Reproduction
from epsilometer.reproductions.shokri_classes import SHOKRI_CLASSES
from epsilometer.reproductions.thudi_instances import THUDI_INSTANCES

REPRODUCTIONS: dict[str, Reproduction] = {
    one.name: one
    for one in (
        TABLE2,
        FIGURE2,
        APPENDIX_B,
        NASR_LADDER,
        NASR_MNIST,
        NASR_ADAPTIVE,
        GCR,
        ANNAMALAI,
        SHUFFLE,
        SAMPLE_SIZE,
        ABADI_ACCOUNTING,
        ABADI_MNIST,
        ABADI_PARAMETERS,
        ABADI_CIFAR10,
        SHOKRI_CLASSES,
        NASR_DEFENCES,
        CARLINI_LIRA,
        THUDI_INSTANCES,
        MELIS_PROPERTY,
        GUO_RECONSTRUCTION,
    )
}


def reproduction_named(name: str) -> Reproduction:
    """The reproduction of that name."""
    if name not in REPRODUCTIONS:
        raise unknown_name("NAME", name, REPRODUCTIONS)
    return REPRODUCTIONS[name]
