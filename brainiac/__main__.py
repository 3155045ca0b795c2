"""`python -m brainiac`."""

from brainiac.cli.app import main

if __name__ == "__main__":
    main()
