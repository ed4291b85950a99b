"""JAX trainings, watched from inside: transformations that make gradients private are wrapped."""
