"""What each framework's trainings need to be watched, a folder each; `watching.framework` has the table of them."""
