"""Tests find each other and the package, whether or not it is installed."""

import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE)]
