"""The loop inside a sandbox: takes requests, runs snippets in one namespace, replies."""

import ast
import builtins
import io
import json
import os
import resource
import signal
import sys
import threading
import types

import troupe_branch
import troupe_bridge
import troupe_files
import troupe_imports
import troupe_report
import troupe_shell
import troupe_source
import troupe_state
import troupe_tools
import troupe_values

try:
    import _troupe  # checkpoints: only the jail's interpreter has them
except ImportError:
    _troupe = None


_PYTHON = {"version": sys.version.split()[0], "path": sys.executable}


def _open_output():
    """stdout and stderr over one buffer: what was written first comes first."""
    out = io.BufferedWriter(io.FileIO(1, "w", closefd=False))
    sys.stdout = io.TextIOWrapper(out, "utf-8", "replace", line_buffering=True, write_through=True)
    sys.stderr = io.TextIOWrapper(out, "utf-8", "replace", line_buffering=True, write_through=True)
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr


class Worker:
    def __init__(self, bridge):
        self.bridge = bridge
        self.tools = {}
        self.ending_tools = []
        self.answers = troupe_tools.Answers()
        self.main = types.ModuleType("__main__")
        self.main.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = self.main
        if troupe_files.WORK not in sys.path:
            sys.path.append(troupe_files.WORK)  # last: a file there never hides the library's
        self.handlers = {"init": self._init, "put": self._file, "get": self._file, "run": self._run,
                         "shell": self._shell, "warm": self._warm, "branch": self._branch,
                         "take": self._take}

    def serve(self):
        next_request, handlers = self.bridge.next_request, self.handlers
        while (request := next_request()) is not None:
            op = request["op"]
            if _troupe and op != "run":
                _troupe.settle()
            handlers[op](request)

    # --- set-up ------------------------------------------------------------------------------

    def _init(self, request):
        """Tools and import rules, before the first snippet; again when others are wanted."""
        if refused := self.adopt(request):
            return self._reply(request, error=refused)
        self._reply(request, python=_PYTHON)

    def adopt(self, request):
        """Why not, or None."""
        self.bridge.max_frame = request["frame_bytes"]
        self._forget_tools()
        if rules := request["imports"]:
            if lacking := troupe_imports.missing(rules):
                return f"not installed in the sandbox: {', '.join(lacking)}"
            self.main.__dict__["__builtins__"] = troupe_imports.guarded_builtins(rules)
        if specs := request["tools"]:
            self._add_tools(specs)
        return None

    def _forget_tools(self):
        names = self.main.__dict__
        for name in self.tools:
            names.pop(name, None)
        self.tools.clear()
        self.ending_tools = []
        names["__builtins__"] = builtins

    def _add_tools(self, specs):
        self.ending_tools = [spec["name"] for spec in specs if spec.get("ends_run")]
        for spec in specs:
            self.tools[spec["name"]] = troupe_tools.make_tool(spec, self.bridge, self)
        self.main.__dict__.update(self.tools)

    def give(self, name, value):
        self.answers.give(name, value)

    def _warm(self, request):
        warm_up(self.bridge)
        self._reply(request)

    def _reply(self, request, **members):
        self.bridge.reply(self.bridge.pack({"op": "done", "id": request["id"], **members}))

    # --- fork() ------------------------------------------------------------------------------

    def _branch(self, request):
        """Sends copies of this session into other sandboxes, and is one of them there."""
        self.bridge.interrupts.install()  # as before a snippet
        members = {}
        try:
            arrival = troupe_branch.send(self.bridge, request["count"])
            if arrival:
                request = {"id": arrival.request}
                self._settle_in(arrival)
        except troupe_files.Refused as e:
            members = {"error": str(e), "kind": e.kind}
        except BaseException as e:  # of a signal handler that the code has set
            members = {"error": f"{type(e).__name__}: {e}", "kind": "internal"}
        self._reply(request, **members)

    def _settle_in(self, arrival):
        self.bridge.max_frame = arrival.frame_bytes
        self.bridge.renew()
        troupe_state.remember()
        arrival.restore()

    def _take(self, request):
        try:
            troupe_branch.take(self.bridge, request)
        except troupe_files.Refused as e:
            self._reply(request, error=str(e), kind=e.kind)

    # --- files and commands ------------------------------------------------------------------

    def _file(self, request):
        try:
            members = troupe_files.serve(request)
        except troupe_files.Refused as e:
            members = {"error": str(e), "kind": e.kind}
        except MemoryError:  # the snippets have left none
            members = {"error": f"{request['path']}: out of memory", "kind": "over_budget"}
        self._reply(request, **members)

    def _shell(self, request):
        members = troupe_shell.run(request, self.bridge.interrupts)
        self._reply(request, usage=_usage(), **members)

    # --- snippets ----------------------------------------------------------------------------

    def _run(self, request):
        saved, unprotected = self._save() if request["checkpoint"] else (None, "")
        if unprotected:
            _troupe.settle()
        if saved != 0:  # else this is the checkpoint: the snippet has never been
            self._run_once(request, unprotected)
        if saved:
            _troupe.drop(saved, troupe_bridge.FD)

    def _save(self):
        """(pid, "") in the worker, (0, "") in the checkpoint once it is needed, or (None, why)."""
        bridge = self.bridge
        try:
            if len(os.listdir("/proc/self/task")) > 1:
                return None, "other threads are running, which a copy would lose"
            bridge.saving = True
            saved = _troupe.save(troupe_bridge.FD)
        except FileNotFoundError:  # the host masks parts of its own /proc
            return None, "there is no /proc in the sandbox, where threads can be counted"
        except OSError as e:
            return None, e.strerror
        except MemoryError:
            return None, "Cannot allocate memory"
        finally:
            bridge.saving = False
        if saved == 0:
            bridge.renew()
            troupe_state.remember_host()
        return saved, ""

    def _run_once(self, request, unprotected):
        bridge, interrupts = self.bridge, self.bridge.interrupts
        self.answers = troupe_tools.Answers()
        interrupts.install()
        interrupts.pending = False
        bridge.snippet = request["id"]
        frame = None
        try:
            try:
                interrupts.armed = True
                frame = self.outcome(request)
            finally:
                interrupts.armed = False
        except KeyboardInterrupt as e:  # it struck while the outcome was being written down
            frame = {"end": "raised", "error": troupe_report.describe(e, "")}
        if os.getpid() != bridge.pid:
            os._exit(0)  # a child that the snippet forked has run to the snippet's end
        if unprotected:
            frame["unprotected"] = unprotected
        self._send(request, frame)

    def outcome(self, request):
        filename = troupe_source.filename_of(request["id"])
        try:
            parts = self._compile(request, filename)
            if parts is None:
                return {"end": "not_code"}
            frame = self._execute(*parts)
        except troupe_tools.FinalAnswer:
            frame = {"end": "ok"}
        except BaseException as e:
            frame = {"end": "raised", "error": troupe_report.describe(e, filename)}
            # The traceback would keep every local variable of the failed code alive.
            e.__traceback__ = None
        if self.answers.given:
            frame = {"end": "ok", "final": True,
                     "result": self._result(self.answers.value, self.answers.tagged)}
        return frame

    def _compile(self, request, filename):
        """(code of the statements or None, code of the last expression or None); None: prose."""
        code = request["code"]
        if value := troupe_source.compile_expression(code, filename, self.ending_tools):
            troupe_source.remember(filename, code)
            return None, value
        try:
            tree = ast.parse(code, filename)
        except (SyntaxError, ValueError):  # ValueError: a null byte
            if request["may_be_prose"]:
                return None
            raise
        finally:
            troupe_source.remember(filename, code)
        for name in self.ending_tools:
            if name in code:
                troupe_source.protect(tree, name)
        return troupe_source.compile_snippet(tree, filename)

    def _execute(self, body, last):
        names = self.main.__dict__
        for name in self.ending_tools:
            names[name] = self.tools[name]
        if body is not None:
            exec(body, names)
        if last is None:
            return {"end": "ok"}
        value = eval(last, names)
        return {"end": "ok", "result": self._result(value)}

    def _result(self, value, tagged=None):
        text = troupe_values.text_of(value)
        try:
            return {"tagged": troupe_values.encode(value) if tagged is None else tagged,
                    "text": text}
        except troupe_values.NotSerialisable:
            return {"tagged": text, "text": text}

    def _send(self, request, frame):
        try:
            sys.stdout.flush()
        except Exception:
            pass  # the snippet closed or replaced it
        frame |= {"op": "done", "id": request["id"], "usage": _usage()}
        try:
            data = self.bridge.pack(frame)
        except troupe_bridge.FrameTooLarge as e:
            data = self.bridge.pack(self._too_large(frame, e))
        self.bridge.reply(data)

    def _too_large(self, frame, why):
        """A result goes as text when its value is too large; an answer must not change."""
        if not frame.get("final"):
            frame["result"]["tagged"] = frame["result"]["text"]
            return frame
        message = f"the answer cannot be sent: {why}. Give a shorter one."
        error = {"type": "ValueError", "message": message, "line": 0,
                 "traceback": f"ValueError: {message}\n"}
        return {"op": "done", "id": frame["id"], "usage": frame["usage"], "end": "raised",
                "error": error}


