"""`brainiac` and `python -m brainiac`."""

import gc
import sys

from brainiac import __version__


def main() -> None:
    """Run the command line; Ctrl-C ends it without a traceback, also while it is imported."""
    gc.set_threshold(50_000)  # what a command imports stays: going through it again and again is a tenth of `ask`
    try:
        if sys.argv[1:] == ["--version"]:
            sys.stdout.write(f"brainiac {__version__}\n")
            return
        if sys.argv[1:2] in (["search"], ["status"], ["ask"]):
            from brainiac.cli import quick  # by the daemon, if there is one

            if (code := quick.run(sys.argv[1:])) is not None:
                sys.exit(code)
        from brainiac.cli.app import main as run  # what takes a moment to import can be interrupted

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        gc.freeze()  # what a model's client imported takes seconds to be collected, while Ctrl-C seems to do nothing


if __name__ == "__main__":
    main()
