"""Plans, prompts, images, typed answers and the context window as a user meets them."""
import json
import unittest

from support import FakeEndpoint, TroupeTest, chat_reply

PNG = b"\x89PNG\r\n\x1a\n"
SCHEMA = {"type": "object", "properties": {"metres": {"type": "integer"}}, "required": ["metres"]}


def called(name, arguments):
    return json.dumps({"id": "x", "model": "fake-1", "choices": [{"index": 0, "message": {
        "role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {
            "name": name, "arguments": json.dumps(arguments)}}]}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3}})


def too_long(*_):
    return 400, {}, json.dumps({"error": {
        "message": "This model's maximum context length is 8192 tokens.",
        "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}})


class Context(TroupeTest):
    def run_against(self, replies, *more):
        def say(number, body):
            reply = replies[min(number, len(replies)) - 1]
            return reply(number, body) if callable(reply) else (200, {}, reply)

        with FakeEndpoint(say) as endpoint:
            done = self.troupe("run", "How far is it?", "--agent", "tool", "--tools", "convert_units",
                               "--model", "openai/m", "--base-url", endpoint.url, "--api", "chat", *more,
                               OPENAI_API_KEY="sk-test")
        return done, endpoint.requests

    def test_a_plan_its_image_and_its_prompts(self):
        (self.folder / "map, old.png").write_bytes(PNG)
        prompts = self.write("p.yaml", "planning:\n  initial_plan: Plan {{task}} in short.\n")
        done, asked = self.run_against(
            [chat_reply("1. answer\n<end_plan>"), called("final_answer", {"answer": 7})],
            "--planning", "3", "--prompts", prompts, "--image", "map, old.png", "--out", "o.db")
        self.assertEqual((done.stdout, done.returncode), ("7\n", 0), done.stderr)
        self.assertIn("plan\n", done.stderr)
        plan, act = asked
        self.assertEqual([m["role"] for m in plan["messages"]], ["user"])
        self.assertEqual(plan["messages"][0]["content"][0]["text"], "Plan How far is it? in short.")
        self.assertEqual(plan["tool_choice"], "none")
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
        self.assertEqual(plan["messages"][0]["content"][1], image)
        self.assertEqual(act["messages"][1]["content"][1], image)
        self.assertEqual(act["messages"][2]["content"], "My plan:\n1. answer")
        self.assertIn("You solve tasks by calling tools", act["messages"][0]["content"])
        trace = self.troupe("trace", "o.db", "task").stdout
        self.assertIn("1 image\n", trace)
        self.assertIn("from step 1 on, 20 left", trace)

    def test_an_answer_of_another_form_is_asked_for_again(self):
        schema = self.write("s.json", json.dumps(SCHEMA))
        done, asked = self.run_against(
            [called("final_answer", {"answer": "far"}),
             called("final_answer", {"answer": {"metres": "7"}})], "--answer-schema", schema, "--quiet")
        self.assertEqual((done.stdout, done.returncode), ('{"metres":7}\n', 0), done.stderr)
        tool = asked[0]["tools"][0]["function"]
        self.assertEqual(tool["parameters"]["properties"]["answer"]["properties"], SCHEMA["properties"])
        self.assertIn("but must be object", asked[1]["messages"][-1]["content"])
        done, _ = self.run_against([called("final_answer", {"answer": "far"})],
                                   "--answer-schema", schema, "--answer-retries", "0", "--quiet")
        self.assert_one_clear_line(done, "1 answer was not of the form", code=4)

    def test_a_refused_prompt_is_cut_and_sent_again(self):
        convert = called("convert_units", {"value": 1, "from_unit": "km", "to_unit": "m"})
        replies = [convert, convert, too_long, chat_reply("1000 m, twice"),
                   called("final_answer", {"answer": "1000"})]
        done, asked = self.run_against(replies, "--keep-steps", "1", "--out", "o.db")
        self.assertEqual((done.stdout, done.returncode), ("1000\n", 0), done.stderr)
        self.assertIn("the context is full: summary", done.stderr)
        roles = [m["role"] for m in asked[-1]["messages"]]
        self.assertEqual(roles, ["system", "user", "user", "assistant", "tool"])
        self.assertIn("1000 m, twice", asked[-1]["messages"][2]["content"])
        self.assertIn("compaction  step 3, summary: 2 messages", self.troupe("trace", "o.db", "task").stdout)

    def test_files_that_cannot_be_used_are_named(self):
        bad = self.write("bad.yaml", "planing: x\n")
        done, _ = self.run_against([chat_reply("x")], "--prompts", bad)
        self.assert_one_clear_line(done, "bad.yaml", "line 1", "did you mean 'planning'?")
        done, _ = self.run_against([chat_reply("x")], "--answer-schema", bad)
        self.assert_one_clear_line(done, "bad.yaml", "line 1")
        done, _ = self.run_against([chat_reply("x")], "--image", bad)
        self.assert_one_clear_line(done, "--image", "bad.yaml", "PNG")
        done, _ = self.run_against([chat_reply("x")], "--structured")
        self.assert_one_clear_line(done, "structured is for code agents")


if __name__ == "__main__":
    unittest.main()
