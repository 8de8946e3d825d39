"""python -m holdfast: becomes the command."""
import os
import sys

from ._native import command


def main() -> None:
    file = command()
    try:
        os.execv(file, [file, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"holdfast: {file} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main()
