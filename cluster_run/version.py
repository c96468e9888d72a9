"""The version of the whole project."""

VERSION = "1.0.0"
