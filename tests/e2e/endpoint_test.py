"""Endpoints over HTTP: a fake server on loopback that throttles, lies, hangs up."""
import json
import socket
import time
import unittest

from support import FakeEndpoint, TroupeTest, chat_reply, results

ANSWER = "Thought: easy.\n<code>\nfinal_answer(3)\n</code>"


class Endpoints(TroupeTest):
    def eval(self, url, count=20, *more, **environment):
        return self.troupe("eval", self.dataset(count), "--model", "openai/fake", "--base-url", url,
                           "--scorer", "numeric", "--out", "out.db", "--max-concurrency", 8, *more,
                           **{"OPENAI_API_KEY": "sk-test", **environment})

    def test_every_sample_is_accounted_for_under_429s(self):
        throttled = []

        def answer(number, _):
            if number % 3 == 0:
                throttled.append(time.monotonic())
                return 429, {"retry-after-ms": "50"}, json.dumps({"error": {"message": "slow down"}})
            return 200, {"content-type": "application/json"}, chat_reply(ANSWER)

        with FakeEndpoint(answer) as server:
            done = self.eval(server.url, 40, "--attempts", 20)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreater(len(throttled), 5)
        rows = results(self.folder / "out.db")
        self.assertEqual(len(rows), 40)
        self.assertTrue(all(end == "success" for _, _, end in rows))

    def test_the_request_is_openai_s_with_native_roles_and_the_key(self):
        with FakeEndpoint(lambda n, b: (200, {}, chat_reply(
                "<code>\nprint(1)\n</code>" if n == 1 else ANSWER))) as server:
            self.assertEqual(self.eval(server.url, 1).returncode, 0)
            roles = [m["role"] for m in server.requests[-1]["messages"]]
            self.assertEqual(roles, ["system", "user", "assistant", "user"])
            self.assertEqual(server.requests[0]["model"], "fake")
            self.assertEqual(server.requests[-1]["messages"][:2], server.requests[0]["messages"])

    def test_an_endpoint_that_is_down_is_named_in_every_result(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        done = self.eval(f"http://127.0.0.1:{port}/v1", 3, "--attempts", 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([end for _, _, end in results(self.folder / "out.db")], ["error"] * 3)
        self.assertIn("--retry-errors", done.stderr)
        self.assertIn(str(port), done.stderr)
        report = self.troupe("report", "out.db")
        self.assertEqual(report.returncode, 0, report.stderr)
        with FakeEndpoint(lambda n, b: (200, {}, chat_reply(ANSWER))) as server:
            again = self.troupe("eval", "data.jsonl", "--model", "openai/fake", "--base-url", server.url,
                                "--scorer", "numeric", "--out", "out.db", "--retry-errors",
                                OPENAI_API_KEY="x")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual([end for _, _, end in results(self.folder / "out.db")], ["success"] * 3)

    def test_a_proxy_carries_the_requests_of_hosts_that_only_it_can_reach(self):
        with FakeEndpoint(lambda n, b: (200, {}, chat_reply(ANSWER))) as proxy:
            there = proxy.url.removesuffix("/v1")
            done = self.eval("http://models.invalid/v1", 2, HTTP_PROXY=there)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(proxy.requests), 2)
            self.assertEqual(proxy.headers[0]["host"], "models.invalid")
        self.assertEqual([end for _, _, end in results(self.folder / "out.db")], ["success"] * 2)

    def test_a_proxy_that_is_down_is_named_with_its_variable(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            proxy = f"http://127.0.0.1:{s.getsockname()[1]}"
        done = self.eval("https://models.invalid/v1", 1, "--attempts", 1, HTTPS_PROXY=proxy)
        self.assertEqual([end for _, _, end in results(self.folder / "out.db")], ["error"])
        self.assertIn(f"the proxy {proxy} (HTTPS_PROXY): connection refused", done.stderr)

    def test_a_host_that_does_not_exist_is_final_and_looked_up_once(self):
        before = time.monotonic()
        done = self.eval(f"http://{'a' * 70}/v1", 1)  # a label may have 63 bytes: no server is asked
        self.assertIn("does not exist; check its spelling", done.stderr)
        self.assertLess(time.monotonic() - before, 10)

    def test_a_reply_that_is_not_json_ends_as_an_error_not_a_crash(self):
        with FakeEndpoint(lambda n, b: (200, {}, "<html>gateway</html>")) as server:
            done = self.eval(server.url, 2, "--attempts", 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([end for _, _, end in results(self.folder / "out.db")], ["error"] * 2)
        self.assertIn("html", self.troupe("trace", "out.db", "q0").stdout)

    def test_a_wrong_key_is_final_and_asked_once(self):
        with FakeEndpoint(lambda n, b: (401, {}, json.dumps(
                {"error": {"message": "Incorrect API key provided"}}))) as server:
            done = self.troupe("run", "?", "--model", "openai/fake", "--base-url", server.url,
                               OPENAI_API_KEY="sk-wrong")
            self.assertEqual(len(server.requests), 1)
        self.assert_one_clear_line(done, "Incorrect API key", code=4)

    def test_a_run_streams_its_reply_and_shows_it(self):
        pieces = ["Thought: \u00e9asy.\n<co", "de>\nfinal_answer(", "3)\n</code>"]
        chunks = [{"choices": [{"index": 0, "delta": {"content": p}}]} for p in pieces]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        chunks.append({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
        stream = "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"
        with FakeEndpoint(lambda n, b: (200, {"content-type": "text/event-stream"}, stream)) as server:
            done = self.troupe("run", "?", "--model", "custom/fake", "--base-url", server.url)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(server.requests[0]["stream"])
        self.assertEqual(done.stdout, "3\n")
        self.assertIn("Thought: \u00e9asy.", done.stderr)
        self.assertNotIn("</code>", done.stderr)
        self.assertIn("10 tokens", done.stderr)

    def test_claude_is_reached_by_its_own_variables_and_wire_format(self):
        reply = json.dumps({"type": "message", "role": "assistant", "model": "claude-fake",
                            "content": [{"type": "text", "text": ANSWER}], "stop_reason": "end_turn",
                            "usage": {"input_tokens": 7, "output_tokens": 3}})
        with FakeEndpoint(lambda n, b: (200, {"content-type": "application/json"}, reply)) as server:
            done = self.troupe("eval", self.dataset(2), "--model", "anthropic/claude-fake",
                               "--scorer", "numeric", "--out", "out.db",
                               ANTHROPIC_API_KEY="sk-ant", ANTHROPIC_BASE_URL=server.url[:-len("/v1")])
            self.assertEqual(done.returncode, 0, done.stderr)
            request = server.requests[0]
        self.assertEqual(set(request), {"model", "max_tokens", "stop_sequences", "system", "messages"})
        self.assertEqual([m["role"] for m in request["messages"]], ["user"])
        self.assertEqual([end for _, _, end in results(self.folder / "out.db")], ["success"] * 2)

    def test_members_and_headers_of_the_user_s_own_reach_the_server(self):
        with FakeEndpoint(lambda n, b: (200, {}, chat_reply(ANSWER))) as server:
            done = self.eval(server.url, 1, "--extra-body", '{"stop": null, "chat_template_kwargs": {"a": 1}}',
                             "--reasoning-effort", "low", "--header", "X-HF-Bill-To=org")
            self.assertEqual(done.returncode, 0, done.stderr)
            request = server.requests[0]
        self.assertNotIn("stop", request)
        self.assertEqual(request["chat_template_kwargs"], {"a": 1})
        self.assertEqual(request["reasoning_effort"], "low")
        self.assertEqual(server.headers[0]["x-hf-bill-to"], "org")

    def test_an_extra_body_that_is_no_object_is_named(self):
        for text in ("[1]", "{"):
            done = self.eval("http://127.0.0.1:9/v1", 1, "--extra-body", text)
            self.assert_one_clear_line(done, "extra_body is not", code=2)

    def test_the_key_never_reaches_the_journal(self):
        with FakeEndpoint(lambda n, b: (200, {}, chat_reply(ANSWER))) as server:
            self.eval(server.url, 2, OPENAI_API_KEY="sk-very-secret-key")
        for file in self.folder.glob("out.db*"):
            self.assertNotIn(b"sk-very-secret-key", file.read_bytes())


if __name__ == "__main__":
    unittest.main()
