"""A stand-in for msMonitor's daemon, made after its source: one request a connection, one at a time.

Argument, for TLS: the directory of its certificates. It meets the job at ~/dynolog.sock, and writes its
port to ~/port. A file ~/drops makes it hold the texts that it has instead of giving them out, as between two
polls of a job; it makes ~/knows when it knows a job and how far that is.
"""

from __future__ import annotations

import json
import socket
import ssl
import struct
import sys
import threading
from pathlib import Path

NAMES = {-1: "Uninitialized", 0: "Idle", 1: "Running", 2: "Ready"}
FIELDS = ("profiler_status", "current_step", "start_step", "stop_step")
status = dict.fromkeys(FIELDS, -1)
processes: dict[tuple[int, ...], str] = {}


def hear() -> None:
    """Take what processes of the job say, and give a text to the one that asks."""
    ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    path = Path.home() / "dynolog.sock"
    path.unlink(missing_ok=True)
    ear.bind(str(path))
    while True:
        data, sender = ear.recvfrom(65536)
        message = json.loads(data)
        if message["is"] == "req":
            key = tuple(message["pids"])
            held = (Path.home() / "drops").exists()
            text = "" if held else processes.get(key, "")
            processes[key] = processes.get(key, "") if held else ""
            ear.sendto(text.encode(), sender)
        elif message["is"] == "status":
            status.update({name: int(message[name]) for name in FIELDS})
            if processes:
                (Path.home() / "knows").touch()


def answer(request: dict[str, object]) -> dict[str, object]:
    """Return what the daemon says."""
    if request["fn"] == "getStatus":
        told: dict[str, object] = {
            "current_step": status["current_step"],
            "npumonitor": "Idle",
            "nputrace": NAMES[status["profiler_status"]],
        }
        if status["profiler_status"] in (1, 2):
            told.update(start_step=status["start_step"], stop_step=status["stop_step"])
        return told
    if request["fn"] != "setKinetOnDemandRequest":
        raise ValueError(request["fn"])
    if "config" not in request or "pids" not in request:
        return {"status": "failed"}
    pids = request["pids"]
    assert isinstance(pids, list)
    matched = [key for key in processes if pids in ([], [0]) or set(pids) & set(key)]
    if not matched or status["profiler_status"] == -1:
        return {"commandStatus": "ineffective"}
    busy = [key for key in matched if processes[key]]
    triggered = [key for key in matched if not processes[key]]
    for key in triggered:
        processes[key] = str(request["config"])
    return {
        "commandStatus": "effective",
        "processesMatched": [key[0] for key in matched],
        "activityProfilersTriggered": [key[0] for key in triggered],
        "activityProfilersBusy": len(busy),
        "eventProfilersTriggered": [],
        "eventProfilersBusy": 0,
    }


def serve(certificates: str) -> None:
    """Answer one connection after the other; what is no request gets no byte."""
    context = None
    if certificates:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{certificates}/server.crt", f"{certificates}/server.key")
        context.load_verify_locations(f"{certificates}/ca.crt")
        context.verify_mode = ssl.CERT_REQUIRED
    listener = socket.create_server(("127.0.0.1", 0))
    chosen = Path.home() / "port.new"
    chosen.write_text(str(listener.getsockname()[1]))
    chosen.rename(chosen.with_name("port"))
    while True:
        connection, _ = listener.accept()
        connection.settimeout(3)
        try:
            if context is not None:
                connection = context.wrap_socket(connection, server_side=True)
            (length,) = struct.unpack("=i", exactly(connection, 4))
            if not 0 < length < 8192:
                raise ValueError(length)
            content = json.dumps(answer(json.loads(exactly(connection, length)))).encode()
            connection.sendall(struct.pack("=i", len(content)) + content)
        except (OSError, ValueError, KeyError, struct.error) as error:
            print("refused", repr(error), flush=True)
        connection.close()


def exactly(connection: socket.socket, n_bytes: int) -> bytes:
    data = b""
    while len(data) < n_bytes and (piece := connection.recv(n_bytes - len(data))):
        data += piece
    return data


if __name__ == "__main__":
    threading.Thread(target=hear, daemon=True).start()
    serve(sys.argv[1] if len(sys.argv) > 1 else "")
