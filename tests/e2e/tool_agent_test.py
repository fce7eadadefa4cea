"""The tool-calling agent as a whole: a batch over HTTP, what goes over the wire, no sandbox."""
import json
import unittest

from support import FakeEndpoint, TroupeTest, results
from mock_test import MockTest


def call(name, arguments, call_id=None):
    made = {"name": name, "arguments": arguments}
    return {**made, "id": call_id} if call_id else made


def convert(value):
    return call("convert_units", {"value": value, "from_unit": "km", "to_unit": "m"})


def answer(value):
    return {"tool_calls": [call("final_answer", {"answer": value})]}


def script(**more):
    """The model asks for two conversions at once, mends a call that failed, and answers."""
    return {"rules": [
        {"if_last_contains": "unknown unit", "reply": {"tool_calls": [convert("2")]}},
        {"if_last_contains": "2000.0", "reply": answer(2000)},
        {"reply": {"text": "I convert.", "tool_calls": [
            convert(1),
            call("convert_units", {"value": 2, "from_unit": "kmm", "to_unit": "m"})]}}], **more}


class ToolAgent(MockTest):
    def eval(self, url, *more):
        data = self.write("data.jsonl", "".join(
            json.dumps({"id": f"q{i}", "input": f"How many metres are 2 km? ({i})", "target": "2000"}) + "\n"
            for i in range(12)))
        return self.troupe("eval", data, "--agent", "tool", "--tools", "convert_units", "--model",
                           "openai/m", "--base-url", url + "/v1", "--scorer", "numeric", "--out",
                           "out.db", *more, OPENAI_API_KEY="sk-test")

    def test_a_batch_over_http_scores_what_its_model_answers(self):
        _, url = self.serve(script())
        done = self.eval(url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({end for _, _, end in results(self.folder / "out.db")}, {"success"})
        report = json.loads(self.troupe("report", "out.db", "--json").stdout)
        self.assertEqual(report["accuracy"]["errors_excluded"]["mean"], 1.0)
        self.assertNotIn("executor", report["machine"])
        trace = self.troupe("trace", "out.db", "q3").stdout
        for part in ("action  step 1: convert_units, convert_units\n", "tool_requested  1 convert_units\n",
                     '{"from_unit":"km","to_unit":"m","value":1}', "tool_replied  1\n    1000.0\n",
                     "tool_replied  2 invalid_argument: unknown unit 'kmm'",
                     "action  step 3: final_answer\n", "run_ended  success after 3 turns\n    2000\n"):
            self.assertIn(part, trace)
        again = self.eval(url)  # nothing is left to do
        self.assertEqual(again.returncode, 0, again.stderr)

    def test_calls_in_the_text_do_the_same(self):
        def text(*calls):
            return "Thought: go.\nAction:\n" + json.dumps(list(calls))

        _, url = self.serve({"rules": [
            {"if_last_contains": "2000.0", "reply": text(call("final_answer", {"answer": 2000}))},
            {"reply": text(convert("2"))}]})
        done = self.eval(url, "--tool-calls", "text")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(self.troupe("report", "out.db", "--json").stdout)
        self.assertEqual(report["accuracy"]["errors_excluded"]["mean"], 1.0)
        other = self.eval(url)
        self.assert_one_clear_line(other, "--tool_calls", "text", "native")

    def test_the_other_wire_formats_carry_calls_too(self):
        _, url = self.serve(script())
        for api, model in (("responses", "openai/m"), ("messages", "anthropic/m")):
            done = self.troupe("run", "How many?", "--agent", "tool", "--tools", "convert_units", "--model",
                               model, "--api", api, "--base-url", url + "/v1", "--max-tokens", 500,
                               OPENAI_API_KEY="sk-test", ANTHROPIC_API_KEY="sk-test")
            self.assertEqual((done.stdout, done.returncode), ("2000\n", 0), api + done.stderr)


class ToolWire(TroupeTest):
    def run_against(self, endpoint, *more):
        return self.troupe("run", "How many?", "--agent", "tool", "--tools", "convert_units", "--model",
                           "openai/m", "--base-url", endpoint.url, *more, OPENAI_API_KEY="sk-test")

    @staticmethod
    def reply(*calls):
        return json.dumps({"model": "fake-1", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": None, "tool_calls": [
                {"id": c["id"], "type": "function",
                 "function": {"name": c["name"], "arguments": json.dumps(c["arguments"])}} for c in calls]}}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}})

    def test_every_call_is_answered_by_its_id_in_order(self):
        def say(number, _):
            calls = [{**convert(1), "id": "same"}, {**convert(2), "id": "same"}, call("no_tool", {}, "z")]
            return 200, {}, self.reply(*calls) if number == 1 else self.reply(call("final_answer", {"answer": "x"}, "e"))

        with FakeEndpoint(say) as endpoint:
            done = self.run_against(endpoint, "--quiet")
        self.assertEqual((done.stdout, done.returncode), ("x\n", 0), done.stderr)
        first, second = endpoint.requests
        self.assertEqual([t["function"]["name"] for t in first["tools"]], ["final_answer", "convert_units"])
        self.assertEqual(first["tool_choice"], "required")
        self.assertNotIn("stop", first)
        asked, *answers = second["messages"][-4:]
        ids = [c["id"] for c in asked["tool_calls"]]
        self.assertEqual(len(set(ids)), 3)
        self.assertEqual([(a["role"], a["tool_call_id"]) for a in answers], [("tool", i) for i in ids])
        self.assertEqual([a["content"] for a in answers[:2]], ["1000.0", "2000.0"])
        self.assertIn("there is no tool 'no_tool'", answers[2]["content"])

    def test_a_run_shows_its_calls_live(self):
        def say(number, _):
            return 200, {}, self.reply({**convert(1), "id": "a"} if number == 1 else
                                       call("final_answer", {"answer": 1}, "e"))

        with FakeEndpoint(say) as endpoint:
            done = self.run_against(endpoint, "--tool-choice", "auto")
        self.assertEqual(done.stdout, "1\n", done.stderr)
        self.assertIn('tool convert_units {"from_unit":"km","to_unit":"m","value":1}', done.stderr)
        self.assertIn("1000.0", done.stderr)
        self.assertNotIn("tool_choice", endpoint.requests[0])

    def test_samples_with_files_are_refused_before_anything_runs(self):
        self.write("notes.txt", "x")
        data = self.write("data.jsonl", json.dumps({"id": "s1", "input": "?", "files": {"a.txt": "notes.txt"}}) + "\n")
        done = self.troupe("eval", data, "--agent", "tool", "--model", f"mock/{self.script()}", "--out", "out.db")
        self.assert_one_clear_line(done, "s1", "no sandbox", "--agent code")
        self.assertFalse((self.folder / "out.db").exists())


if __name__ == "__main__":
    unittest.main()
