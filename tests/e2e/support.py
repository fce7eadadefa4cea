"""What the whole-binary tests share: the program, temporary folders, a fake endpoint, leftovers.

The tests get the program by the environment variable TROUPE and the source folder by TROUPE_SOURCE.
Nothing here talks to anything but loopback.
"""
import contextlib
import http.server
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import unittest

TROUPE = os.environ["TROUPE"]
SOURCE = pathlib.Path(os.environ["TROUPE_SOURCE"])
PROBLEMS = SOURCE / "examples" / "problems"
# Sanitized programs are many times slower.
PATIENCE = 10 if os.environ.get("TROUPE_SANITIZED") else 1


def clean_environment(**extra):
    """The environment without keys, proxies or options of whoever runs the tests."""
    kept = {k: v for k, v in os.environ.items()
            if not k.startswith(("TROUPE_", "OPENAI_", "HF_", "OPENROUTER_", "ANTHROPIC_"))
            and not k.lower().endswith("_proxy") and k != "SSL_CERT_FILE"}
    kept.update(extra)
    return kept


class TroupeTest(unittest.TestCase):
    """A test with a folder of its own, in which the program runs."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="troupe-e2e-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def troupe(self, *words, timeout=120, stdin=None, **environment):
        given = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        return subprocess.run([TROUPE, *map(str, words)], cwd=self.folder, capture_output=True,
                              text=True, timeout=timeout * PATIENCE, check=False,
                              env=clean_environment(**environment), **given)

    def start(self, *words, **environment):
        """The program in the background; ended with the test."""
        process = subprocess.Popen([TROUPE, *map(str, words)], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=clean_environment(**environment), stdin=subprocess.DEVNULL)

        def end():
            if process.poll() is None:
                process.kill()
            process.communicate()

        self.addCleanup(end)
        return process

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def dataset(self, count, name="data.jsonl"):
        lines = [json.dumps({"id": f"q{i}", "input": f"What is {i} + {i}?", "target": str(2 * i)})
                 for i in range(count)]
        return self.write(name, "\n".join(lines) + "\n")

    def script(self, name="mock.json", latency_ms=0, code="final_answer(sum(range(3)))", **more):
        script = {"latency": {"median_ms": latency_ms},
                  "default": f"Thought: easy.\n<code>\n{code}\n</code>", **more}
        return self.write(name, json.dumps(script))

    def assert_one_clear_line(self, done, *parts, code=2):
        """The program failed with `code`, and said why in one line without a trace."""
        self.assertEqual(done.returncode, code, done.stderr)
        lines = [l for l in done.stderr.splitlines() if l.startswith("troupe: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        for part in parts:
            self.assertIn(part, lines[0])
        for word in ("terminate called", "what():", "Traceback", "exception."):
            self.assertNotIn(word, done.stderr)


def results(journal):
    with contextlib.closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as db:
        return db.execute("select sample_id, epoch, \"end\" from results").fetchall()


def processes_of(folder):
    """Pids of living processes of troupe that were started in `folder` (zygotes included)."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            name = (entry / "comm").read_text().strip()
            if name.startswith("troupe") and os.readlink(entry / "cwd") == str(folder):
                found.append(int(entry.name))
    return found


def children_of(pid):
    """Pids of the living children of `pid`."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError):
            stat = (entry / "stat").read_text()
            if int(stat.rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(entry.name))
    return found


def chat_reply(text):
    return json.dumps({"id": "x", "object": "chat.completion", "model": "fake-1", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}})


class FakeEndpoint:
    """An OpenAI-compatible server on loopback. `answer(n, body)` gives (status, headers, text)."""

    def __init__(self, answer):
        self.requests, self.headers = [], []
        lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # noqa: N802 (the base class's name)
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with lock:
                    outer.requests.append(body)
                    outer.headers.append(self.headers)
                    number = len(outer.requests)
                status, headers, text = answer(number, body)
                data = text.encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
