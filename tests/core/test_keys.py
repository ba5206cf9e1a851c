"""API keys: recognisable, checked, and naming their account."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift.keys import account_hint, check_account_id, hash_key, new_key

accounts = st.from_regex(r"[a-z0-9](?:[a-z0-9_]{0,20}[a-z0-9])?", fullmatch=True)
secrets = st.binary(min_size=20, max_size=20)


@given(accounts, secrets, secrets)
def test_a_key_names_its_account_and_every_secret_makes_another(account, one, other):
    key = new_key(account, lambda _: one)
    assert key.startswith(f"bst-{account}-")
    assert account_hint(key) == account
    assert (new_key(account, lambda _: other) == key) == (one == other)


@given(accounts, secrets, st.data())
def test_a_mistyped_key_gives_no_hint(account, secret, data):
    key = new_key(account, lambda _: secret)
    place = data.draw(st.integers(len(key) - 38, len(key) - 1))
    wrong = data.draw(st.sampled_from([letter for letter in "0123456789abcdef" if letter != key[place]]))
    assert account_hint(key[:place] + wrong + key[place + 1 :]) is None


@pytest.mark.parametrize(
    "text", ["", "sk-local-demo", "bst-acme-short", "bst--" + "0" * 38, "\ud800", "bst-a-" + "0" * 38]
)
def test_any_other_text_gives_no_hint_but_a_hash(text):
    assert account_hint(text) is None
    assert len(hash_key(text)) == 64


@pytest.mark.parametrize("account", ["", "A", "a-b", "_a", "a_", "é", "a" * 65, "a\n"])
def test_an_account_id_that_would_not_fit_into_a_key_is_refused(account):
    with pytest.raises(ValueError, match="account id"):
        check_account_id(account)


def test_a_key_of_an_account_that_cannot_be_gives_no_hint(monkeypatch):
    monkeypatch.setattr("contextshift.keys.check_account_id", lambda account: account)
    for account in ("a" * 65, "_a", "a" * 2_050):
        assert account_hint(new_key(account, lambda _: bytes(20))) is None
    assert account_hint(new_key("a" * 64, lambda _: bytes(20))) == "a" * 64
