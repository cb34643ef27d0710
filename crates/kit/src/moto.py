"""The server of moto, made to do one request at a time.

Moto looks at the condition of a write first and writes then, and serves each connection in a thread of its own. What it emulates
does both at once.
"""

import sys
import threading

from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

served = DomainDispatcherApplication(create_backend_app)
turn = threading.Lock()


def one_at_a_time(environ, start_response):
    with turn:
        return list(served(environ, start_response))


run_simple("127.0.0.1", int(sys.argv[1]), one_at_a_time, threaded=True, request_handler=MotoRequestHandler)
