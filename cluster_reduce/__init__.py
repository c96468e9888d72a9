"""The reader that `cluster-collect --what columns` runs on hosts: the standard library of Python 3.7, nothing else."""
