"""The service netdyno.Echo of docs/rpc.md by way of grpcio, with messages that are encoded by hand.

grpc.py server: prints its port, and serves until it is killed.
grpc.py other: the same without the service.
grpc.py client HOST:PORT: prints a line for each call.
"""

import sys
from concurrent import futures

# The folder of this file would hide the library of its name.
sys.path.pop(0)
import grpc


def number(encoded, at):
    """Returns the number that is encoded at this place, and the place behind it."""
    value = shift = 0
    while True:
        byte = encoded[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def encoded_number(value):
    encoded = b""
    while value > 127:
        encoded, value = encoded + bytes([value & 127 | 128]), value >> 7
    return encoded + bytes([value])


def payload(data):
    return b"\x0a" + encoded_number(len(data)) + data if data else b""


def transfer(arguments, _):
    reply_bytes = number(arguments, 1)[0] if arguments[:1] == b"\x08" else 0
    return payload(bytes(reply_bytes))


def serve(methods):
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    if methods:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("netdyno.Echo", methods),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    server.wait_for_termination()


def call(address):
    with grpc.insecure_channel(address) as channel:
        for name, method, message in [
            ("Echo", "/netdyno.Echo/Echo", payload(b"hello")),
            ("Echo of nothing", "/netdyno.Echo/Echo", b""),
            ("Transfer", "/netdyno.Echo/Transfer", b"\x08\x03\x12\x05hello"),
            ("Transfer of too much", "/netdyno.Echo/Transfer", b"\x08" + encoded_number(1 << 30)),
            ("Echo of another message", "/netdyno.Echo/Echo", b"\x0a\x7fhello"),
            ("another method", "/netdyno.Echo/Other", b""),
            ("another service", "/netdyno.Other/Echo", b""),
        ]:
            try:
                print(f"{name}: OK, {channel.unary_unary(method)(message, timeout=10).hex()}")
            except grpc.RpcError as error:
                print(f"{name}: {error.code().name}")


if sys.argv[1] == "client":
    call(sys.argv[2])
elif sys.argv[1] == "other":
    serve({})
else:
    echo = grpc.unary_unary_rpc_method_handler(lambda message, _: message)
    serve({"Echo": echo, "Transfer": grpc.unary_unary_rpc_method_handler(transfer)})
