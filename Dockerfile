# Built from the wheel:  python -m build --wheel && docker build -t cluster-profiler:1.0.0 .
# For other processors than this machine's, or built elsewhere than on Linux: CLUSTER_PROFILER_PURE=1 python -m build --wheel
FROM python:3.12-slim

COPY dist/cluster_profiler-*.whl /wheels/
# One wheel only: with two versions in dist/ the build stops here instead of choosing one.
RUN set -eu; \
    set -- /wheels/*.whl; [ "$#" -eq 1 ]; \
    pip install --no-cache-dir --root-user-action=ignore "$1"; \
    rm -r /wheels

# Any user will do; the manifests run it as this one. Nothing is written outside of /tmp and the volumes.
USER 10001:10001
WORKDIR /tmp
ENV HOME=/tmp PYTHONDONTWRITEBYTECODE=1
ENTRYPOINT ["cluster-hook"]
CMD ["--help"]
