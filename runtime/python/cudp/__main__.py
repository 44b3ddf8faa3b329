"""Runs the program cudp that the package brings: python -m cudp COMMAND ..."""

import os
import sys


def program():
    """Path of the program."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "cudp")


def main():
    os.execv(program(), ["cudp", *sys.argv[1:]])


if __name__ == "__main__":
    main()
