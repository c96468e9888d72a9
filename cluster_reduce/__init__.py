"""The reader that `cluster-collect --what columns` runs on hosts: Python 3.7 and its standard library."""
