"""The one socket to the host, shared by all threads: frames, tool calls, interrupts.

A frame is a 4-byte big-endian length and that many bytes of JSON. Whoever waits and finds no
reader becomes the reader: it takes frames off the socket for all, and hands the role on when its
own has come.

A KeyboardInterrupt may strike the main thread between any two bytecodes. Inside this module it is
held back (`Interrupts.held`) except where the thread only waits, so no frame is lost half read.
"""

import _signal
import _thread
import json
import os
import select
import signal
import threading

FD = 3
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"),
                            check_circular=False)  # troupe_values bounds the depth


def _make_to_json():
    """JSONEncoder.encode, which makes the C encoder anew for every call."""
    if json.encoder.c_make_encoder is None:
        return _encoder.encode
    pieces = json.encoder.c_make_encoder(None, _encoder.default, json.encoder.encode_basestring,
                                         None, ":", ",", False, False, False)
    return lambda frame: "".join(pieces(frame, 0))


# Made once; and json.loads guesses an encoding.
_to_json = _make_to_json()
_from_json = json.JSONDecoder().decode
_READ = 32 << 10  # more than that and malloc maps and unmaps pages for every read


class ToolError(RuntimeError):
    """A tool could not answer. The text is the host's."""


class FrameTooLarge(ValueError):
    """The host would not accept a frame of that size."""


class Interrupts:
    """Turns SIGINT into KeyboardInterrupt while a snippet runs, and only where it is safe."""

    def __init__(self):
        self.armed = False     # a snippet's own code is running
        self.depth = 0         # the main thread is inside the bridge
        self.waiting = False   # ... and only waits: it may be interrupted
        self.pending = False

    def install(self):
        # Before each snippet, as one before it may have set its own. The C function: signal.signal
        # makes enums of its result, which takes longer than a small snippet.
        _signal.signal(signal.SIGINT, self._on_signal)
        _signal.signal(signal.SIGURG, _look_up)

    def _on_signal(self, _signum, _frame):
        if not self.armed:
            return
        if self.depth and not self.waiting:
            self.pending = True
            return
        raise KeyboardInterrupt

    def __enter__(self):
        if _is_main():
            self.depth += 1

    def __exit__(self, *_):
        if _is_main():
            self.depth -= 1
            if self.pending and self.depth == 0:
                self.pending = False
                raise KeyboardInterrupt

    def due(self):
        """True when the calling thread has an interrupt to raise."""
        return self.pending and _is_main()

    def wait(self, block):
        """Runs `block`, which must change nothing; False when an interrupt cut it short."""
        if not _is_main():
            block()
            return True
        try:
            self.waiting = True
            if self.pending:
                raise KeyboardInterrupt
            block()
            self.waiting = False
            return True
        except KeyboardInterrupt:
            self.waiting = False
            self.pending = True
            return False


def _look_up(_signum, _frame):
    """Ends a call that waits, before which an interrupt came too late to be seen."""


def _is_main():
    return threading.get_ident() == _main_ident


_main_ident = threading.get_ident()


class _Slot:
    """Something a thread waits for: the answer to a call, or the next request."""

    def __init__(self):
        self.frame = None
        self.wake = _thread.allocate_lock()
        self.wake.acquire()

    def ring(self):
        try:
            self.wake.release()
        except RuntimeError:
            pass  # rung already: the thread has not woken up yet


