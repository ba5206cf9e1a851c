"""What providers answer, as recorded in public: messages of overflows, whole answers, and errors that are none."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

_TPM = "Visit https://platform.openai.com/account/rate-limits to learn more."
_OUTPUT = "Please reduce the length of the input prompt or the number of requested output tokens."

CONTEXT_MESSAGES: list[tuple[str, str, tuple[int | None, int | None, int | None]]] = [
    (
        "OpenAI",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 8227 tokens. "
        "Please reduce the length of the messages.",
        (8192, 8227, 8227),
    ),
    (
        "Azure with functions",
        "This model’s maximum context length is 16,385 tokens. However, your messages resulted in 18,108 tokens "
        "(17,900 in the messages, 208 in the functions). Please reduce the length of the messages or functions.",
        (16385, 18108, 18108),
    ),
    (
        "DeepSeek",
        "This model's maximum context length is 1048565 tokens. However, you requested 1179668 tokens (1179652 in the "
        "messages, 16 in the completion). Please reduce the length of the messages or completion.",
        (1048565, 1179668, 1179652),
    ),
    (
        "OpenAI with functions and completion",
        "This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (3500 in the messages, "
        "500 in the functions, and 1000 in the completion). Please reduce the length of the messages.",
        (4097, 5000, 4000),
    ),
    (
        "OpenAI completions",
        "This model's maximum context length is 4097 tokens, however you requested 4569 tokens (3545 in your prompt; "
        "1024 for the completion). Please reduce your prompt; or completion length.",
        (4097, 4569, 3545),
    ),
    (
        "vLLM 0.4",
        "This model's maximum context length is 8192 tokens. However, you requested 15099 tokens in the messages, "
        "Please reduce the length of the messages.",
        (8192, 15099, 15099),
    ),
    (
        "vLLM 0.9",
        "This model's maximum context length is 40960 tokens. However, your request has 73043 input tokens. Please "
        "reduce the length of the input messages. None",
        (40960, 73043, 73043),
    ),
    (
        "vLLM 0.20",
        "This model's maximum context length is 128000 tokens. However, you requested 65535 output tokens and your "
        f"prompt contains at least 62466 input tokens, for a total of at least 128001 tokens. {_OUTPUT}",
        (128000, 128001, 62466),
    ),
    (
        "vLLM 0.10",
        "'max_tokens' or 'max_completion_tokens' is too large: 10000. This model's maximum context length is 16384 "
        "tokens and your request has 9999 input tokens (10000 > 16384 - 9999).",
        (16384, 19999, 9999),
    ),
    (
        "vLLM pooling",
        "You passed 11193 input tokens and requested 0 output tokens. However, the model's context length is only 8192 "
        "tokens, resulting in a maximum input length of 8192 tokens. Please reduce the length of the input prompt.",
        (8192, 11193, 11193),
    ),
    (
        "vLLM v1",
        "The decoder prompt (length 12324) is longer than the maximum model length of 8192. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens.",
        (8192, 12324, 12324),
    ),
    (
        "vLLM 0.16",
        "You passed 74655 input characters and requested 32000 output tokens. However, the model's context length is "
        "only 32000 tokens, resulting in a maximum input length of 0 tokens (at most 0 characters). Please reduce the "
        "length of the input prompt. (parameter=input_text, value=74655)",
        (32000, None, None),
    ),
    (
        "vLLM with pictures",
        "The prompt (total length 25938) is too long to fit into the model (context length 4096). Make sure that "
        "`max_model_len` is no smaller than the number of text tokens plus multimodal tokens.",
        (4096, 25938, 25938),
    ),
    ("DeepInfra", "Requested input length 99009 exceeds maximum input length 8192", (8192, 99009, 99009)),
    ("LM Studio, older", "Input length 6491 exceeds context length 1500", (1500, 6491, 6491)),
    (
        "OpenAI Responses",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        (None, None, None),
    ),
    (
        "OpenAI GPT-5",
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 289650 tokens. Please "
        "reduce the length of the messages.",
        (272000, 289650, 289650),
    ),
    ("DeepSeek, as a quota", "Input token exceed the limit (request id: abc)", (None, None, None)),
    ("Anthropic", "prompt is too long: 208310 tokens > 200000 maximum", (200000, 208310, 208310)),
    (
        "Anthropic with max_tokens",
        "input length and `max_tokens` exceed context limit: 199759 + 20000 > 200000, decrease input length or "
        "`max_tokens` and try again",
        (200000, 219759, 199759),
    ),
    ("Anthropic on Vertex AI", "Prompt is too long", (None, None, None)),
    ("Bedrock Claude", "Input is too long for requested model.", (None, None, None)),
    (
        "Bedrock Claude wrapped",
        "The model returned the following errors: prompt is too long: 207848 tokens > 200000 maximum",
        (200000, 207848, 207848),
    ),
    (
        "Bedrock Nova",
        "The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length"
        ". Please update the input to try again.",
        (None, None, None),
    ),
    (
        "Bedrock Llama",
        "The model returned the following errors: This model's maximum context length is 131072 tokens. Please reduce "
        "the length of the prompt",
        (131072, None, None),
    ),
    (
        "Bedrock Titan",
        "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9279 ",
        (8192, 9279, 9279),
    ),
    (
        "Bedrock Titan, characters",
        "Malformed input request: expected maxLength: 50000, actual: 52611, please reformat your input and try again.",
        (None, None, None),
    ),
    (
        "Google",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        (1048576, 1200000, 1200000),
    ),
    (
        "Google, short",
        "The input token count exceeds the maximum number of tokens allowed (65536).",
        (65536, None, None),
    ),
    (
        "Vertex AI",
        "Unable to submit request because the input token count is 48261 but model only supports up to 32768. Reduce "
        "the input token count and try again.",
        (32768, 48261, 48261),
    ),
    (
        "xAI",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        (131072, 537812, None),
    ),
    (
        "Mistral",
        "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        (32768, 65673, 65673),
    ),
    (
        "Mistral, older",
        "Prompt contains 65673 tokens, too large for model with 32768 maximum context length",
        (32768, 65673, 65673),
    ),
    (
        "another proxy of this kind",
        "This model's maximum context length is 8,192 tokens. However, your messages resulted in 9,120 tokens. "
        "(context_length_exceeded)",
        (8192, 9120, 9120),
    ),
    ("Mistral, short", "Prompt 262280 > 262144 maximum context length", (262144, 262280, 262280)),
    ("Perplexity", "The total length of all messages is too long.", (None, None, None)),
    (
        "OpenRouter",
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 212745 tokens (122163 "
        "of text input, 58582 of tool input, 32000 in the output). Please reduce the length of either one, or use the "
        '"middle-out" transform to compress your prompt automatically.',
        (131072, 212745, 180745),
    ),
    (
        "OpenRouter, no output",
        "This endpoint's maximum context length is 16384 tokens. However, you requested about 94307 tokens (94307 of "
        "text input). Please reduce the length of either one.",
        (16384, 94307, 94307),
    ),
    (
        "OpenRouter, bare",
        "This endpoint's maximum context length is 128000 tokens. However, you requested about 190000 tokens.",
        (128000, 190000, None),
    ),
    (
        "Poolside",
        "Input length 264373 exceeds the maximum allowed input length of 262112 tokens.",
        (262112, 264373, 264373),
    ),
    (
        "SGLang",
        "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
        (59862, 160062, 160062),
    ),
    (
        "SGLang proxies",
        "Input length (265330) exceeds model's maximum context length (262144).",
        (262144, 265330, 265330),
    ),
    (
        "Together",
        "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
        (40960, 61709, 61709),
    ),
    (
        "SGLang total",
        "Requested token count exceeds the model's maximum context length of 65536 tokens. You requested a total of "
        "67298 tokens: 50914 tokens from the input messages and 16384 tokens for the completion.",
        (65536, 67298, 50914),
    ),
    (
        "TGI",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 2019 `inputs` tokens and "
        "30 `max_new_tokens`",
        (2048, 2049, 2019),
    ),
    ("TGI inputs", "Input validation error: `inputs` must have less than 4096 tokens. Given: 4545", (4096, 4545, 4545)),
    (
        "llama.cpp",
        "request (481909 tokens) exceeds the available context size (32768 tokens), try increasing it",
        (32768, 481909, 481909),
    ),
    (
        "llama.cpp, older",
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        (None, None, None),
    ),
    ("llama-cpp-python", "Requested tokens (3012) exceed context window of 512", (512, 3012, 3012)),
    (
        "LM Studio",
        "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough. Try to load the model with a larger context length",
        (4096, 15857, 15857),
    ),
    ("LM Studio 0.4", "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", (7424, 15028, 15028)),
    (
        "LM Studio, no numbers",
        "The number of tokens to keep from the initial prompt is greater than the context length.",
        (None, None, None),
    ),
    ("LM Studio MLX", "Context size has been exceeded.", (None, None, None)),
    ("Ollama", "prompt too long; exceeded max context length by 100918 tokens", (None, None, None)),
    ("Ollama 0.12", "the input length exceeds the context length", (None, None, None)),
    (
        "Cerebras",
        "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000",
        (40000, 42328, None),
    ),
    ("Groq", "Please reduce the length of the messages or completion.", (None, None, None)),
    ("Fireworks", "The prompt is too long: 40177, model maximum context length: 32767", (32767, 40177, 40177)),
    (
        "Moonshot",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)",
        (262144, 269030, None),
    ),
    ("Moonshot, documented", "Input token length too long", (None, None, None)),
    ("Moonshot, older", "model max length exceeded, max length:8192", (8192, None, None)),
    (
        "Qwen",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]",
        (983616, None, None),
    ),
    ("Zhipu", "Prompt exceeds max length", (None, None, None)),
    ("Zhipu 1210", "tokens in request more than max tokens allowed", (None, None, None)),
    ("MiniMax", "invalid params, context window exceeds limit (2013)", (None, None, None)),
    ("Volcengine", "Total tokens of image and text exceed max message tokens. Request id: 0217", (None, None, None)),
    ("Baidu", "Prompt tokens too long", (None, None, None)),
    (
        "Cohere",
        "too many tokens: size limit exceeded by 19296 tokens. Try using shorter or fewer inputs. The limit for this "
        "model is 132000 tokens.",
        (132000, 151296, None),
    ),
    (
        "Cohere, no limit",
        "too many tokens: size limit exceeded by 11326 tokens. Try using shorter inputs.",
        (None,) * 3,
    ),
    (
        "Cohere v1",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter "
        "prompt, or enabling prompt truncating.",
        (4081, 4292, 4292),
    ),
    (
        "Cohere generate",
        "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354. Try using "
        "a shorter prompt or a smaller max_tokens value.",
        (2048, 6354, None),
    ),
    ("AI21", "Request too many tokens: 1999 + 50 > 2048", (2048, 2049, 1999)),
    (
        "watsonx",
        "Invalid input argument for Model 'meta-llama/llama-2-70b-chat': the number of input tokens 4098 cannot exceed "
        "the total tokens limit 4096 for this model",
        (4096, 4098, 4098),
    ),
    (
        "Databricks",
        "Error: prompt token count (29) + max output tokens (4085) cannot exceed 4096. Please reduce the length of "
        "your prompt and/or max output tokens generated.\n",
        (4096, 4114, 29),
    ),
    (
        "SambaNova",
        "The maximum context length of Meta-Llama-3.1-405B-Instruct is 8192. However, answering your request will take "
        "32929 tokens. Please reduce the length of the messages.",
        (8192, 32929, None),
    ),
    (
        "Cloudflare",
        "AiError: Ai: The estimated number of input and maximum output tokens (263008) exceeded this model context "
        "window limit (262144). (c0a7213e-becc-4e3a-b935-eca2f2391732)",
        (262144, 263008, None),
    ),
    ("GitHub Copilot", "prompt token count of 93854 exceeds the limit of 90000", (90000, 93854, 93854)),
    (
        "LiteLLM",
        "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - "
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 8227 tokens.",
        (8192, 8227, 8227),
    ),
    (
        "LiteLLM router",
        "litellm.BadRequestError: Context Window exceeded for given call. No models have context window large enough "
        "for this call.",
        (None, None, None),
    ),
    (
        "LiteLLM, unknown sentence",
        "litellm.BadRequestError: litellm.ContextWindowExceededError: SomeException - the thing is too big",
        (None, None, None),
    ),
]
"""Provider, message, and the limit, the tokens requested and the tokens of the prompt that it gives."""

REQUEST_MESSAGES: list[tuple[str, str, tuple[int | None, int | None, int | None]]] = [
    ("Anthropic", "Request exceeds the maximum size", (None, None, None)),
    ("Groq", "Request Entity Too Large", (None, None, None)),
    ("Google", "Request payload size exceeds the limit: 20971520 bytes.", (None, None, None)),
    ("xAI", "Sent message larger than max (50000056 vs. 20971520)", (None, None, None)),
    (
        "GitHub Models",
        "Request body too large for gpt-4o-mini model. Max size: 8000 tokens.",
        (8000, None, None),
    ),
    ("OpenAI embeddings", "Requested 319487 tokens, max 300000 tokens per request", (300000, 319487, None)),
    (
        "OpenAI TPM",
        "Request too large for gpt-5-nano in organization org-test on tokens per min (TPM): Limit 200000, Requested "
        f"480002. The input or output tokens must be reduced in order to run successfully. {_TPM}",
        (200000, 480002, None),
    ),
    (
        "Groq TPM",
        "Request too large for model `openai/gpt-oss-20b` in organization `org_01` service tier `on_demand` on tokens "
        "per minute (TPM): Limit 8000, Requested 8457, please reduce your message size and try again.",
        (8000, 8457, None),
    ),
    (
        "Groq ITPM",
        "Request too large for model `qwen/qwen3.8-27b` in organization `org_01` service tier `on_demand` on input "
        "tokens per minute (ITPM): Limit 7000, Requested 7398, please reduce your message size and try again.",
        (7000, 7398, None),
    ),
    ("Anthropic's bytes", "too many total text bytes: 27000000 > 9000000", (None, None, None)),
    ("Bedrock's bytes", "The model returned the following errors: too many total text bytes", (None, None, None)),
    (
        "Groq TPD",
        "Rate limit reached for model `llama-3.3-70b-versatile` in organization `org_01` service tier `on_demand` on "
        "tokens per day (TPD): Limit 100000, Used 440, Requested 120007. Please try again in 6m26.751s.",
        (100000, 120007, None),
    ),
]


def _openrouter(message: str) -> Mapping[str, Any]:
    raw = json.dumps({"error": {"message": message, "type": "invalid_request_error"}})
    metadata = {"raw": raw, "provider_name": "Somebody"}
    return {"error": {"code": 400, "message": "Provider returned error", "metadata": metadata}, "user_id": "u"}


SHAPES: dict[str, Callable[[str], object]] = {
    "OpenAI": lambda m: {"error": {"message": m, "type": "invalid_request_error", "param": "messages", "code": None}},
    "text under error": lambda m: {"code": "Client specified an invalid argument", "error": m},
    "vLLM": lambda m: {"object": "error", "message": m, "type": "BadRequestError", "param": None, "code": 400},
    "FastAPI": lambda m: {"detail": m},
    "FastAPI around an error": lambda m: {"detail": {"error": {"message": m, "code": 400}}},
    "Anthropic": lambda m: {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": m},
        "request_id": "r",
    },
    "Google": lambda m: {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": m}},
    "Google, in a list": lambda m: [{"error": {"code": 400, "message": m, "status": "INVALID_ARGUMENT"}}],
    "Bedrock": lambda m: {"message": m, "__type": "ValidationException"},
    "Bedrock, an event": lambda m: {"validationException": {"message": m}},
    "Mistral": lambda m: {"object": "error", "message": m, "type": "invalid_request_invalid_args", "code": "3051"},
    "OpenRouter": _openrouter,
    "JSON as text": lambda m: {"error": json.dumps({"error": {"code": 400, "message": m}})},
    "an SDK's text": lambda m: {"error": {"message": "400 " + json.dumps({"error": {"message": m}})}},
    "watsonx": lambda m: {"errors": [{"code": "invalid_input_argument", "message": m}], "status_code": 400},
    "MiniMax": lambda m: {"base_resp": {"status_code": 2013, "status_msg": m}},
    "Cohere": lambda m: {"id": "bda42bf8", "message": m},
    "Responses event": lambda m: {"type": "response.failed", "response": {"status": "failed", "error": {"message": m}}},
    "chunk of a stream": lambda m: {
        "id": "gen",
        "object": "chat.completion.chunk",
        "choices": [],
        "error": {"message": m},
    },
    "not JSON": lambda m: m,
}
"""Every way in which a message is packed."""

OTHER_ERRORS: list[tuple[str, int, str, str | None]] = [
    (
        "max_tokens, OpenAI",
        400,
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, "
        "whereas you provided 100000.",
        "invalid_value",
    ),
    (
        "max_tokens, Anthropic",
        400,
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5",
        None,
    ),
    (
        "max_tokens, Bedrock",
        400,
        "The maximum tokens you requested exceeds the model limit of 10000. Try again with a "
        "maximum tokens value that is lower than 10000.",
        None,
    ),
    (
        "max_tokens, Cohere",
        400,
        "too many tokens: max tokens must be less than or equal to 4096, the maximum output length "
        "for this model - received 1000000.",
        None,
    ),
    (
        "max_tokens, Databricks",
        400,
        "Bad request: rpc error: code = InvalidArgument desc = max_tokens (10000) cannot exceed "
        "8192. Please reduce the length of max output tokens generated.",
        None,
    ),
    ("max_tokens, TGI", 422, "Input validation error: `max_new_tokens` must be <= 192. Given: 2000", None),
    (
        "another field of Titan",
        400,
        "Malformed input request: #/stopSequences/0: expected maxLength: 20, actual: 30, please "
        "reformat your input and try again.",
        None,
    ),
    (
        "a field too long",
        400,
        "Invalid 'messages[1].content': string too long. Expected a string with maximum length "
        "1048576, but got a string with length 2117456 instead.",
        "string_above_max_length",
    ),
    (
        "a user too long",
        400,
        "Invalid 'user': string too long. Expected a string with maximum length 64, but got a string "
        "with length 100 instead.",
        "string_above_max_length",
    ),
    (
        "temperature",
        400,
        "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 200.",
        None,
    ),
    (
        "image",
        400,
        "messages.0.content.1.image.source.base64.data: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
        None,
    ),
    (
        "filter",
        400,
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        "content_filter",
    ),
    (
        "quota",
        429,
        "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota",
    ),
    ("DeepSeek's quota", 400, "quota exhausted", "quota_limit_reached"),
    (
        "requests a minute",
        429,
        "Rate limit reached for gpt-4o in organization org-test on requests per min (RPM): Limit "
        "500, Used 500, Requested 501. Please try again in 120ms.",
        "rate_limit_exceeded",
    ),
    (
        "tokens of output a minute",
        429,
        "Request too large for gpt-4o in organization org-test on output tokens per minute (OTPM): Limit 8000, "
        "Requested 16000.",
        "rate_limit_exceeded",
    ),
    (
        "tokens a minute, busy",
        429,
        "Rate limit reached for gpt-4o in organization org-test on tokens per min (TPM): Limit "
        "30000, Used 28000, Requested 4000. Please try again in 4ms.",
        "rate_limit_exceeded",
    ),
    (
        "tokens a minute, Anthropic",
        429,
        "This request would exceed the rate limit for your organization (0dccdde6) of "
        "20,000 input tokens per minute. Please reduce the prompt length or the maximum tokens requested.",
        "rate_limit_error",
    ),
    (
        "tokens a minute, Azure",
        429,
        "Requests to the ChatCompletions_Create Operation under Azure OpenAI API have exceeded "
        "token rate limit of your current OpenAI S0 pricing tier. Please retry after 6 seconds.",
        "429",
    ),
    ("tokens a minute, Bedrock", 429, "Too many tokens, please wait before trying again.", "ThrottlingException"),
    ("tokens a minute, Google", 429, "Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED"),
    (
        "credits, OpenRouter",
        402,
        "This request requires more credits, or fewer max_tokens. You requested up to 65536 "
        "tokens, but can only afford 3338.",
        "402",
    ),
    (
        "multimodal, Ollama",
        400,
        '{"error":{"code":400,"message":"Multimodal data provided, but model does not support '
        'multimodal requests.","type":"invalid_request_error"}}',
        None,
    ),
    (
        "parameter, Volcengine",
        400,
        "The parameter `temperature` specified in the request is not valid",
        "InvalidParameter",
    ),
    ("parameter, Zhipu", 400, "API call parameter error", "1210"),
    ("Mistral's other argument", 400, "Expected last role User or Tool for serving but got assistant", "3230"),
]
"""What it is, status, message, code: errors that no shorter prompt cures."""
