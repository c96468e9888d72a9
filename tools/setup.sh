#!/usr/bin/env bash
# Makes .venv with everything that the demo and the tests import. Uses uv where it is, else venv and pip.
#   setup.sh [EXTRAS [PACKAGE…]]      each PACKAGE comes without what it depends on
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
extras=${1:-dev}
alone=("${@:2}")

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  echo "setup: Python 3.10 or newer is needed; '$python' is not (set PYTHON=/path/to/python3)" >&2
  exit 1
fi
if [ ! -x .venv/bin/python ]; then
  if command -v uv >/dev/null; then
    uv venv --quiet --python "$python" .venv
  else
    # Debian ships venv apart from Python; without it `-m venv` fails half-way.
    "$python" -c 'import ensurepip' 2>/dev/null || bash tools/system_packages.sh venv
    "$python" -m venv .venv
  fi
fi
# Compiled here and now (pip does it anyhow): where Python may not write later, every start would compile.
if command -v uv >/dev/null; then
  install=(uv pip install --quiet --compile-bytecode --python .venv/bin/python)
else
  install=(.venv/bin/python -m pip install --quiet --disable-pip-version-check)
fi
"${install[@]}" --editable ".[$extras]"
if [ "${#alone[@]}" -gt 0 ]; then
  "${install[@]}" --no-deps "${alone[@]}"
fi
.venv/bin/python -m compileall -q cluster_*/ demo tools
