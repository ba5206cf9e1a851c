"""The script-aware estimate: its laws, and that it is safe on text whose exact counts are written down here."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextshift.estimate import IMAGE_CAP, ChatOverhead, EstimateCounter, estimate_text
from contextshift.tokens import TokenCounter

count = EstimateCounter()
TEXT = st.text(st.characters(), max_size=80)  # any code point, lone surrogates too

# Text, and the largest count of o200k, cl100k (tiktoken 0.14.0), Llama 3, Qwen 3, DeepSeek V3, Gemma 3, Mistral
# Tekken, GLM 4, Kimi K2 (splintr-rs 0.22.0) and Claude 3 and 4.7 (ctok 1.3.0), November 2026.
SAMPLES = [
    ("The quick brown fox jumps over the lazy dog, and nobody in the village ever found out why it did so.", 34),
    ("Please summarise the attached report in three short paragraphs and list the open questions at the end.", 27),
    (
        "Les élèves de la classe préparent une pièce de théâtre "
        "pour la fête de fin d'année, et tout le monde est invité.",
        43,
    ),
    ("Die Bundesregierung hat gestern einen Gesetzentwurf zur Änderung der Straßenverkehrsordnung vorgelegt.", 51),
    ("Zażółć gęślą jaźń, a potem wróć do domu, zanim zacznie padać deszcz.", 38),
    ("Съешь же ещё этих мягких французских булок, да выпей чаю, и расскажи, как прошёл день.", 51),
    ("Ταχίστη αλώπηξ βαφής ψημένη γη, δρασκελίζει υπέρ νωθρού κυνός.", 61),
    ("敏捷的棕色狐狸跳过了那只懒狗，村里没有人知道它为什么这样做。", 46),
    ("吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。", 39),
    ("다람쥐 헌 쳇바퀴에 타고파. 오늘은 날씨가 좋아서 산책을 나갔습니다.", 50),
    ("كل إنسان يولد حرا ومتساويا في الكرامة والحقوق، وهو قد وهب العقل والوجدان.", 52),
    ("כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.", 56),
    ("सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।", 84),
    ("มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ", 65),
    ("Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi.", 45),
    (
        "def total(rows: list[dict[str, int]]) -> int:\n"
        '    return sum(row["price"] * row.get("count", 1) for row in rows)\n',
        48,
    ),
    ('{"id":48213,"name":"ann","tags":["a","b"],"score":0.731,"created":"2026-03-14T09:26:53Z","parent":null}', 56),
    ("3f2b8c9e4d1a7056b8e2f4c6d9a1b3e5f7092847a6c5d4e3", 48),
    ("👍🏽 🎉🎉 👩‍💻 🚀 ❤️ 🇫🇷", 39),
    ("SELECT u.id, COUNT(*) FROM users u JOIN orders o ON o.user_id = u.id WHERE o.total > 100 GROUP BY u.id;", 59),
]


def size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def test_it_is_a_token_counter_that_says_it_is_approximate() -> None:
    assert isinstance(count, TokenCounter)
    assert count.profile.name == "estimate"
    assert count.profile.approximate


@pytest.mark.parametrize(("text", "most"), SAMPLES)
def test_it_is_not_under_the_count_of_any_tokenizer(text: str, most: int) -> None:
    assert estimate_text(text) >= most


@pytest.mark.parametrize(("text", "most"), SAMPLES)
def test_it_is_not_idly_far_over_the_largest_count(text: str, most: int) -> None:
    assert estimate_text(text) <= 2.3 * most + 4


@settings(deadline=None)
@given(TEXT)
def test_it_is_bounded_by_the_bytes(text: str) -> None:
    assert 0 <= estimate_text(text) <= size(text) + 2
    assert bool(text) == bool(estimate_text(text))


@settings(deadline=None)
@given(TEXT, TEXT)
def test_more_text_never_counts_less(start: str, rest: str) -> None:
    assert estimate_text(start) <= estimate_text(start + rest)


@settings(deadline=None)
@given(TEXT, st.integers(-1, 100))
def test_a_cut_is_a_prefix_of_at_most_the_limit(text: str, limit: int) -> None:
    short = count.cut(text, limit)
    assert text.startswith(short)
    assert count.text(short) <= max(limit, 0)
    if count.text(text) <= limit:
        assert short == text


@settings(deadline=None)
@given(st.text(st.characters(codec="ascii", exclude_characters="\r\n"), min_size=1, max_size=80), st.integers(1, 40))
def test_a_cut_of_plain_text_is_the_longest_there_is_or_ends_at_an_edge(text: str, limit: int) -> None:
    short = count.cut(text, limit)
    longest = next(end for end in range(len(text), -1, -1) if count.text(text[:end]) <= limit)
    assert short == text[:longest] or (text[len(short)].isspace() and 2 * len(short) >= longest)


@settings(deadline=None)
@given(st.lists(TEXT, max_size=4))
def test_parts_of_a_message_add_up(texts: list[str]) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}
    assert count(message) == ChatOverhead().message + sum(map(estimate_text, texts))


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, "^" * 1_000_000, " " * 1_000_000, "कक" * 170_000, "\ud800" * 330_000]
)
def test_a_megabyte_of_one_thing_is_estimated_and_cut(text: str) -> None:
    """How fast is the benchmark's to say; a quadratic step would not end here."""
    assert count.text(count.cut(text, 100_000)) <= 100_000 < count.text(text)


def test_base64_images_audio_and_files_are_not_text() -> None:
    data = base64.b64encode(bytes(225_000)).decode()
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + data}}
    message = {"role": "user", "content": [{"type": "text", "text": "what is this"}, image]}
    assert IMAGE_CAP < count(message) < IMAGE_CAP + 40
    audio = {"type": "input_audio", "input_audio": {"data": data, "format": "mp3"}}
    assert count({"role": "user", "content": [audio]}) < 3_000


def test_calls_names_and_reasoning_count() -> None:
    bare = count({"role": "assistant", "content": None})
    called = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": '{"a":1}'}}]}
    assert count(called) > bare + ChatOverhead().call
    assert count({"role": "assistant", "content": None, "name": "ann"}) > bare
    assert count({"role": "assistant", "content": None, "reasoning_content": "hm, let me think"}) > bare


def test_tools_and_schemas_are_fixed_costs() -> None:
    tool: dict[str, Any] = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    plain = count.fixed({"messages": []})
    assert plain == ChatOverhead().priming
    assert count.fixed({"tools": [tool]}) > plain + ChatOverhead().tools
    assert count.fixed({"tools": [tool, tool]}) > count.fixed({"tools": [tool]})
    assert count.fixed({"functions": [tool["function"]]}) > plain
    assert count.fixed({"response_format": schema}) > plain
    assert count.fixed({"response_format": {"type": "text"}, "tools": None}) == plain


def test_a_family_may_narrow_the_overhead() -> None:
    narrow = EstimateCounter("acme", ChatOverhead(message=3, priming=3), margin=0.02)
    assert narrow({"role": "user", "content": ""}) == 3
    assert (narrow.fixed({}), narrow.profile.name, narrow.profile.margin) == (3, "acme", 0.02)
