#!/bin/sh
# EpilogSlurmctld: drops a request for `cluster-hook drain` when a job asked for it, and leaves a mark that it ran.
#
# slurmctld runs this as SlurmUser at the end of every job and holds the job in COMPLETING until it returns, so
# it calls no Slurm command, opens no connection, waits some seconds at most and always ends with 0. Jobs ask with
# sbatch --comment=profile_dir=DIR. The spool must be on a local disk, and exist: see docs/hooks-reference.md.
PATH=/usr/bin:/bin
SPOOL=${CLUSTER_HOOK_SPOOL:-/var/spool/cluster-hook}
exec </dev/null >/dev/null 2>&1 # what is left behind holds nothing of slurmctld's

drop() {
  # `cluster-hook check` looks at this mark: slurm.conf may name an epilog that slurmctld does not run.
  { true >"$SPOOL/pending/.epilog-ran"; } # not `:`, a failure of which would end the shell
  case $SLURM_JOB_COMMENT in
  *profile_by=post-job*) return ;; # cluster-hook slurm-submit gave it a post-job
  *profile_dir=*) ;;
  *) return ;;
  esac
  case $SLURM_JOB_NAME in cluster-hook* | cluster-collect*) return ;; esac # our own jobs: no recursion
  case $SLURM_JOB_ID in '' | *[!0-9]*) return ;; esac
  # A heterogeneous job ends once for each of its parts: the first one stands for all.
  [ "${SLURM_HET_JOB_OFFSET:-0}" = 0 ] || return

  # Each run of a job that is requeued ends: one request, written anew.
  name=$SLURM_JOB_ID
  umask 077
  # Values end with NUL: a line break in a job's name or comment must not forge another value.
  { printf '%s\0' \
    "cluster=$SLURM_CLUSTER_NAME" "job=$SLURM_JOB_ID" "name=$SLURM_JOB_NAME" "user=$SLURM_JOB_USER" \
    "uid=$SLURM_JOB_UID" "nodes=${SLURM_HET_JOB_NODELIST:-$SLURM_JOB_NODELIST}" "work_dir=$SLURM_JOB_WORK_DIR" \
    "comment=$SLURM_JOB_COMMENT" "exit=$SLURM_JOB_EXIT_CODE2" "array_job=$SLURM_ARRAY_JOB_ID" \
    "array_task=$SLURM_ARRAY_TASK_ID" "began=$SLURM_JOB_START_TIME" "ended=$SLURM_JOB_END_TIME" end= \
    >"$SPOOL/pending/.$name.$$" && mv -f "$SPOOL/pending/.$name.$$" "$SPOOL/pending/$name.job"; } && return
  # A full or read-only disk: nothing half-written stays behind, and the system's log says what is lost.
  rm -f "$SPOOL/pending/.$name.$$"
  logger -t cluster-hook -p daemon.err "the request of job $SLURM_JOB_ID cannot be written to $SPOOL"
}

# Apart, so that a disk that does not answer holds nobody up.
drop &
for pause in 0.01 0.02 0.05 0.1 0.2 0.5 1 2; do
  kill -0 $! || break
  sleep $pause
done
exit 0
