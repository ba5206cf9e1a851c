"""Which errors say that the prompt is too long: laws over any answer, then what providers really send."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contextshift.overflow import LONGEST_MESSAGE, MOST_TOKENS, Overflow, OverflowKind, recognise
from contextshift.overflow_wordings import CONTEXT, RATES, REQUEST, compiled
from core.counting import steps
from core.overflow_answers import CONTEXT_MESSAGES, OTHER_ERRORS, REQUEST_MESSAGES, SHAPES

MESSAGES = [(OverflowKind.CONTEXT, *one) for one in CONTEXT_MESSAGES] + [
    (OverflowKind.REQUEST, *one) for one in REQUEST_MESSAGES
]
SENTENCES = [message for _, _, message, _ in MESSAGES]

keys = st.sampled_from(
    [
        "error",
        "errors",
        "message",
        "detail",
        "metadata",
        "raw",
        "response",
        "code",
        "type",
        "status",
        "choices",
        "n_ctx",
    ]
)
texts = st.text(max_size=40) | st.sampled_from(SENTENCES) | st.sampled_from(['{"error":', "b'{", "[[[[", "Error: " * 9])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys | st.text(max_size=5), inner, max_size=5)
)
counts = st.integers(0, MOST_TOKENS)

ENDLESS: list[object] = []
ENDLESS += [ENDLESS, ENDLESS]


# -- laws ----------------------------------------------------------------------------------------------


@given(st.integers(), documents)
@example(200, {"error": {"code": 10**5000, "type": float("nan")}})
def test_any_answer_is_an_overflow_or_none_and_never_raises(status, document):
    assert isinstance(recognise(status, document), Overflow | None)


OPENINGS = [
    "Invalid value: ",
    "Invalid 'messages[0].name': got ",
    "Unknown parameter: ",
    "messages.3.content: unexpected text ",
    "Content was filtered: ",
    "Tool arguments are not JSON: ",
    "Rate limit reached for requests with prompt ",
    "litellm.BadRequestError: OpenAIException - Invalid value: ",
    "400 Bad Request: cannot parse ",
    "The model returned the following errors: unsupported stop sequence ",
    "'",
    '"',
    "`",
    "«",
    "- ",
]


@given(
    st.sampled_from(SENTENCES),
    st.sampled_from(OPENINGS),
    st.text(max_size=30),
    st.sampled_from(list(SHAPES)),
    st.sampled_from([200, 400, 413, 422, 429, 500]),
)
def test_an_error_that_quotes_an_overflow_is_none(sentence, opening, more, shape, status):
    for message in (f"{opening}{sentence}{more}", f"{opening}{more} '{sentence}'", f'{opening}"{sentence}" {more}'):
        assert recognise(status, SHAPES[shape](message)) is None


PATTERNS = [*compiled(CONTEXT), *compiled(REQUEST), *compiled(RATES)]
WHOLE = [m for m in SENTENCES if {f.end() for p in PATTERNS if (f := p.match(m))} == {len(m)}]
"""Messages of nothing but the provider's one sentence."""


@given(st.sampled_from(WHOLE), st.sampled_from([" is not a function", "'", " of this", "x", " 5", ": no", "“"]))
def test_a_text_that_goes_on_after_the_sentence_is_none(message, more):
    assert recognise(400, {"error": {"message": message}})
    assert recognise(400, {"error": {"message": message + more}}) is None


@given(st.sampled_from(MESSAGES), st.sampled_from(list(SHAPES)))
def test_how_a_message_is_packed_changes_nothing(case, shape):
    kind, _, message, numbers = case
    assert recognise(400, SHAPES[shape](message)) == Overflow(kind, *numbers)


@given(counts, counts)
def test_numbers_are_read_with_and_without_separators(prompt, limit):
    for shown in (f"{prompt} tokens > {limit}", f"{prompt:,} tokens > {limit:,}"):
        found = recognise(400, {"error": {"message": f"prompt is too long: {shown} maximum"}})
        assert found == Overflow(OverflowKind.CONTEXT, limit, prompt, prompt)


@given(counts, counts, counts, st.sampled_from(["{}", "{:,}"]), st.sampled_from([400, 413, 429]))
def test_an_allowance_is_an_overflow_only_when_one_request_exceeds_the_whole_of_it(
    limit, used, requested, form, status
):
    limit_, used_, requested_ = (form.format(number) for number in (limit, used, requested))
    for message in (
        f"Request too large for m in organization o on tokens per min (TPM): Limit {limit_}, Requested {requested_}.",
        f"Rate limit reached for m on tokens per min (TPM): Limit {limit_}, Used {used_}, Requested {requested_}.",
    ):
        found = recognise(status, {"error": {"message": message, "type": "tokens", "code": "rate_limit_exceeded"}})
        assert found == (Overflow(OverflowKind.REQUEST, limit, requested) if requested > limit else None)


