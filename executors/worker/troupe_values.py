"""Python values as tagged JSON, and back. The C++ twin is runtime/core/value.hpp."""

import base64
import dataclasses
import datetime
import decimal
import math
import pathlib

MAX_DEPTH = 32
MAX_NODES = 200_000
MAX_TEXT = 64 << 10
_TAG = "__type__"


class NotSerialisable(TypeError):
    """The value has no safe form; the text says which part and why."""


class _Encoder:
    def __init__(self):
        self.nodes = 0

    def encode(self, x, depth):
        self.nodes += 1
        if depth > MAX_DEPTH:
            raise NotSerialisable(f"it is nested deeper than {MAX_DEPTH} levels")
        if self.nodes > MAX_NODES:
            raise NotSerialisable(f"it has more than {MAX_NODES} parts")
        if x is None or x is True or x is False:
            return x
        for kind, encode in _ENCODERS:
            if isinstance(x, kind):
                return encode(self, x, depth)
        return self.foreign(x, depth)

    def items(self, xs, depth):
        return [self.encode(x, depth + 1) for x in xs]

    def mapping(self, x, depth):
        if all(isinstance(k, str) and k != _TAG for k in x):
            return {_text(k): self.encode(v, depth + 1) for k, v in x.items()}
        pairs = [[self.encode(k, depth + 1), self.encode(v, depth + 1)] for k, v in x.items()]
        return {_TAG: "dict", "data": pairs}

    def foreign(self, x, depth):
        if dataclasses.is_dataclass(x) and not isinstance(x, type):
            fields = {f.name: getattr(x, f.name) for f in dataclasses.fields(x)}
            kind = type(x)
            return {_TAG: "dataclass", "class_name": kind.__name__, "module": kind.__module__,
                    "data": self.mapping(fields, depth)}
        if type(x).__module__ == "numpy":
            if hasattr(x, "tolist") and hasattr(x, "dtype") and getattr(x, "ndim", 0) > 0:
                return {_TAG: "ndarray", "data": self.encode(x.tolist(), depth),
                        "dtype": str(x.dtype)}
            if hasattr(x, "item"):
                return self.encode(x.item(), depth + 1)
        raise NotSerialisable(f"an object of type {type(x).__name__} cannot leave the sandbox")


def _int(_, x, __):
    x = int(x)
    if -(1 << 63) <= x < 1 << 63:
        return x
    try:
        return {_TAG: "int", "data": str(x)}
    except ValueError:
        raise NotSerialisable(f"it is an int of {x.bit_length()} bits") from None


def _float(_, x, __):
    x = float(x)
    if math.isfinite(x):
        return x
    return {_TAG: "float", "data": "nan" if x != x else "inf" if x > 0 else "-inf"}


def _text(x):
    """A plain str that UTF-8 can carry: lone surrogates become U+FFFD."""
    x = str.__str__(x)
    if x.isascii():
        return x
    return x.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _ordered(xs):
    """A set's members in an order that does not depend on hashes, where they have one."""
    try:
        return sorted(xs)
    except Exception:
        return list(xs)


def _tagged(tag, data):
    return lambda encoder, x, depth: {_TAG: tag, "data": data(encoder, x, depth)}


# The first match counts: bool was handled before int, datetime comes before date.
_ENCODERS = (
    (str, lambda _, x, __: _text(x)),
    (int, _int),
    (float, _float),
    (list, lambda e, x, depth: e.items(x, depth)),
    (dict, lambda e, x, depth: e.mapping(x, depth)),
    (tuple, _tagged("tuple", lambda e, x, depth: e.items(x, depth))),
    (set, _tagged("set", lambda e, x, depth: e.items(_ordered(x), depth))),
    (frozenset, _tagged("frozenset", lambda e, x, depth: e.items(_ordered(x), depth))),
    ((bytes, bytearray), _tagged("bytes", lambda _, x, __: base64.b64encode(x).decode())),
    (complex, lambda e, x, depth: {_TAG: "complex", "real": _float(e, x.real, depth),
                                   "imag": _float(e, x.imag, depth)}),
    (datetime.datetime, _tagged("datetime", lambda _, x, __: x.isoformat())),
    (datetime.date, _tagged("date", lambda _, x, __: x.isoformat())),
    (datetime.time, _tagged("time", lambda _, x, __: x.isoformat())),
    (datetime.timedelta,
     lambda _, x, __: {_TAG: "timedelta", "total_seconds": x.total_seconds()}),
    (decimal.Decimal, _tagged("Decimal", lambda _, x, __: str(x))),
    (pathlib.PurePath, _tagged("Path", lambda _, x, __: _text(str(x)))),
)


def encode(x):
    """The value as tagged JSON objects. Raises NotSerialisable."""
    try:
        return _Encoder().encode(x, 0)
    except NotSerialisable:
        raise
    except RecursionError:
        raise NotSerialisable("it is nested too deeply") from None
    except Exception as e:  # an attribute or iterator of the value raised
        raise NotSerialisable(f"reading it raised {type(e).__name__}") from None


_DECODERS = {
    "tuple": lambda x: tuple(map(decode, x["data"])),
    "set": lambda x: set(map(decode, x["data"])),
    "frozenset": lambda x: frozenset(map(decode, x["data"])),
    "bytes": lambda x: base64.b64decode(x["data"]),
    "int": lambda x: int(x["data"]),
    "float": lambda x: float(x["data"]),
    "complex": lambda x: complex(decode(x["real"]), decode(x["imag"])),
    "dict": lambda x: {decode(k): decode(v) for k, v in x["data"]},
    "datetime": lambda x: datetime.datetime.fromisoformat(x["data"]),
    "date": lambda x: datetime.date.fromisoformat(x["data"]),
    "time": lambda x: datetime.time.fromisoformat(x["data"]),
    "timedelta": lambda x: datetime.timedelta(seconds=x["total_seconds"]),
    "Decimal": lambda x: decimal.Decimal(x["data"]),
    "Path": lambda x: pathlib.Path(x["data"]),
    "ndarray": lambda x: decode(x["data"]),
    "dataclass": lambda x: decode(x["data"]),
}


def decode(x):
    """The value of tagged JSON objects."""
    if isinstance(x, list):
        return [decode(item) for item in x]
    if not isinstance(x, dict):
        return x
    if _TAG in x:
        return _DECODERS[x[_TAG]](x)
    return {k: decode(v) for k, v in x.items()}


def text_of(x):
    """str(x), capped, whatever its __str__ does. Lets KeyboardInterrupt through."""
    try:
        text = str(x)
        text = text if type(text) is str else str.__str__(text)
    except Exception as e:
        if isinstance(x, int):
            return f"<int of {int(x).bit_length()} bits>"
        return f"<{type(x).__name__} whose str() raised {type(e).__name__}>"
    return shorten(_text(text))


def shorten(text, limit=MAX_TEXT):
    """At most `limit` bytes of UTF-8, with a notice when something was cut."""
    if len(text) <= limit // 4:
        return text
    data = text.encode()
    if len(data) <= limit:
        return text
    notice = f"\n... [{len(data) - limit} bytes cut] ...\n".encode()
    half = (limit - 64) // 2
    return (data[:half] + notice + data[-half:]).decode(errors="ignore")
