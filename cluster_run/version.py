"""The version of the whole project."""

VERSION = "0.1.0"
