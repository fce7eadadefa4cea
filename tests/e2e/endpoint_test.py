"""Endpoints over HTTP: a fake server on loopback that throttles, lies, hangs up."""
import json
import socket
import time
import unittest

from support import PATIENCE, FakeEndpoint, TroupeTest, chat_reply, results

ANSWER = "Thought: easy.\n<code>\nfinal_answer(3)\n</code>"


class Endpoints(TroupeTest):
    def eval(self, url, count=20, *more, **environment):
        return self.troupe("eval", self.dataset(count), "--model", "openai/fake", "--base-url", url,
                           "--scorer", "numeric", "--out", "out.db", "--max-concurrency", 8, *more,
                           **{"OPENAI_API_KEY": "sk-test", **environment})

    def wait_until(self, holds, longest=30):
        end = time.monotonic() + longest * PATIENCE
        while not holds():
            self.assertLess(time.monotonic(), end, "it did not come to that in time")
            time.sleep(0.02)

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
        refused = self.troupe("eval", "data.jsonl", "--model", "openai/other", "--base-url", "http://127.0.0.1:9",
                              "--scorer", "numeric", "--out", "out.db", "--retry-errors", OPENAI_API_KEY="x")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertEqual(len(results(self.folder / "out.db")), 3)  # what is refused forgets nothing
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

    def test_what_the_user_has_to_mend_is_told_in_one_line_and_asked_once(self):
        def refusal(message, code):
            return json.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code}})

        for status, body, words in (
                (404, refusal("The model 'fake' does not exist", "model_not_found"),
                 ("'fake' does not exist", "check the model name and the base URL")),
                (404, "<html><body>nginx</body></html>", ("a web page", "check the base URL and the proxy")),
                (301, "", ("redirects to https://elsewhere", "check the base URL")),
                (400, refusal("Invalid schema for response_format: 'x' is not permitted", "invalid_schema"),
                 ("Invalid schema", "change the schema")),
                (402, refusal("no credit", "insufficient_quota"), ("no credit", "billing"))):
            with self.subTest(status=status, words=words), FakeEndpoint(
                    lambda n, b, status=status, body=body: (status, {"location": "https://elsewhere"}, body)) as server:
                done = self.troupe("run", "?", "--agent", "tool", "--model", "openai/fake",
                                   "--base-url", server.url, OPENAI_API_KEY="sk-test")
                self.assert_one_clear_line(done, *words, code=4)
                self.assertEqual(len(server.requests), 1)

    def test_a_web_page_in_place_of_a_reply_is_tried_again_a_few_times_only(self):
        with FakeEndpoint(lambda n, b: (200, {"content-type": "text/html"}, "<html>portal</html>")) as server:
            done = self.troupe("run", "?", "--agent", "tool", "--model", "openai/fake", "--attempts", 3,
                               "--base-url", server.url, OPENAI_API_KEY="sk-test")
            self.assert_one_clear_line(done, "a web page", "check the base URL", "3 tries", code=4)
            self.assertEqual(len(server.requests), 3)

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
        self.assertEqual(set(request), {"model", "max_tokens", "stop_sequences", "cache_control", "system",
                                        "messages"})
        self.assertEqual([m["role"] for m in request["messages"]], ["user"])
        self.assertEqual([end for _, _, end in results(self.folder / "out.db")], ["success"] * 2)

    def test_claude_s_prompts_are_marked_for_its_cache_and_the_cached_tokens_counted_and_paid(self):
        usage = {"input_tokens": 100, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 870,
                 "output_tokens": 10}
        reply = json.dumps({"type": "message", "role": "assistant", "model": "claude-fake", "usage": usage,
                            "content": [{"type": "text", "text": ANSWER}], "stop_reason": "end_turn"})
        prices = self.write("prices.yaml", "models:\n  anthropic/claude-fake: {input: 10, cached_input: 1, "
                                           "cache_write: 20, output: 100}\n")
        mark = {"type": "ephemeral"}
        for words, marked in (([], True), (["--prompt-cache", "off"], False)):
            with FakeEndpoint(lambda n, b: (200, {"content-type": "application/json"}, reply)) as server:
                done = self.troupe("eval", self.dataset(2), "--model", "anthropic/claude-fake", *words,
                                   "--base-url", server.url, "--out", f"{marked}.db", "--prices", prices,
                                   ANTHROPIC_API_KEY="sk-ant")
                self.assertEqual(done.returncode, 0, done.stderr)
                for request in server.requests:
                    self.assertEqual(request.get("cache_control"), mark if marked else None)
                    self.assertEqual(request["system"][0].get("cache_control"), mark if marked else None)
        report = json.loads(self.troupe("report", "True.db", "--json").stdout)
        tokens = report["totals"]["tokens"]
        self.assertEqual((tokens["input"], tokens["cached"], tokens["cache_written"], tokens["output"]),
                         (2000, 1740, 60, 20))
        # Two replies of 100 plain, 870 read, 30 written and 10 put out, per million.
        self.assertAlmostEqual(report["stats"]["spent"]["money"],
                               2 * (100 * 10 + 870 * 1 + 30 * 20 + 10 * 100) / 1e6)
        self.assertIn("input 2 000 (cached 1 740, put into the cache 60)",
                      self.troupe("report", "True.db").stdout)

    def test_a_fallback_answers_when_the_account_is_empty_and_is_named_in_the_result(self):
        def first(n, body):
            return 429, {}, json.dumps({"error": {"message": "out of money", "code": "insufficient_quota"}})

        with FakeEndpoint(first) as server, FakeEndpoint(lambda n, b: (200, {}, chat_reply(ANSWER))) as other:
            done = self.eval(server.url, 2, "--fallback-model", "vllm/second", VLLM_BASE_URL=other.url)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual({r["model"] for r in other.requests}, {"second"})
        self.assertEqual([end for _, _, end in results(self.folder / "out.db")], ["success"] * 2)
        self.assertIn("fallbacks 2", self.troupe("report", "out.db").stdout.replace("2 fallbacks", "fallbacks 2"))

    def test_a_fallback_of_another_wire_format_is_refused_before_the_first_call(self):
        with FakeEndpoint(lambda n, b: (200, {}, chat_reply(ANSWER))) as server:
            done = self.eval(server.url, 1, "--fallback-model", "anthropic/claude", ANTHROPIC_API_KEY="k")
            self.assertEqual(server.requests, [])
        self.assert_one_clear_line(done, "fallback_model: 'anthropic/claude' speaks messages", code=2)

    def test_several_addresses_share_the_calls_and_one_that_is_dead_is_left_out(self):
        with FakeEndpoint(lambda n, b: (200, {}, chat_reply(ANSWER))) as a, \
                FakeEndpoint(lambda n, b: (200, {}, chat_reply(ANSWER))) as b:
            done = self.eval(a.url, 12, "--base-url", b.url, "--base-url", "http://127.0.0.1:9/v1")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreater(len(a.requests), 1)
            self.assertGreater(len(b.requests), 1)
        self.assertEqual([end for _, _, end in results(self.folder / "out.db")], ["success"] * 12)

    def test_a_spent_budget_ends_the_batch_and_a_larger_one_goes_on(self):
        with FakeEndpoint(lambda n, b: (200, {}, chat_reply(ANSWER))) as server:
            done = self.eval(server.url, 12, "--max-calls", 5)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("the batch's budget is spent: 5 of 5 calls", done.stderr)
            self.assertIn("5 of 12 results", done.stderr)
            self.assertEqual(len(server.requests), 5)
            done = self.eval(server.url, 12, "--max-calls", 9)
            self.assertIn("9 of 9 calls", done.stderr)
            done = self.eval(server.url, 12, "--max-calls", 100)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(server.requests), 12)
        self.assertEqual([end for _, _, end in results(self.folder / "out.db")], ["success"] * 12)

    def test_money_is_counted_by_the_user_s_price_list(self):
        prices = self.write("prices.yaml", "models:\n  openai/fake: {input: 100000, output: 100000}\n")
        reply = json.loads(chat_reply(ANSWER))
        reply["usage"] = {"prompt_tokens": 7, "completion_tokens": 3}
        with FakeEndpoint(lambda n, b: (200, {}, json.dumps(reply))) as server:
            done = self.eval(server.url, 8, "--max-cost", 3, "--prices", prices)
            self.assertIn("the batch's budget is spent: 3.0000 of 3.0000 USD", done.stderr)
            self.assertEqual(len(server.requests), 3)
        report = json.loads(self.troupe("report", "out.db", "--json").stdout)
        self.assertAlmostEqual(report["stats"]["spent"]["money"], 3)

    def test_a_task_whose_budget_is_spent_ends_as_budget(self):
        with FakeEndpoint(lambda n, b: (200, {}, chat_reply("<code>\nprint(%d)\n</code>" % n))) as server:
            done = self.troupe("run", "?", "--model", "custom/fake", "--base-url", server.url, "--max-calls", 2)
            self.assertEqual(len(server.requests), 2)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("budget is spent: 2 of 2 calls", done.stderr)

    def test_a_run_whose_own_budget_is_spent_ends_and_its_siblings_go_on(self):
        def answer(number, body):  # one task never comes to an end
            endless = "What is 2 + 2?" in json.dumps(body["messages"])
            return 200, {}, chat_reply(f"<code>\nprint({number})\n</code>" if endless else ANSWER)

        prices = self.write("prices.yaml", "models:\n  openai/fake: {input: 100000, output: 100000}\n")
        for limit, reason in ((("--call-budget", 3), "3 of 3 calls"),
                              (("--token-budget", 25), "30 of 25 tokens used"),
                              (("--cost-budget", 2.5, "--prices", prices), "3.0000 of 2.5000 USD")):
            with FakeEndpoint(answer) as server:
                done = self.eval(server.url, 6, *limit)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(len(server.requests), 5 + 3)
            ends = {sample: end for sample, _, end in results(self.folder / "out.db")}
            self.assertEqual(ends, {f"q{i}": "budget" if i == 2 else "success" for i in range(6)})
            self.assertIn(reason, self.troupe("trace", "out.db", "q2").stdout)
            (self.folder / "out.db").unlink()

    def test_limits_may_be_edited_while_a_batch_runs(self):
        limits = self.write("limits.yaml", "rpm: 30\n")
        with FakeEndpoint(lambda n, b: (200, {}, chat_reply(ANSWER))) as server:
            process = self.start("eval", self.dataset(30), "--model", "openai/fake", "--base-url", server.url,
                                 "--out", "out.db", "--limits-file", limits, OPENAI_API_KEY="k")
            self.wait_until(lambda: server.requests)
            limits.write_text("rpmm: 1\n")
            self.assertIn("line 1: unknown key 'rpmm' (did you mean 'rpm'?)", process.stderr.readline())
            before = len(server.requests)
            limits.write_text("rpm: 60000\n")
            _, err = process.communicate(timeout=40 * PATIENCE)  # at 30 a minute it would take a minute
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("limits from now on: rpm 60000, tpm 0, max_connections 0", err)
        self.assertLess(before, 10)
        self.assertEqual(len(results(self.folder / "out.db")), 30)

    def test_a_limits_file_with_a_mistake_is_found_before_the_first_call(self):
        self.write("limits.yaml", "tpm: lots\n")
        done = self.eval("http://127.0.0.1:9/v1", 1, "--limits-file", "limits.yaml")
        self.assert_one_clear_line(done, "limits_file: limits.yaml, line 1: tpm: 'lots'", code=2)
        done = self.eval("http://127.0.0.1:9/v1", 1, "--limits-file", "none.yaml")
        self.assert_one_clear_line(done, "limits_file", "none.yaml", code=2)

    def test_a_price_that_is_needed_and_not_there_is_found_before_the_first_call(self):
        with FakeEndpoint(lambda n, b: (200, {}, chat_reply(ANSWER))) as server:
            done = self.eval(server.url, 1, "--max-cost", 1)
            self.assert_one_clear_line(done, "max_cost", "no price for 'openai/fake'", "--prices", code=2)
            done = self.eval(server.url, 1, "--cost-budget", 1)
            self.assert_one_clear_line(done, "cost_budget", "no price for 'openai/fake'", code=2)
            typo = self.write("prices.yaml", "models:\n  openai/fake:\n    inptu: 1\n    output: 2\n")
            done = self.eval(server.url, 1, "--prices", typo)
            self.assert_one_clear_line(done, "prices.yaml, line 3", "did you mean 'input'?", code=2)
            self.assertEqual(server.requests, [])

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
