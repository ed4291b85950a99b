"""A command, run with the hook in every Python process that it starts."""
