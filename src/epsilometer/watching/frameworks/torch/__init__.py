"""Loops that somebody wrote by hand, known by nothing but the steps of a torch optimizer."""
