"""The accuracy report against a provider's own count endpoint: what is sent there, and what is made of the answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bench_accuracy
from benchmarks.endpoints import ENDPOINTS, Refused, Unsendable, ask
from serving import Upstream, serve

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
PARAMETERS = {"type": "object", "properties": {"at": {"type": "integer"}}}
REQUEST: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "See:"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
            ],
        },
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "a dot"},
        {"role": "user", "content": "And now?"},
    ],
    "tools": [{"type": "function", "function": {"name": "look", "description": "Look.", "parameters": PARAMETERS}}],
    "temperature": 0,
    "max_tokens": 9,
}
SENT: dict[str, Any] = {
    "anthropic": {
        "model": "m",
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "See:"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                ],
            },
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "a dot"}]},
                    {"type": "text", "text": "And now?"},
                ],
            },
        ],
        "tools": [{"name": "look", "description": "Look.", "input_schema": PARAMETERS}],
    },
    "gemini": {
        "generateContentRequest": {
            "model": "models/m",
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {
                    "role": "user",
                    "parts": [{"text": "See:"}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}],
                },
                {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"at": 1}}}]},
                {
                    "role": "user",
                    "parts": [
                        {"functionResponse": {"name": "look", "response": {"result": "a dot"}}},
                        {"text": "And now?"},
                    ],
                },
            ],
            "tools": [
                {"functionDeclarations": [{"name": "look", "description": "Look.", "parametersJsonSchema": PARAMETERS}]}
            ],
        }
    },
    "openai-responses": {
        "model": "m",
        "input": [
            {"role": "system", "content": [{"type": "input_text", "text": "Be brief."}]},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "See:"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
                ],
            },
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "a dot"},
            {"role": "user", "content": [{"type": "input_text", "text": "And now?"}]},
        ],
        "tools": [
            {"type": "function", "name": "look", "description": "Look.", "parameters": PARAMETERS, "strict": False}
        ],
    },
}
PLACES = {
    "anthropic": ("/v1/messages/count_tokens", "x-api-key", "sk-test", "input_tokens"),
    "gemini": ("/v1beta/models/m:countTokens", "x-goog-api-key", "sk-test", "totalTokens"),
    "openai-responses": ("/v1/responses/input_tokens", "authorization", "Bearer sk-test", "input_tokens"),
}


@pytest.mark.parametrize("name", ENDPOINTS)
def test_a_request_is_sent_in_the_providers_own_words(name: str) -> None:
    path, header, value, field = PLACES[name]
    upstream = Upstream(body=json.dumps({field: 321}).encode())
    with serve(upstream) as url:
        assert ask(ENDPOINTS[name], "m", REQUEST, "sk-test", url) == 321
    assert (upstream.last.path, upstream.last.headers[header]) == (path, value)
    assert upstream.last.json == SENT[name]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"type": "auto"}),
        ("required", {"type": "any"}),
        ("none", {"type": "none"}),
        ({"type": "function", "function": {"name": "look"}}, {"type": "tool", "name": "look"}),
    ],
)
def test_anthropic_is_told_the_choice_of_tools_which_it_counts(choice: Any, sent: dict[str, Any]) -> None:
    assert ENDPOINTS["anthropic"].body({**REQUEST, "tool_choice": choice}, "m")["tool_choice"] == sent


def test_openai_is_told_effort_and_format() -> None:
    schema = {"name": "s", "schema": PARAMETERS}
    request = {**REQUEST, "reasoning_effort": "low", "response_format": {"type": "json_schema", "json_schema": schema}}
    body = ENDPOINTS["openai-responses"].body(request, "m")
    assert (body["reasoning"], body["text"]) == ({"effort": "low"}, {"format": {"type": "json_schema", **schema}})


AUDIO = {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]}
BROKEN_CALL = {
    "messages": [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{"}}]}]
}
LINKED = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a/b.png"}}]}]}


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        *((name, AUDIO) for name in ENDPOINTS),
        *((name, LINKED) for name in ENDPOINTS),
        *((name, {"messages": 5}) for name in ENDPOINTS),
        *((name, {**REQUEST, "prediction": {"content": "x"}}) for name in ENDPOINTS),
        ("anthropic", BROKEN_CALL),
        ("gemini", BROKEN_CALL),
        ("gemini", {**REQUEST, "reasoning_effort": "low"}),
    ],
)
def test_what_an_endpoint_has_no_words_for_is_not_sent(name: str, request_: dict[str, Any]) -> None:
    with pytest.raises(Unsendable):
        ask(ENDPOINTS[name], "m", request_, "sk-test", "http://127.0.0.1:9")


def test_a_busy_endpoint_is_asked_again_after_the_time_it_names() -> None:
    upstream, waits = Upstream(status=429, body=b"{}"), list[float]()
    upstream.headers = [("retry-after", "3")]

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            upstream.status, upstream.body = 200, b'{"input_tokens": 5}'

    with serve(upstream) as url:
        assert ask(ENDPOINTS["anthropic"], "m", REQUEST, "sk-test", url, wait) == 5
    assert waits == [3.0, 3.0]


@pytest.mark.parametrize(
    ("status", "body", "asked"),
    [(400, b"{}", 1), (529, b"{}", 4), (200, b"[]", 1), (200, b'{"input_tokens": "7"}', 1), (307, b"", 1)],
)
def test_an_answer_that_is_no_count_is_refused_without_a_word_of_the_request(
    status: int, body: bytes, asked: int
) -> None:
    upstream = Upstream(status=status, headers=[("location", "/elsewhere")], body=body)
    with serve(upstream) as url, pytest.raises(Refused) as caught:
        ask(ENDPOINTS["openai-responses"], "m", REQUEST, "sk-test", url, lambda _: None)
    assert len(upstream.calls) == asked
    assert "brief" not in str(caught.value)
    assert "sk-test" not in str(caught.value)


def test_the_report_stands_on_the_endpoints_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hello = {"messages": [{"role": "user", "content": "hello"}]}
    held_out = {"api": "other", "model": "old", "request": hello, "prompt_tokens": 1, "split": "held-out"}
    path = tmp_path / "requests.jsonl"
    path.write_text("\n".join(map(json.dumps, (hello, held_out, AUDIO))), "utf-8")
    with serve(Upstream(body=b'{"object": "response.input_tokens", "input_tokens": 8}')) as url:
        for name, value in (
            ("BASTION_RECORDINGS", str(path)),
            ("BASTION_COUNT_ENDPOINT", "openai-responses"),
            ("BASTION_COUNT_MODEL", "gpt-4o"),
            ("OPENAI_API_KEY", "sk-test"),
            ("BASTION_COUNT_URL", url),
        ):
            monkeypatch.setenv(name, value)
        bench_accuracy.main()
    printed = capsys.readouterr().out
    assert "1 not sent, a part of type input_audio" in printed
    rows = [line.split() for line in printed.splitlines() if line.startswith("OpenAI responses text")]
    assert [row[3:5] for row in rows] == [["1", "100.0%"]] * 2  # a fit line and a held-out one, both exact
    assert "sk-test" not in printed


@pytest.mark.parametrize(
    "environ",
    [
        {"BASTION_COUNT_ENDPOINT": "cohere"},
        {"BASTION_COUNT_ENDPOINT": "gemini", "BASTION_COUNT_MODEL": "m"},
        {"BASTION_COUNT_ENDPOINT": "gemini", "GEMINI_API_KEY": "k"},
    ],
)
def test_what_is_missing_is_said_before_anything_is_sent(environ: dict[str, str]) -> None:
    with pytest.raises(SystemExit, match="BASTION_COUNT"):
        list(bench_accuracy.counted_there([REQUEST], environ))
