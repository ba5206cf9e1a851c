"""What refers to an object that a provider keeps: found wherever it stands, and never in what somebody wrote."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contextshift.references import kept_reference, message_reference

keys = st.text(max_size=5) | st.sampled_from(["input", "content", "tools", "text"])
scalars = st.none() | st.booleans() | st.integers() | st.text() | st.just('{"file_id": "f"}')
documents = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))
references = st.sampled_from(
    [
        {"file_id": "f"},
        {"type": "item_reference", "id": "msg_1"},
        {"vector_store_ids": ["vs_1"]},
        {"image_file_id": "f"},
        {"container": "cntr_1"},
        {"container_id": "cntr_1"},
    ]
)
paths = st.lists(st.sampled_from(["input", "content", "tools", "text"]), max_size=4)
written = st.sampled_from(["arguments", "annotations", "metadata", "parameters", "schema"])


@given(documents)
def test_text_is_no_reference(document):
    assert kept_reference(document) is None


@given(documents, references, paths)
def test_a_reference_is_found_however_deep_it_stands(document, reference, path):
    value = reference
    for name in path:
        value = {"other": document, name: [document, value]}
    found = kept_reference(value)
    assert found is not None
    assert found.split(".")[-1] in reference


@given(references, written, paths)
def test_what_a_caller_or_a_model_wrote_is_not_entered(reference, name, path):
    value = {name: reference}
    for outer in path:
        value = {outer: [value]}
    assert kept_reference(value) is None


def test_messages_refer_by_their_parts():
    part = {"type": "file", "file": {"file_id": "f"}}
    assert message_reference([{"role": "user", "content": "file_id"}, {"role": "user", "content": [part]}]) == (
        "messages[1].content[0].file.file_id"
    )
    assert message_reference([{"role": "user", "content": '{"file_id": "f"}', "metadata": {"file_id": "f"}}]) is None
