"""`troupe mock` as a whole: the program, its signals, and other people's clients as judges."""
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import unittest
import urllib.error
import urllib.request

from support import PATIENCE, TroupeTest, clean_environment, results

JUDGES = pathlib.Path(os.environ.get("TROUPE_JUDGES") or pathlib.Path.home() / ".cache/troupe/judges")
SDKS = "openai@6 @anthropic-ai/sdk@1"


class MockTest(TroupeTest):
    def serve(self, script, *words, **environment):
        """A mock server and its URL."""
        path = self.write("mock.json", json.dumps(script))
        process = self.start("mock", path, "--port", 0, *words, **environment)
        line = process.stdout.readline()
        self.assertTrue(line, process.stderr.read() if process.poll() is not None else "")
        return process, json.loads(line)["url"] if "--json" in words else line.strip()

    def end(self, process, how=signal.SIGINT):
        """What it prints when it is told to end."""
        process.send_signal(how)
        out, err = process.communicate(timeout=20 * PATIENCE)
        self.assertEqual(process.returncode, 0, err)
        return out, err

    def ask(self, url, path="/v1/chat/completions", **body):
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **body}
        request = urllib.request.Request(url + path, json.dumps(body).encode(),
                                         {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=20 * PATIENCE) as answer:
            return answer.read().decode()


class Mock(MockTest):
    def test_it_prints_where_it_listens_answers_and_ends_by_a_signal(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            process, url = self.serve({"default": "scripted"})
            reply = json.loads(self.ask(url))
            self.assertEqual(reply["choices"][0]["message"]["content"], "scripted")
            out, err = self.end(process, how)
            self.assertEqual(out, "")
            self.assertIn("1 requests", err)
            self.assertIn("200: 1", err)
            self.assertIn("% of its core", err)

    def test_it_ends_while_clients_wait_and_streams_run(self):
        process, url = self.serve({"default": "x" * 4000, "stream": {"gap": {"median_ms": 60000}},
                                   "rules": [{"if_task_contains": "slow",
                                              "reply": {"text": "late", "latency_ms": 60000}}]})
        host = url.removeprefix("http://")
        connections = []
        for message, stream in (("slow", False), ("fast", True)):
            connection = http.client.HTTPConnection(host, timeout=20 * PATIENCE)
            self.addCleanup(connection.close)
            connection.request("POST", "/v1/chat/completions", json.dumps(
                {"model": "m", "stream": stream, "messages": [{"role": "user", "content": message}]}))
            connections.append(connection)
        self.assertIn(b"data: ", connections[1].getresponse().readline())
        _, err = self.end(process)
        self.assertIn("at most 2 in flight", err)

    def test_figures_for_machines_are_json_lines(self):
        process, url = self.serve({"default": "x", "faults": [{"kind": "server", "every": 2}]},
                                  "--json", "--stats-every", "50ms")
        with self.assertRaises(urllib.error.HTTPError):
            self.ask(url)
        self.ask(url, stream=True)
        self.assertEqual(json.loads(process.stdout.readline())["event"], "figures")
        out, _ = self.end(process)
        summary = json.loads(out.splitlines()[-1])
        self.assertEqual(summary["event"], "summary")
        self.assertEqual(summary["requests"], 2)
        self.assertEqual(summary["status"], {"200": 1, "500": 1})
        self.assertEqual(summary["faults"], {"server": 1})
        self.assertEqual(summary["streams"], 1)
        self.assertGreater(summary["cpu_us"], 0)
        self.assertLess(summary["saturation"], 1.5)

    def test_options_win_over_the_script(self):
        script = {"default": "x", "latency": {"median_ms": 60000}, "faults": [{"kind": "reset"}],
                  "limits": {"requests_per_minute": 1}}
        _, url = self.serve(script, "--latency", "0", "--allowed-rpm", 2, "--faults", "cut=0",
                            "--require-key")
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.ask(url)
        self.assertEqual(refused.exception.code, 401)
        request = urllib.request.Request(
            url + "/v1/responses", b'{"model":"m","input":"hi"}', {"authorization": "Bearer k"})
        for _ in range(2):
            with urllib.request.urlopen(request, timeout=20 * PATIENCE) as answer:
                self.assertEqual(answer.headers["x-ratelimit-limit-requests"], "2")
        with self.assertRaises(urllib.error.HTTPError) as limited:
            urllib.request.urlopen(request, timeout=20 * PATIENCE)
        self.assertEqual(limited.exception.code, 429)

    def test_mistakes_are_one_line_each(self):
        self.write("bad.json", '{"defalt": "x"}')
        self.assert_one_clear_line(self.troupe("mock", "bad.json"), "bad.json", "did you mean 'default'?")
        self.assert_one_clear_line(self.troupe("mock", "none.json"), "none.json")
        self.assert_one_clear_line(self.troupe("mock", "--faults", "rests=1"), "did you mean 'reset'?")
        self.assert_one_clear_line(self.troupe("mock", "--faults", "reset=2"), "from 0 to 1")
        self.assert_one_clear_line(self.troupe("mock", "a", "b"), "one script")
        with contextlib.closing(socket.socket()) as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.assert_one_clear_line(self.troupe("mock", "--port", port), str(port), code=1)

    def test_a_batch_gets_through_limits_and_faults_over_every_wire(self):
        answer = "Thought: easy.\n<code>\nfinal_answer(3)\n</code>"
        script = {"default": answer, "faults": [{"kind": kind, "rate": 0.08, "retry_after_ms": 5}
                                                for kind in ("rate_limited", "overloaded", "reset",
                                                             "truncated", "cut", "wrong_type")]}
        for api in ("chat", "responses", "messages"):
            with self.subTest(api=api):
                process, url = self.serve(script, "--json")
                done = self.troupe("eval", self.dataset(20), "--model", "custom/m", "--api", api,
                                   "--base-url", f"{url}/v1" if api != "messages" else url,
                                   "--out", f"{api}.db", "--attempts", 30, "--max-concurrency", 8)
                self.assertEqual(done.returncode, 0, done.stderr)
                ends = [end for _, _, end in results(self.folder / f"{api}.db")]
                self.assertEqual(ends, ["success"] * 20)
                out, _ = self.end(process)
                summary = json.loads(out.splitlines()[-1])
                self.assertGreater(sum(summary["faults"].values()), 0)
                self.assertEqual(summary["requests"], 20 + sum(summary["faults"].values()))


class Judges(MockTest):
    """The official SDKs, where they are installed."""

    SCRIPT = {
        "models": ["m"],
        "stream": {"chunk_bytes": 5},
        "rules": [
            {"if_task_contains": "tools", "from_turn": 1, "reply": "The sums are there."},
            {"if_task_contains": "tools", "reply": {"tool_calls": [
                {"name": "add", "arguments": {"a": 1, "b": 2}},
                {"name": "add", "arguments": {"a": 3, "b": 4}}]}},
            {"if_task_contains": "think", "reply": {"text": "Thought.", "reasoning": "Hm, let me see."}},
            {"if_task_contains": "429", "reply": {"failure": {"kind": "rate_limited", "retry_after_ms": 20}}},
            {"if_task_contains": "500", "reply": {"failure": {"kind": "server"}}},
            {"if_task_contains": "529", "reply": {"failure": {"kind": "overloaded"}}},
            {"if_task_contains": "401", "reply": {"failure": {"kind": "auth"}}},
            {"if_task_contains": "reset", "reply": {"failure": {"kind": "connect"}}},
        ],
        "default": "A reply, with \u00fcnicode.",
    }

    @classmethod
    def setUpClass(cls):
        if shutil.which("node") is None:
            raise unittest.SkipTest("node is not installed")
        missing = [p for p in ("openai", "@anthropic-ai/sdk") if not (JUDGES / "node_modules" / p).is_dir()]
        if missing:
            raise unittest.SkipTest(f"{', '.join(missing)} not in {JUDGES}; to have them: "
                                    f"npm install --prefix {JUDGES} {SDKS}")

    def judge(self, which, **more):
        _, url = self.serve({**self.SCRIPT, **more})
        script = pathlib.Path(__file__).with_name("mock_judge.mjs")
        done = subprocess.run(["node", script, JUDGES, which, url], capture_output=True, text=True,
                              timeout=60 * PATIENCE, check=False, cwd=self.folder,
                              env=clean_environment(), stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, f"{which} held\n")

    def test_openai_s_sdk_takes_chat_completions(self):
        self.judge("chat")

    def test_openai_s_sdk_takes_responses(self):
        self.judge("responses")

    def test_anthropic_s_sdk_takes_messages(self):
        self.judge("messages")

    def test_errors_are_the_sdks_own_classes(self):
        self.judge("errors")

    def test_the_sdks_retry_and_get_through(self):
        self.judge("retries", faults=[{"kind": "rate_limited", "every": 3, "retry_after_ms": 20}])

    def test_the_sdks_read_the_limit_s_headers(self):
        self.judge("limits", limits={"requests_per_minute": 1})

    def test_the_sdks_see_errors_in_mid_stream(self):
        self.judge("broken", faults=[{"kind": "error_event", "at": 0.6}])


if __name__ == "__main__":
    unittest.main()
