"""Opacus trainings, watched from inside. These modules run in the script's own process, beside its training."""
