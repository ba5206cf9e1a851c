"""The audit's parts and its legal moves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contextshift.audit import GRACE, PART_SIZE, AuditStatus, Entry, lost, pack, render_document, unpack


def test_only_a_prepared_audit_may_still_change():
    assert [status for status in AuditStatus if not status.terminal] == [AuditStatus.PREPARED]


def test_a_prepared_audit_is_lost_a_minute_after_its_deadline_and_an_ended_one_never():
    assert not lost(AuditStatus.PREPARED, 100.0, 100.0 + GRACE)
    assert lost(AuditStatus.PREPARED, 100.0, 100.1 + GRACE)
    assert not lost(AuditStatus.COMPLETED, 100.0, 1e9)


@given(st.dictionaries(st.text(alphabet=st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8"))))
def test_what_is_packed_is_unpacked(document):
    parts, _ = pack(document)
    assert unpack(b"".join(parts)) == document


def test_b82_a_large_audit_becomes_parts_that_a_store_takes():
    import random

    noise = random.Random(7).randbytes(1_500_000).hex()
    parts, sha = pack({"noise": noise})
    assert len(parts) > 1
    assert all(len(part) <= PART_SIZE for part in parts)
    assert pack({"noise": noise}) == (parts, sha)


ENTRY = Entry("m0", "history", "user", 0, 3, True, "fits", "g0", "héllo", {"name": "n"})


def test_audit_content_decides_what_is_kept_of_texts():
    assert ENTRY.document("full")["content"] == "héllo"
    hashed = ENTRY.document("hashes")
    assert set(hashed["content"]) == set(hashed["fields"]) == {"sha256"}
    nothing = ENTRY.document("none")
    assert nothing["content"] is None
    assert nothing["fields"] is None
    assert all(ENTRY.document(how)["tokens"] == 3 for how in ("full", "hashes", "none"))


def test_include_selects_texts_and_rendered_messages():
    document = {"entries": [ENTRY.document("full")], "messages": [{"entry": "m0"}], "action": "none"}
    bare = render_document(document, frozenset())
    assert bare["messages"] == [{"entry": "m0"}]
    assert not {"content", "fields"} & bare["entries"][0].keys()
    whole = render_document(document, {"content", "messages"})
    assert whole["messages"] == [{"role": "user", "content": "héllo", "name": "n"}]
    assert whole["entries"][0]["content"] == "héllo"