@given(st.sampled_from(MESSAGES), st.integers(max_value=599).filter(lambda status: status >= 400))
def test_only_a_status_of_refusal_counts(case, status):
    found = recognise(status, {"error": {"message": case[2]}})
    assert (found is not None) == (status in {400, 413, 422, 424, 429, 500, 502})


@pytest.mark.parametrize(
    "document",
    [
        [{"error": {"message": "x"}}] * 100_000,
        json.loads('{"error":' * 900 + "1" + "}" * 900),
        json.loads("[[" * 400 + "]]" * 400),
        ENDLESS,
        {"error": {"message": "{" * 1_000_000}},
        {"error": {"message": '{"error":' * 100_000}},
        {"error": {"message": "Error: " * 200_000}},
        {"error": {"message": "This model's maximum context length is " + "1" * 500_000}},
        {"error": {"message": "Request too large for " + "(TPM" * 200_000}},
        {"error": {"metadata": {"raw": json.dumps({"error": json.dumps({"error": json.dumps(["x"] * 9999)})})}}},
    ],
    ids=[
        "wide",
        "deep",
        "lists",
        "in itself",
        "brackets",
        "documents",
        "wrappers",
        "digits",
        "near miss",
        "text in text in text",
    ],
)
def test_work_is_bounded_whatever_the_answer_holds(document):
    assert steps(lambda: recognise(400, document)) < 20_000


@pytest.mark.parametrize("wording", [*CONTEXT, *REQUEST, *RATES], ids=lambda wording: wording.text[:40])
def test_every_wording_repeats_within_bounds_has_a_source_and_is_sent_by_somebody(wording):
    assert not re.search(r"(?<!\\)[*+]|,\}", wording.text)
    assert wording.provider
    assert wording.source
    (pattern,) = compiled((wording,))
    assert pattern.pattern.startswith(r"\A")
    unwrapped = [
        re.sub(r"^(The model .*? errors: |400 Bad Request: |litellm\.BadRequestError: )", "", m) for m in SENTENCES
    ]
    assert any(pattern.match(message) for message in unwrapped)


# -- what providers send -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "message", "numbers"), [(k, m, n) for k, _, m, n in MESSAGES], ids=[p for _, p, *_ in MESSAGES]
)
def test_a_providers_own_sentence_is_recognised_with_its_numbers(kind, message, numbers):
    assert recognise(400, {"error": {"message": message}}) == Overflow(kind, *numbers)


@pytest.mark.parametrize(
    ("status", "message", "code"), [one[1:] for one in OTHER_ERRORS], ids=[one[0] for one in OTHER_ERRORS]
)
def test_an_error_that_no_shorter_prompt_cures_is_none(status, message, code):
    for answer in (
        {"error": {"message": message, "code": code}},
        {"message": message, "type": code},
        {"error": message},
    ):
        assert recognise(status, answer) is None


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("context_length_exceeded", OverflowKind.CONTEXT),
        ("model_max_prompt_tokens_exceeded", OverflowKind.CONTEXT),
        ("1261", OverflowKind.CONTEXT),
        ("request_too_large", OverflowKind.REQUEST),
        ("tokens_limit_reached", OverflowKind.REQUEST),
        ("max_tokens_per_request", OverflowKind.REQUEST),
    ],
)
@pytest.mark.parametrize("field", ["code", "type"])
def test_a_structured_code_decides_before_any_wording(code, kind, field):
    assert recognise(400, {"error": {field: code, "message": "Mach es kürzer."}}) == Overflow(kind)
    known = {field: code, "message": "prompt is too long: 9 tokens > 8 maximum"}
    assert recognise(400, {"error": known}) == Overflow(kind, 8, 9, 9)


def test_llama_cpp_gives_its_numbers_as_fields_also_inside_ollamas_text():
    error = {"code": 400, "message": "?", "type": "exceed_context_size_error", "n_prompt_tokens": 2622, "n_ctx": 512}
    overflow = Overflow(OverflowKind.CONTEXT, 512, 2622, 2622)
    assert recognise(400, {"error": error}) == overflow
    assert recognise(400, {"error": json.dumps({"error": error})}) == overflow


@given(st.integers(MOST_TOKENS + 1, 10**15 - 1), counts)
def test_what_cannot_be_a_number_of_tokens_is_not_read(absurd, limit):
    message = f"prompt is too long: {absurd} tokens > {limit} maximum"
    assert recognise(400, {"error": {"message": message}}) == Overflow(OverflowKind.CONTEXT, limit)
    for prompt in (absurd, 10**400, -1, True, float("nan"), "9"):
        assert recognise(400, {"error": {"message": "x", "n_prompt_tokens": prompt, "n_ctx": 100}}) is None
        assert recognise(400, {"error": {"message": "x", "n_prompt_tokens": 200, "n_ctx": absurd}}) is None


