r"""How providers word the refusal of a prompt that is too long: one row a wording, with its public source.

A wording is a regular expression in which ``<limit>`` and the like stand for numbers. It must match at the very start
of a message, and the sentence must end behind it (:data:`_SENTENCE_ENDS`), so that a text which merely begins like a
refusal, or quotes one, is none. Letters match in either case, an apostrophe may be curly, back-ticks may be missing.
Every repetition is bounded and none stands inside another but in a number: matching is linear.

- ``<limit>``: the most that the provider takes;
- ``<requested>``: all that was asked for, with the completion where the provider counts it;
- ``<prompt>``: the prompt alone; ``<completion>``: what was reserved for the answer; both as the provider counted;
- ``<over>``: how much is too much; ``<number>``: nothing of interest;
- ``<name>``: a model, an organisation, a tier: one word, so that no sentence can hide in it.

A limit in characters or bytes gets no name, because every number that is reported is in tokens.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

__all__ = ["CONTEXT", "RATES", "REQUEST", "Wording", "compiled"]


class Wording(NamedTuple):
    """One published wording: whose it is, how it reads, and where it can be read."""

    provider: str
    text: str
    source: str


_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,5}|[0-9]{1,15})"
_NAME = r"[^\s'\"()]{1,200}"
_PLACE = re.compile("<(limit|requested|prompt|completion|over|number|name)>")
_SENTENCE_ENDS = r"(?=(?: \([^()\n]{0,200}\))?(?:\Z|[.,;\n]))"

_PI = "earendil-works/pi packages/ai/src/utils/overflow.ts"
_SEEN = "recorded in the tests of public clients"
_AGENTS = "danny-avila/agents docs/context-overflow-signatures.md"

CONTEXT = (
    # OpenAI, and the many who word it as OpenAI does: Azure, DeepSeek, vLLM, llama-cpp-python.
    Wording(
        "OpenAI",
        r"This model's maximum context length is <limit> tokens\. However, your [a-z]{1,20} resulted in <prompt> "
        r"tokens",
        "crewAI-examples#121, " + _AGENTS,
    ),
    Wording(
        "OpenAI, DeepSeek, vLLM, OpenRouter",
        r"This (?:model|endpoint)'s maximum context length is <limit> tokens[.,] however,? you requested (?:about )?"
        r"<requested> tokens(?: \((?:<prompt> of text input|[^()\n]{0,160}?<completion> (?:in|for) the "
        r"(?:completion|output))\))?",
        "vllm#20409, langchain#11001, OpenHands#9937, cognee#1061",
    ),
    Wording(
        "vLLM",
        r"This model's maximum context length is <limit> tokens\. However, you requested <prompt> tokens in the "
        r"(?:messages|input for [a-z]{1,20}(?: [a-z]{1,20})?)",
        "BettaFish#386",
    ),
    Wording(
        "vLLM",
        r"This model's maximum context length is <limit> tokens\. However, your request has <prompt> input tokens",
        "vllm serving_engine.py",
    ),
    Wording(
        "vLLM",
        r"This model's maximum context length is <limit> tokens\. However, you requested <completion> output tokens "
        r"and your prompt contains at least <prompt> input tokens",
        "vllm#42474",
    ),
    Wording(
        "vLLM",
        r"'max_tokens' or 'max_completion_tokens' is too large: <completion>\. This model's maximum context length "
        r"is <limit> tokens and your request has <prompt> input tokens",
        "vllm serving_engine.py",
    ),
    Wording(
        "vLLM",
        r"You passed (?:<prompt> input tokens|<number> input characters) and requested <completion> output tokens\. "
        r"However, the model's context length is only <limit> tokens",
        "vllm serving_engine.py, AgentTeams#346",
    ),
    Wording(
        "vLLM, with pictures",
        r"The (?:decoder |encoder )?prompt \(total length <prompt>\) is too long to fit into the model \(context "
        r"length <limit>\)",
        "vllm#12165",
    ),
    Wording(
        "vLLM",
        r"The (?:decoder |encoder )?prompt \(length <prompt>\) is longer than the maximum model length of <limit>",
        "vllm v1 processor",
    ),
    Wording("OpenAI", r"Your input exceeds the context window of this model", _PI),
    Wording(
        "OpenAI",
        r"Input tokens exceed the configured limit of <limit> tokens(?:\. Your messages resulted in <prompt> tokens)?",
        "cline#5474",
    ),
    Wording("DeepSeek", r"Input tokens? exceeds? the limit", "DeepSeek, under the code quota_limit_reached"),
    # Anthropic, also behind Bedrock and Vertex AI.
    Wording("Anthropic", r"prompt is too long: <prompt> tokens > <limit> maximum", "pi#102, " + _AGENTS),
    Wording(
        "Anthropic",
        r"input length and `max_tokens` exceed context limit: <prompt> \+ <completion> > <limit>",
        "docker-agent#569, claude-code#228",
    ),
    Wording("Anthropic on Vertex AI, MiniMax", r"prompt is too long", "cc-haha#860"),
    Wording("Bedrock", r"Input is too long(?: for requested model)?", _AGENTS),
    Wording("Bedrock Nova", r"Input Tokens Exceeded: Number of input tokens exceeds maximum length", _AGENTS),
    Wording(
        "Bedrock Titan",
        r"Too many input tokens\. Max input tokens: <limit>, request input token count: <prompt>\s{0,2}",
        "pkdone/paul-genai-test-tools-ts bedrock error patterns",
    ),
    Wording(
        "Bedrock Titan, in characters",
        r"Malformed input request: (?:#/(?:inputText|prompt): )?expected maxLength: [0-9]{4,9}, actual: [0-9]{4,9}",
        "pkdone/paul-genai-test-tools-ts bedrock error patterns",
    ),
    Wording(
        "Google",
        r"The input token count(?: \(<prompt>\))? exceeds the maximum number of tokens allowed(?: \(?<limit>\)?)?",
        "gemini-cli#6678, " + _AGENTS,
    ),
    Wording(
        "Vertex AI",
        r"Unable to submit request because the input token count is <prompt> but (?:the )?model (?:only )?supports "
        r"up to <limit>",
        _SEEN,
    ),
    Wording(
        "xAI", r"This model's maximum prompt length is <limit> but the request contains <requested> tokens", _AGENTS
    ),
    Wording(
        "Mistral",
        r"Prompt contains <prompt> tokens(?: and <number> draft tokens)?, too large for model with <limit> maximum "
        r"context length",
        _AGENTS,
    ),
    Wording("Mistral", r"Prompt <prompt> > <limit> maximum context length", _SEEN),
    Wording("Perplexity", r"The total length of all messages is too long", "litellm#21647"),
    Wording(
        "Poolside, Volcengine",
        r"Input length <prompt> exceeds the maximum (?:allowed )?(?:input )?length (?:of )?<limit>(?: tokens)?",
        _PI,
    ),
    Wording("DeepInfra", r"Requested input length <prompt> exceeds maximum input length <limit>", "langchain#25671"),
    Wording(
        "SGLang",
        r"Input length \(<prompt>(?: tokens)?\) exceeds (?:the maximum allowed|model's maximum context) length "
        r"\(<limit>(?: tokens)?\)",
        "sglang#4048",
    ),
    Wording(
        "Together, SGLang",
        r"The input \(<prompt> tokens\) is longer than the model's context length \(<limit> tokens\)",
        "Qwen3#1321",
    ),
    Wording(
        "SGLang",
        r"Requested token count exceeds the model's maximum context length of <limit> tokens(?:\. You requested a "
        r"total of <requested> tokens: <prompt> tokens from the input messages and <completion> tokens for the "
        r"completion)?",
        _PI,
    ),
    Wording(
        "TGI, Together",
        r"(?:Input validation error: )?`inputs` tokens \+ `max_new_tokens` must be <= <limit>\. Given: <prompt> "
        r"`inputs` tokens and <completion> `max_new_tokens`",
        "stanford-crfm/helm#2079",
    ),
    Wording(
        "TGI",
        r"(?:Input validation error: )?`inputs` must have less than <limit> tokens\. Given: <prompt>",
        "meta-llama#1103",
    ),
    Wording(
        "llama.cpp, Ollama",
        r"(?:the )?request \(<prompt> tokens\) exceeds the available context size \(<limit> tokens\)",
        "ItzCrazyKns/Vane#1031",
    ),
    Wording("llama.cpp", r"the request exceeds the available context size", _PI),
    Wording(
        "llama-cpp-python",
        r"Requested tokens(?: \(<prompt>\))? exceed context window of <limit>",
        "llama-cpp-python#120",
    ),
    Wording(
        "LM Studio",
        r"Trying to keep the first <prompt> tokens when (?:the )?context (?:the )?overflows\. However, the model is "
        r"loaded with (?:a )?context length of only <limit> tokens",
        "lmstudio-bug-tracker#546",
    ),
    Wording("LM Studio", r"Cannot truncate prompt with n_keep \(<prompt>\) >= n_ctx \(<limit>\)", "opencode#11141"),
    Wording(
        "LM Studio",
        r"The number of tokens to keep from the initial prompt is greater than the context length",
        "lmstudio-bug-tracker#2256",
    ),
    Wording("LM Studio", r"Input length <prompt> exceeds context length <limit>", "lmstudio-ai/examples#29"),
    Wording("LM Studio", r"Context size has been exceeded", "lmstudio-bug-tracker#2339"),
    Wording("Ollama", r"prompt too long; exceeded max context length by <number> tokens", _PI),
    Wording("Ollama", r"the input length exceeds the context length", "ollama server, answers 400 and older 500"),
    Wording(
        "Cerebras",
        r"Please reduce the length of the messages or completion\. Current length is <requested> while limit is "
        r"<limit>",
        "cline#5140, litellm#17587",
    ),
    Wording("Groq", r"Please reduce the length of the messages or completion", "OpenHands#1902"),
    Wording(
        "Fireworks", r"The prompt is too long: <prompt>, model maximum context length: <limit>", "fw-ai/cookbook#134"
    ),
    Wording(
        "Moonshot",
        r"(?:Invalid request: )?Your request exceeded model token limit ?: <limit>(?: \(requested: <requested>\))?",
        "kimi-cli#2011",
    ),
    Wording("Moonshot", r"Input token length too long", "platform.moonshot.ai error table"),
    Wording("Moonshot", r"model max length exceeded, max length: ?<limit>", "MoonshotAI-Cookbook#18"),
    Wording(
        "Qwen (DashScope)",
        r"(?:<400> InternalError\.Algo\.InvalidParameter: )?Range of input length should be \[[01], <limit>\]",
        "qwen-code#98",
    ),
    Wording("Zhipu", r"Prompt (?:exceeds max length|超长)", "zeroclaw#4124"),
    Wording("Zhipu", r"tokens in request more than max tokens allowed", "opencode#27629"),
    Wording("MiniMax", r"(?:invalid params, )?context window exceeds limit", _PI),
    Wording(
        "Volcengine",
        r"Total tokens of (?:image|multi-modal content) and text exceed max message tokens",
        "bytedance/deer-flow issues",
    ),
    Wording("Baidu", r"Prompt tokens too long", "cloud.baidu.com Qianfan error 336103"),
    Wording(
        "Cohere",
        r"too many tokens: size limit exceeded by <over> tokens(?:\.(?: Try using shorter or fewer inputs\.)? The "
        r"limit for this model is <limit> tokens)?",
        "docs.cohere.com/reference/errors",
    ),
    Wording(
        "Cohere",
        r"too many tokens: total number of tokens in the prompt cannot exceed <limit> - received <prompt>",
        "docs.cohere.com/reference/errors",
    ),
    Wording(
        "Cohere",
        r"too many tokens: total number of tokens \(prompt and prediction\) cannot exceed <limit> - received "
        r"<requested>",
        "cohere-ai/sandbox-topically#4",
    ),
    Wording("AI21", r"Request too many tokens: <prompt> \+ <completion> > <limit>", "stanford-crfm/helm#349"),
    Wording(
        "watsonx",
        r"(?:Invalid input argument for Model '[^'\n]{1,200}': )?the number of input tokens <prompt> cannot exceed "
        r"the total tokens limit <limit> for this model",
        _SEEN,
    ),
    Wording(
        "Databricks",
        r"(?:Error: |Bad request: rpc error: code = InvalidArgument desc = )?prompt token count \(<prompt>\)(?: \+ "
        r"max output tokens \(<completion>\))? cannot exceed <limit>",
        "mlflow gateway tests, answers 500",
    ),
    Wording(
        "SambaNova",
        r"The maximum context length of <name> is <limit>\. However, answering your request will take <requested> "
        r"tokens",
        _SEEN,
    ),
    Wording(
        "Cloudflare",
        r"(?:[0-9]{4}: )?(?:AiError: )?(?:Ai: )?The estimated number of input and maximum output tokens "
        r"\(<requested>\) exceeded this model context window limit \(<limit>\)",
        "Workers AI errors 3010 and 5021, answers 413",
    ),
    Wording("GitHub Copilot", r"prompt token count of <prompt> exceeds the limit of <limit>", "copilot-more#35"),
    Wording("LiteLLM", r"Context Window exceeded for given call", "opencode#44888"),
    Wording("Bedrock Llama and others", r"This model's maximum context length is <limit> tokens", _AGENTS),
)
"""The prompt, alone or with the room for the answer, does not fit the model's context."""