def _usage():
    if _troupe:
        cpu, memory = _troupe.usage()
        return {"cpu_us": cpu, "rss_kb": memory}
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    return {"cpu_us": int(seconds * 1e6),
            "rss_kb": max(own.ru_maxrss, children.ru_maxrss)}


def prepare(work="/work"):
    """The worker, but for what only its own process can do. A zygote makes one for all of its."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    troupe_files.WORK = work
    _open_output()
    threading.excepthook = _thread_ended
    bridge = troupe_bridge.Bridge()
    bridge.interrupts.install()  # an early one must not end the interpreter
    return Worker(bridge)


def prepare_zygote():
    """Keeps for `serve` what the workers have in common. Leaves nothing open."""
    global _prepared
    warm_up(troupe_bridge.Bridge())
    # The streams remember what they were opened on: 1 must be a pipe, as it will be.
    reading, writing = os.pipe()
    kept = os.dup(1)
    os.dup2(writing, 1)
    _prepared = prepare()
    os.dup2(kept, 1)
    for fd in (reading, writing, kept):
        os.close(fd)
    _hold_thread_hook(True)


_prepared = None
_thread_hook = getattr(threading, "_after_fork", None)
_hook_code = _thread_hook and _thread_hook.__code__


def _hold_thread_hook(held):
    """A zygote has no threads, whose locks and objects a fork would have to mend: what threading
    does about them was a sixth of the pages that a new worker copies. The worker's own forks have
    it again."""
    if _thread_hook:
        _thread_hook.__code__ = _nothing.__code__ if held else _hook_code


def _nothing():
    pass


def serve(max_frame, work="/work"):
    """Called once in each new worker process; returns when the host has closed the socket."""
    worker = _prepared or prepare(work)
    _hold_thread_hook(False)
    worker.bridge.begin(max_frame)
    worker.serve()


def _thread_ended(args):
    """A final answer given in a thread ends that thread, and says nothing."""
    if not issubclass(args.exc_type, troupe_tools.FinalAnswer):
        threading.__excepthook__(args)


_SAMPLE_TOOL = {"name": "final_answer", "ends_run": True, "parameters": {
    "type": "object", "properties": {"answer": {}}, "required": ["answer"]}}
_SAMPLES = ("x = [1, 2.5, 'a']\nx", "1 / 0", "final_answer({'a': x})")


def warm_up(bridge):
    """Goes a snippet's way ahead of it. In a zygote, what is loaded and cached is then shared; in a
    worker, the pages that it writes to are its own."""
    main = sys.modules["__main__"]
    worker = Worker(bridge)
    worker.adopt({"frame_bytes": bridge.max_frame, "imports": [], "tools": [_SAMPLE_TOOL]})
    for code in _SAMPLES:
        frame = worker.outcome({"id": 0, "code": code, "may_be_prose": True})
        bridge.pack(frame | {"usage": _usage()})
    troupe_source.forget(troupe_source.filename_of(0))
    sys.modules["__main__"] = main
