"""Runs the program cudp that the package brings: python -m cudp COMMAND ..."""

import os
import sys

from ._tuning import program


def main():
    os.execv(program(), ["cudp", *sys.argv[1:]])


if __name__ == "__main__":
    main()
