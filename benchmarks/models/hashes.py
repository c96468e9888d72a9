"""The number that operator names carry for a communication group: a fact of the format, of no model."""


def group_number(key: str) -> str:
    """Return the `double_hash` of a key of `parallel_group_info` (msprof-analyze.md, section 1.3)."""
    first, second = 0, 0
    for character in key:
        first = (first * 29 + ord(character)) % 2**32
        second = (second * 131 + ord(character)) % 2**32
    return str(first * 2**32 + second)