class Bridge:
    def __init__(self):
        self.max_frame = 1 << 20
        self.interrupts = Interrupts()
        self.saving = False              # a fork now is a checkpoint, not the snippet's own
        self._last_call = 0
        self._poll = select.poll()
        self._poll.register(FD, select.POLLIN)
        self.renew()

    def begin(self, max_frame):
        """In the process that the channel is for."""
        self.max_frame = max_frame
        self.pid = os.getpid()
        os.register_at_fork(after_in_child=self._in_child)

    def renew(self):
        """For a channel that has carried nothing: the first, or a restored checkpoint's."""
        self.pid = os.getpid()
        self.snippet = 0                 # id of the running one; 0 between snippets
        self._mutex = _thread.allocate_lock()
        self._sending = _thread.allocate_lock()
        self._reader = None              # the slot whose thread reads the socket
        self._calls = {}                 # call id -> slot
        self._request = _Slot()
        self._requests = []
        self._buffer = bytearray()
        self._shared = False             # other threads than the main one have made calls

    def _in_child(self):
        """A process forked by a snippet must never speak for it; a checkpoint takes its place."""
        if self.saving:
            return
        self.snippet = 0
        self._mutex = _thread.allocate_lock()
        self._sending = _thread.allocate_lock()
        try:
            os.close(FD)
        except OSError:
            pass

    # --- requests: the main loop -------------------------------------------------------------

    def next_request(self):
        """The host's next request; None when the host is gone."""
        if not (self._shared or self._requests or self._buffer or self.interrupts.pending):
            # Nobody else can read: between snippets no call goes out.
            data = os.read(FD, _READ)
            if len(data) > 4 and len(data) == 4 + int.from_bytes(data[:4], "big"):
                frame = _from_json(data[4:].decode())
                if frame["op"] != "answer":
                    return frame
            else:
                self._take(data)
        return self._next_of_all()

    def _next_of_all(self):
        with self.interrupts:
            while not self._requests:
                self._await(self._request, lambda: self._requests)
            self._leave(None, self._request)
            return self._requests.pop(0)

    def reply(self, data):
        """Answers the request with a packed frame; no call of its snippet goes out after this."""
        with self._sending:  # no interrupt is raised where no snippet runs
            self.snippet = 0
            # Before the reply: a thread that reads for all could take the next request before it
            # is told, and then wait for ever.
            if self._calls:
                self._fail_calls()
            self._write(data)

    def pack(self, frame):
        """The frame's bytes. Raises FrameTooLarge."""
        data = _to_json(frame)
        data = data.encode("utf-8", "replace")
        if len(data) > self.max_frame:
            raise FrameTooLarge(f"{len(data)} bytes, more than the {self.max_frame} allowed")
        return len(data).to_bytes(4, "big") + data

    # --- calls: any thread -------------------------------------------------------------------

    def call(self, tool, arguments):
        """Asks the host; returns its tagged JSON. Raises ToolError with the host's text."""
        slot = _Slot()
        with self.interrupts:
            call = self._send_call(slot, tool, arguments)
            try:
                while slot.frame is None and not self.interrupts.due():
                    self._await(slot, lambda: slot.frame)
            finally:
                self._leave(call, slot)
        if slot.frame is None:
            raise KeyboardInterrupt
        if "error" in slot.frame:
            raise ToolError(slot.frame["error"])
        return slot.frame.get("value")

    def _send_call(self, slot, tool, arguments):
        if not _is_main():
            self._shared = True
        with self._mutex:
            self._last_call += 1
            call = self._last_call
            self._calls[call] = slot
        try:
            with self._sending:
                if not self.snippet:
                    raise ToolError(f"{tool} was called after its snippet had ended")
                self._write(self.pack({"op": "call", "id": self.snippet, "call": call,
                                       "tool": tool, "arguments": arguments}))
        except BaseException:
            with self._mutex:
                self._calls.pop(call, None)
            raise
        return call

    def _fail_calls(self):
        """Wakes the threads that a snippet left waiting."""
        with self._mutex:
            calls, self._calls = self._calls, {}
        for slot in calls.values():
            slot.frame = {"error": "the snippet ended before the tool answered"}
            slot.ring()

    # --- one reader for all ------------------------------------------------------------------

    def _await(self, slot, come):
        """Reads for all, or sleeps until woken; returns when something may have come."""
        with self._mutex:
            if come():
                return
            if self._reader is None:
                self._reader = slot
            reading = self._reader is slot
        if not reading:
            self.interrupts.wait(slot.wake.acquire)
        elif slot is self._request or self.interrupts.wait(self._poll.poll):
            self._read()  # between snippets nothing interrupts it

    def _leave(self, call, slot):
        """Ends a wait. Hands the reader's part on, also when this thread was only about to get it."""
        with self._mutex:
            self._calls.pop(call, None)
            if self._reader not in (None, slot):
                return
            self._reader = None
            heir = next((s for s in self._calls.values() if s.frame is None), self._request)
        heir.ring()

    def _read(self):
        self._take(os.read(FD, _READ))

    def _take(self, data):
        if not data:
            self._requests.append(None)
        self._buffer += data
        while len(self._buffer) >= 4:
            end = 4 + int.from_bytes(self._buffer[:4], "big")
            if len(self._buffer) < end:
                break
            frame = _from_json(self._buffer[4:end].decode())
            del self._buffer[:end]
            self._dispatch(frame)

    def _dispatch(self, frame):
        if frame["op"] != "answer":
            self._requests.append(frame)
            self._request.ring()
            return
        with self._mutex:
            slot = self._calls.get(frame["call"])
        if slot is not None:  # else its thread was interrupted and has gone on
            slot.frame = frame
            slot.ring()

    def _write(self, data):
        written = os.write(FD, data)
        while written < len(data):
            data = memoryview(data)[written:]
            written = os.write(FD, data)
