"""Writes the fuzz targets' first inputs: corpus/frame, corpus/stream and
corpus/value, one small file per case.

With --check it only compares, and fails when a file differs, is missing or is not made here.
"""

import json
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).parent


def tag(kind, data, **more):
    return {"__type__": kind, "data": data, **more}


def nested(levels, inner="1", opening="[", closing="]"):
    return opening * levels + inner + closing * levels


VALUES = {
    "scalars": [None, True, False, 0, -1, 1.5, "text"],
    "int_64_bits": [2**63 - 1, -(2**63), 2**64 - 1],
    "int_beyond": tag("int", str(2**200)),
    "int_negative": tag("int", "-" + "9" * 40),
    "float_edges": [5e-324, 1.7976931348623157e308, -0.0, 1e22],
    "float_nan": tag("float", "nan"),
    "float_inf": [tag("float", "inf"), tag("float", "-inf")],
    "complex": {"__type__": "complex", "real": 1.0, "imag": -2.0},
    "complex_nan": {"__type__": "complex", "real": tag("float", "nan"), "imag": 0.0},
    "tuple": tag("tuple", [1, tag("tuple", [])]),
    "set": tag("set", ["a", "b"]),
    "frozenset": tag("frozenset", [tag("tuple", [1, 2])]),
    "bytes": tag("bytes", "AP8="),
    "bytes_empty": tag("bytes", ""),
    "dict_pairs": tag("dict", [[1, "one"], [None, 2], [True, 3], [tag("tuple", [1]), 4]]),
    "dict_tag_key": tag("dict", [["__type__", "tuple"], ["data", 5]]),
    "dict_same_text": tag("dict", [[1, "int"], ["1", "str"], [1.0, "float"]]),
    "dict_plain": {"a": {"b": {"c": []}}, "": 0},
    "datetime": [tag("datetime", "2024-02-29T12:00:00"), tag("date", "2024-02-29"),
                 tag("time", "12:00:00")],
    "timedelta": {"__type__": "timedelta", "total_seconds": -1.5},
    "decimal": tag("Decimal", "1E+400"),
    "path": tag("Path", "/work/a b"),
    "ndarray": tag("ndarray", [[1, 2], [3, 4]], dtype="int64"),
    "dataclass": tag("dataclass", {"x": 1}, class_name="Point", module="__main__"),
    "unicode": ["\u00e9\u4e16\U0001f600", "\ufffd", "\u0000\u001f\u007f"],
    "long_key": {"\u00e9" * 40: tag("unknown", 1)},
    "unknown_tag": tag("\u00e9" * 40, 1),
    "tag_no_string": {"__type__": 1},
    "more_members": tag("tuple", [], extra=1),
}
RAW_VALUES = {
    "depth_32": nested(32).encode(),
    "depth_33": nested(33).encode(),
    "depth_of_pairs": nested(32, "1", '{"__type__":"dict","data":[[1,', "]]}").encode(),
    "escapes": rb'["\ud83d\ude00", "\ud800", "\u0000", "\/"]',
    "number_overflow": b"[1e400, 1]",
    "not_utf8": b'["\xff\xc3\xa9"]',
    "control_in_string": b'"' + b"a" * 60 + b'\x01"',
    "same_key_twice": b'{"a": 1, "a": 2}',
    "cut_off": b'{"__type__": "tuple", "data": [1',
    "bom": b"\xef\xbb\xbf[1]",
}

USAGE = {"cpu_us": 5, "rss_kb": 2}
ERROR = {"type": "E", "message": "m", "line": 4, "traceback": "t"}


def reply(**members):
    return {"op": "done", "id": 1, **members}


def call(arguments, **members):
    return {"op": "call", "id": 1, "call": 2, "tool": "t", "arguments": arguments, **members}


MESSAGES = {
    "done": [reply()],
    "done_result": [reply(result={"tagged": tag("tuple", [1]), "text": "(1,)"}, usage=USAGE)],
    "done_final": [reply(result={"tagged": 5, "text": "5"}, final=True)],
    "done_final_odd": [reply(result={"tagged": 5, "text": "5"}, final="yes")],
    "done_raised": [reply(end="raised", error=ERROR, usage=USAGE)],
    "done_raised_bare": [reply(end="raised")],
    "done_not_code": [reply(end="not_code")],
    "done_failure": [reply(error="no such import")],
    "done_unknown_end": [reply(end="hard_timeout")],
    "done_bad_id": [{"op": "done", "id": 2**32}],
    "done_bad_usage": [reply(usage={"cpu_us": -5, "rss_kb": 1})],
    "done_huge_usage": [reply(usage={"cpu_us": 2**64 - 1, "rss_kb": 2**32 - 1})],
    "done_bad_result": [reply(result=5)],
    "done_bad_tag": [reply(result={"tagged": tag("x", 1), "text": ""})],
    "done_line_overflow": [reply(end="raised", error={**ERROR, "line": 2**32})],
    "call": [call({"x": 1, "y": tag("float", "nan")})],
    "call_none": [call({})],
    "call_big_id": [call({}, call=2**64 - 1)],
    "call_list": [call([1])],
    "call_bad_tag": [call({"x": {"__type__": 0}})],
    "call_tag_key": [call({"__type__": "tuple", "data": []})],
    "call_dict_keys": [call({"x": tag("dict", [[1, 2], ["__type__", 3]])})],
    "calls_and_done": [call({}), call({"a": []}, call=3), reply()],
    "no_op": [{}],
    "unknown_op": [{"op": "more"}],
    "no_object": [[1]],
    # In the very order in which the worker writes them: these are read without a tree.
    "done_plain": [{"end": "ok", "result": {"tagged": 5, "text": "5"}, **reply(usage=USAGE)}],
    "done_plain_text": [{"end": "ok", "result": {"tagged": "a", "text": "a"}, **reply(usage=USAGE)}],
    "done_plain_none": [{"end": "ok", **reply(usage=USAGE)}],
}


