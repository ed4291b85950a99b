"""What can be seen of a torch training from within, beside its canaries: collected as `Facts`, and judged elsewhere.
Only numpy and torch are imported here."""
