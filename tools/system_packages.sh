#!/usr/bin/env bash
# Installs the system packages of the named sets that are missing, where this user may; otherwise says what is
# missing and goes on: what needs them skips with a reason.   system_packages.sh [venv] [ssh] [slurm] [browser] [bench] [prometheus] [postgresql] [fuzz] [fonts]
set -euo pipefail

missing=()
need() { # need COMMAND PACKAGE...
  local command=$1
  shift
  PATH=$PATH:/usr/sbin:/sbin command -v "$command" >/dev/null || missing+=("$@")
}

need_library() { # need_library FILE PACKAGE
  PATH=$PATH:/usr/sbin:/sbin ldconfig -p | grep -q "$1" || missing+=("$2")
}

for set_name in "$@"; do
  case $set_name in
    venv) missing+=(python3-venv) ;;
    ssh) need sshd openssh-server; need ssh openssh-client; need zstd zstd; need sudo sudo ;;
    slurm) need slurmctld slurmctld; need slurmd slurmd; need sbatch slurm-client; need munged munge; need logrotate logrotate ;;
    prometheus) need promtool prometheus; need prometheus-node-exporter prometheus-node-exporter ;;
    postgresql) compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql) ;;
    bench) need rsync rsync ;;
    fuzz) need gcc gcc libc6-dev ;;
    browser) need chromium-headless-shell chromium-headless-shell; need pdftotext poppler-utils; need_library libatomic.so.1 libatomic1 ;; # Playwright's Node.js wants it
    fonts) fc-list :lang=zh 2>/dev/null | grep -q . || missing+=(fontconfig fonts-noto-cjk) ;; # pictures of the page in Chinese
    *) echo "system_packages: unknown set '$set_name'" >&2; exit 2 ;;
  esac
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing system packages: ${missing[*]}" >&2
  # Packages must not start their services: the tests start their own, on loopback, and end them.
  policy=/usr/sbin/policy-rc.d
  [ -e $policy ] || { printf '#!/bin/sh\nexit 101\n' >$policy; chmod +x $policy; trap 'rm -f $policy' EXIT; }
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >/dev/null ||
    { echo "system_packages: could not install: ${missing[*]}" >&2; exit 1; }
else
  echo "missing system packages: ${missing[*]}" >&2
  echo "  as root: apt-get install ${missing[*]}" >&2
fi
