"""Sizes of the small jobs that tests of the command simulate."""

SIZES = ("--tp", "2", "--pp", "2", "--dp", "4", "--steps", "5")