def frame(body):
    return struct.pack(">I", len(body)) + body


def to_bytes(x):
    return json.dumps(x, ensure_ascii=False, separators=(",", ":")).encode()


RAW_FRAMES = {
    "empty_frame": frame(b""),
    "no_json": frame(b"hello"),
    "cut_header": b"\x00\x00",
    "cut_body": struct.pack(">I", 100) + b'{"op":"done"',
    "too_long": b"\xff\xff\xff\xff",
    "at_the_limit": struct.pack(">I", 16 << 10) + b"{",
    "over_the_limit": struct.pack(">I", (16 << 10) + 1) + b"{",
    "good_then_bad": frame(to_bytes(reply())) + frame(b"\x00\x01"),
    "not_utf8": frame(b'{"op":"done","id":1,"error":"\xff"}'),
    "surrogate": frame(rb'{"op":"done","id":1,"error":"\ud800"}'),
    "deep": frame(nested(200).encode()),
}


# A first byte that chooses the wire format and how the rest is cut, then a provider's answer.
CHAT, RESPONSES, MESSAGES_API = 0, 1, 2


def sse(*events, names=False, newline="\n"):
    out = ""
    for e in events:
        if names:
            out += f"event: {e['type']}{newline}"
        out += "data: " + (e if isinstance(e, str) else json.dumps(e)) + newline * 2
    return out.encode()


def chunk(delta, reason=None, **more):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **more}


def piece(arguments, index=None, id=None, name=None, **more):
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return chunk({"tool_calls": [{"function": function, **more,
                                  **({"index": index} if index is not None else {}),
                                  **({"id": id} if id else {})}]})


def block(kind, index, **more):
    return {"type": f"content_block_{kind}", "index": index, **more}


STREAMS = {
    "chat_text": (CHAT, sse(chunk({"content": "a </co"}), chunk({"content": "de> b"}, "stop"), "[DONE]")),
    "chat_calls": (CHAT, sse(piece("{", 0, "a", "f"), piece("}", 0), piece({"x": 1}, 0, "b", "g"),
                             piece("{}", None, None, "h"), chunk({}, "tool_calls"))),
    "chat_reasoning": (CHAT, sse(chunk({"reasoning_content": "r", "reasoning_details": [
        {"type": "reasoning.text", "text": "a", "index": 0}]}), chunk({"content": "x"}, "stop"))),
    "chat_halves": (CHAT, sse(chunk({"content": "\ud83d"}), chunk({"content": "\ude00"}, "stop"), newline="\r\n")),
    "chat_error": (CHAT, sse(chunk({"content": "x"}), {"error": {"message": "m", "code": 429}})),
    "chat_whole": (CHAT, json.dumps({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}).encode()),
    "chat_not_utf8": (CHAT, b'data: {"choices":[{"delta":{"content":"\xff\xc3"},"finish_reason":"stop"}]}\r\r'),
    "responses": (RESPONSES, sse(
        {"type": "response.output_item.added", "output_index": 0, "item": {
            "type": "function_call", "call_id": "c", "name": "f", "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"},
        {"type": "response.output_text.delta", "output_index": 1, "delta": "hi"},
        {"type": "response.completed", "response": {"status": "completed"}}, names=True)),
    "responses_failed": (RESPONSES, sse({"type": "response.failed", "response": {"error": {
        "code": "server_error", "message": "m"}}}, names=True)),
    "messages": (MESSAGES_API, sse(
        {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1}}},
        block("start", 0, content_block={"type": "thinking", "thinking": "", "signature": ""}),
        block("delta", 0, delta={"type": "thinking_delta", "thinking": "t"}),
        block("delta", 0, delta={"type": "signature_delta", "signature": "s"}),
        block("start", 1, content_block={"type": "tool_use", "id": "i", "name": "f", "input": {}}),
        block("delta", 1, delta={"type": "input_json_delta", "partial_json": "{\"a\":"}),
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"}, names=True)),
    "messages_error": (MESSAGES_API, sse({"type": "error", "error": {"type": "overloaded_error"}}, names=True)),
    "no_stream": (CHAT, b"upstream connect error"),
    "page": (CHAT, b"<html>"),
}


def files():
    """Every file's path within the corpus, and its bytes."""
    for name, x in VALUES.items():
        yield f"value/{name}", to_bytes(x)
    for name, data in RAW_VALUES.items():
        yield f"value/{name}", data
    for number, (name, messages) in enumerate(MESSAGES.items()):
        stream = b"".join(frame(to_bytes(m)) for m in messages)
        yield f"frame/{name}", bytes([number % 7]) + stream
    for number, (name, (wire, stream)) in enumerate(STREAMS.items()):
        yield f"stream/{name}", bytes([wire + 3 * number]) + stream
    for name, stream in RAW_FRAMES.items():
        yield f"frame/{name}", b"\xff" + stream


def main():
    corpus = HERE / "corpus"
    made = dict(files())
    if sys.argv[1:] == ["--check"]:
        there = {p.relative_to(corpus).as_posix(): p.read_bytes()
                 for p in corpus.rglob("*") if p.is_file()}
        wrong = sorted(n for n in made.keys() | there.keys() if made.get(n) != there.get(n))
        for name in wrong:
            print(f"corpus/{name} is not what make_corpus.py makes")
        return 1 if wrong else 0
    for name, data in made.items():
        path = corpus / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    print(f"{len(made)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
