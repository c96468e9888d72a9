"""A stand-in for `vllm serve` with a profiler configuration: two endpoints, and a capture when it is stopped.

Arguments: as of vLLM, of which --port and --profiler-config count.
"""

from __future__ import annotations

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

STARTED: list[float] = []


def option(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else ""


class Server(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        settings = json.loads(option("--profiler-config") or "{}")
        if not settings:
            self.send_response(404)
        elif self.path == "/start_profile":
            STARTED.append(time.time())
            self.send_response(200)
        else:
            if STARTED:
                STARTED.clear()
                stamp = time.strftime("%Y%m%d%H%M%S") + "000"
                name = f"node_{os.getpid()}_{stamp}_ascend_pt"
                output = Path(settings["torch_profiler_dir"]) / name / "ASCEND_PROFILER_OUTPUT"
                output.mkdir(parents=True)
                (output.parent / "profiler_info_0.json").write_text("{}")
                (output / "step_trace_time.csv").write_text("Device_id,Step,Computing\n0,1,1.0\n0,2,1.0\n")
                (output / "analyse.done").touch()
            self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    with HTTPServer(("127.0.0.1", int(option("--port"))), Server) as server:
        Path(sys.argv[0]).with_name("serves").touch()
        server.serve_forever()