REQUEST = (
    Wording("Anthropic", r"Request exceeds the maximum size", _PI),
    Wording(
        "Anthropic, Bedrock",
        r"too many total text bytes(?:: <number> > <number>)?",
        "archytas#53, strands-agents/sdk-python bedrock model",
    ),
    Wording("Groq", r"Request Entity Too Large", "Groq, under the code request_too_large"),
    Wording("Google", r"Request payload size exceeds the limit: [0-9]{1,15} bytes", _SEEN),
    Wording(
        "xAI, over gRPC",
        r"Sent message larger than max \([0-9]{1,15} vs\. [0-9]{1,15}\)",
        _SEEN,
    ),
    Wording(
        "GitHub Models",
        r"Request body too large for <name> model\. Max size: <limit> tokens",
        "GitHub Models, answers 413",
    ),
    Wording(
        "OpenAI embeddings",
        r"Requested <requested> tokens, max <limit> tokens per request",
        "ridgesai/ridges-old#75",
    ),
)
"""One request may not be that large, whatever the model's context: a limit in bytes or on a request's tokens."""

RATES = (
    Wording(
        "OpenAI, Azure, Groq",
        r"(?:Request too large|Rate limit reached) for (?:model )?<name>(?: \(for limit <name>\))?"
        r"(?: in (?:organization|project) <name>){0,2}(?: service tier <name>)? on (?:input )?tokens per "
        r"(?:min|minute|day)(?: \(I?T[A-Z]{1,3}\))?: Limit <limit>,(?: Used <number>,)? Requested <requested>",
        "elizaOS/eliza#4040, continue#10218, " + _AGENTS + "; of input alone: " + _SEEN,
    ),
)
"""An allowance of tokens a minute (TPM, of input alone ITPM) or a day (TPD); of output, no shorter prompt would help.

Only what exceeds the whole allowance can never be served.
"""


@cache
def compiled(table: tuple[Wording, ...]) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of a table, compiled when the first error needs them, not at import."""
    return tuple(_pattern(wording.text) for wording in table)


def _pattern(text: str) -> re.Pattern[str]:
    lenient = _PLACE.sub(_filled, text.replace("'s", "['’]s").replace("`", "`?"))
    return re.compile(rf"\A{lenient}{_SENTENCE_ENDS}", re.IGNORECASE)


def _filled(place: re.Match[str]) -> str:
    match place[1]:
        case "name":
            return _NAME
        case "number":
            return _NUMBER
        case name:
            return f"(?P<{name}>{_NUMBER})"
