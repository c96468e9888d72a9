#!/usr/bin/env bash
# Hostile texts for the compiled reader, under the address and undefined-behaviour sanitizers.
#   fuzz.sh SECONDS FILE…      the files are what the texts are made of
# Takes clang's libFuzzer where it is, else gcc or clang and a loop of our own. Exit code 77: neither can do it.
set -euo pipefail
seconds=$1
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
compiled=$root/cluster_analysis/sources/compiled
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
shopt -s extglob
sources=("$root/tools/fuzz/fuzz.c" "$compiled"/!(module*).c)
flags=(-std=gnu11 -g -O1 -fno-omit-frame-pointer -Wall -Wextra -I "$compiled")

if command -v clang >/dev/null && clang "${flags[@]}" -DWITH_LIBFUZZER -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=all "${sources[@]}" -lm -o "$work/fuzz" 2>"$work/log"; then
  mkdir "$work/texts"
  cp "$@" "$work/texts"
  "$work/fuzz" -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=1024 -print_final_stats=1 "$work/texts" 2>&1 | tail -12
  exit "${PIPESTATUS[0]}"
fi
for compiler in gcc clang; do
  if command -v "$compiler" >/dev/null && "$compiler" "${flags[@]}" -fsanitize=address,undefined \
      -fno-sanitize-recover=all "${sources[@]}" -lm -o "$work/fuzz" 2>"$work/log"; then
    "$work/fuzz" "$seconds" "$@"
    exit
  fi
done
cat "$work/log" >&2 2>/dev/null || true
echo "fuzz: no compiler with sanitizers here" >&2
exit 77
