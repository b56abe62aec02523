"""A read API over the current values in Redis: GET /features/42 answers the vector of key 42.

    python examples/feature_server.py --url redis://127.0.0.1:6379/0 --prefix user: --port 8080

The standard library's HTTP server with kept connections, and one round trip to Redis a request;
``make bench-serving`` measures it. No pyspark, numba or pyarrow is loaded.
"""

import argparse
import json
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import windrow as wr


class Handler(BaseHTTPRequestHandler):
    """Answers with the values of a key and their event time, or 404."""

    protocol_version = "HTTP/1.1"  # connections are kept
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave together

    def __init__(self, features: wr.serving.Features, *arguments: Any) -> None:
        self.features = features
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """``/features/42``, or ``/features/shop/42`` for a key of two columns."""
        _, what, *key = self.path.partition("?")[0].split("/")
        if what != "features" or not any(key):
            self.answer(404, {"error": "ask for /features/<key>"})
            return
        found = self.features.get(*map(unquote, key))
        if found is None:
            self.answer(404, {"error": f"nothing is known of {'/'.join(key)}"})
        else:
            self.answer(200, {"time": found.time.isoformat(), "values": found.values})

    def answer(self, status: int, content: dict[str, Any]) -> None:
        """One JSON document."""
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is printed for each request."""


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="redis://127.0.0.1:6379/0")
    parser.add_argument("--prefix", default="")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    features = wr.serving.Features(given.url, given.prefix)
    with ThreadingHTTPServer((given.host, given.port), partial(Handler, features)) as server:
        print(f"http://{given.host}:{server.server_address[1]}/features/", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
