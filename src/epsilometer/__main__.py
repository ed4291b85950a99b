"""`python -m epsilometer`."""

from epsilometer.cli import main

if __name__ == "__main__":
    main()
