#!/bin/sh
# Starts the drain for sites without systemd, as cluster-hook-drain.service does: with the environment of
# /etc/cluster-hook.env, behind everything else, and each process with half of the memory at most.
# Installed as /etc/slurm/cluster-hook-drain.sh; see docs/hooks-reference.md.
settings=${1:-/etc/cluster-hook.env}
program=${2:-/opt/cluster-profiler/bin/cluster-hook}

# NAME=value or NAME="value", as systemd reads it; no shell reads the values, which may hold any sign.
if [ -r "$settings" ]; then
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in [A-Z]*=*) ;; *) continue ;; esac
    value=${line#*=}
    case $value in \"*\" | \'*\') value=${value#?} value=${value%?} ;; esac
    case ${line%%=*} in *[!A-Z0-9_]*) continue ;; esac
    export "${line%%=*}=$value"
  done <"$settings"
fi
limit=$(awk '/^MemTotal:/ {print int($2 / 2)}' /proc/meminfo)
ulimit -d "$limit"
command -v ionice >/dev/null && idle='ionice -c 3' || idle=
# shellcheck disable=SC2086  options are words
exec nice -n 10 $idle "$program" drain $CLUSTER_HOOK_DRAIN_OPTIONS
