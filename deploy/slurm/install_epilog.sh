#!/bin/sh
# Installs the epilog and its spool on the host of slurmctld. Run as root; undone as docs/hooks-reference.md says.
#   install_epilog.sh [SLURM_USER]
set -eu
slurm_user=${1:-slurm}
here=$(cd "$(dirname "$0")" && pwd)
id "$slurm_user" >/dev/null

# The drain (root) and slurmctld (SlurmUser) own the spool; nobody else may write, or read, a request.
install -d -m 0755 -o root -g root /var/spool/cluster-hook
install -d -m 0700 -o "$slurm_user" -g root /var/spool/cluster-hook/pending
install -D -m 0755 "$here/epilog_slurmctld.sh" /etc/slurm/cluster-hook-epilog.sh
echo "Now add this line to slurm.conf:"
echo "EpilogSlurmctld=/etc/slurm/cluster-hook-epilog.sh"
echo "then: systemctl restart slurmctld (jobs go on; scontrol reconfigure is not enough on each Slurm)"
echo "and see whether it runs: cluster-hook check --probe"
