"""Scripts to be watched are no tests."""

collect_ignore = ["heldout", "scripts"]