def test_litellm_shows_the_bytes_of_an_answer_with_more_text_behind():
    inner = json.dumps({"type": "error", "error": {"message": "prompt is too long: 209303 tokens > 200000 maximum"}})
    message = f"litellm.BadRequestError: AnthropicException - b'{inner}'\nReceived Model Group=claude"
    found = recognise(400, {"error": {"message": message, "type": None, "param": None, "code": "400"}})
    assert found == Overflow(OverflowKind.CONTEXT, 200000, 209303, 209303)


def test_litellm_shows_an_answer_as_text_too():
    inner = json.dumps({"error": {"message": "prompt is too long: 209303 tokens > 200000 maximum"}})
    for behind in ("", "\nReceived Model Group=m\nAvailable Model Group Fallbacks=None", ". LiteLLM Retried: 2 times"):
        message = f"litellm.BadRequestError: OpenAIException - {inner}{behind}"
        assert recognise(400, {"error": {"message": message}}) == Overflow(OverflowKind.CONTEXT, 200000, 209303, 209303)


@given(
    st.sampled_from(SENTENCES),
    st.sampled_from(
        [
            " is not of type 'string' - 'user'",
            " is not a valid tool argument",
            " ",
            "\nReceived Model Group=m",
            "'",
            ", 5]",
        ]
    ),
    st.sampled_from(["", "400 ", "litellm.BadRequestError: OpenAIException - "]),
    st.sampled_from(list(SHAPES)),
)
def test_what_a_caller_sent_and_an_error_quotes_is_none(sentence, behind, wrapper, shape):
    """The style of jsonschema: the value itself, and what is wrong with it."""
    quoted = [json.dumps([sentence]), repr([sentence]), json.dumps([{"error": {"message": sentence}}])]
    if not (behind.isspace() or "Received" in behind):
        document = json.dumps({"error": {"message": sentence}})
        quoted += [document, repr({"error": {"message": sentence}})]
        quoted += [f"b'{document}'"] if behind != "'" else []
    for value in quoted:
        assert recognise(400, SHAPES[shape](f"{wrapper}{value}{behind}")) is None


B45 = "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit {}, Requested {}. The input or"


@pytest.mark.parametrize(
    ("status", "limit", "requested", "kind"),
    [
        (429, 200000, 480002, OverflowKind.REQUEST),
        (429, 200000, 150000, None),
        (413, 8000, 8457, OverflowKind.REQUEST),
        (429, 200000, 200000, None),
    ],
)
def test_b45_a_refusal_that_waiting_cannot_cure_is_no_rate_limit(status, limit, requested, kind):
    error = {"message": B45.format(limit, requested), "type": "tokens", "param": None, "code": "rate_limit_exceeded"}
    found = recognise(status, {"error": error})
    assert found == (None if kind is None else Overflow(kind, limit, requested))


def test_b48_an_error_inside_a_successful_stream_is_recognised():
    message = "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens."
    event = {"id": "gen-1", "choices": [], "error": {"code": 400, "message": message}}
    assert recognise(200, event) == Overflow(OverflowKind.CONTEXT, 8192, 9000)


@pytest.mark.parametrize(
    ("code", "known"), [(400, True), (502, True), ("400", True), ("server_error", True), (401, False)]
)
def test_inside_a_200_the_errors_own_status_counts(code, known):
    event = {"error": {"code": code, "message": "Input is too long for requested model."}}
    assert (recognise(200, event) is not None) == known


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": [{"message": {"content": "prompt is too long"}, "finish_reason": "stop"}]},
        {"message": {"role": "assistant", "content": "prompt is too long"}, "done": True},
        {"response": "prompt is too long", "done": True},
        {"type": "response.completed", "response": {"error": None, "metadata": {"raw": "prompt is too long"}}},
        {"content": [{"type": "text", "text": "prompt is too long"}], "type": "message"},
        {"error": {"message": "Bad tool", "param": "prompt is too long", "input": "prompt is too long"}},
        {"detail": [{"loc": ["body"], "msg": "Field required", "input": "prompt is too long"}]},
        {},
        [],
        None,
        "",
        "<html><body>413 Request Entity Too Large</body></html>",
    ],
)
def test_what_a_model_or_a_caller_wrote_is_never_an_error(answer):
    assert recognise(200, answer) is None
    assert recognise(400, answer) is None


def test_a_sentence_beyond_the_longest_message_is_not_looked_for():
    assert recognise(400, " " + "x" * LONGEST_MESSAGE + ". prompt is too long") is None


def test_the_completion_is_what_the_prompt_leaves_of_the_request():
    assert Overflow(OverflowKind.CONTEXT, 100, 130, 80).completion == 50
    assert Overflow(OverflowKind.CONTEXT, 100, 130).completion is None
