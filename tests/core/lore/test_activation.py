"""What a conversation wakes in its lorebooks: laws, then the cases."""

import json
from dataclasses import replace
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextshift.lore.activation_ports import LoreSettings, Turn
from contextshift.lore.model import Book, Entry, Place, SecondaryLogic
from contextshift.reasons import ALL_REASONS
from core.lore.waking import book, count, entry, inside, reasons, search, wake

words = st.sampled_from(["fire", "кот", "élan", "/fi.e/i", "/[/", "slow", "/slow/", "ice", ":)", "{{user}}"])
contents = st.lists(st.sampled_from(["fire", "ice", "кот", "élan", "and", "", "{{x}}"]), max_size=6).map(" ".join)
heads = st.sampled_from(
    [
        "",
        "",
        "",
        "@@activate\n",
        "@@dont_activate\n",
        "@@depth 1\n",
        "@@ignore_on_max_context\n",
        "@@scan_depth 0\n",
        "@@keep_activate_after_match\n",
        "@@dont_activate_after_match\n",
        "@@is_greeting 1\n",
        "@@unheard_of\n",
        "@@activate_only_every 2\n",
        "@@exclude_keys ice\n",
        "@@additional_keys fire, ice\n",
    ]
)
few = st.sampled_from([0, 0, 0, 1, 2])
flags = st.booleans()
rarely = st.sampled_from([False, False, False, True])
entries = st.builds(
    lambda head, content, **fields: Entry(id="", content=head + content, **fields),
    heads,
    contents,
    keys=st.lists(words, max_size=3).map(tuple),
    secondary_keys=st.just(()) | st.lists(words, max_size=2).map(tuple),
    secondary_logic=st.sampled_from(SecondaryLogic),
    constant=rarely,
    enabled=st.sampled_from([True, True, True, False]),
    use_regex=rarely,
    match_whole_words=st.none() | flags,
    case_sensitive=st.none() | flags,
    place=st.sampled_from(Place),
    insertion_order=st.integers(0, 5),
    priority=st.none() | st.integers(0, 5),
    exclude_recursion=rarely,
    prevent_recursion=rarely,
    delay_until_recursion=few,
    probability=st.sampled_from([0, 50, 100, 100, 100]),
    sticky=few,
    cooldown=few,
    delay=few,
    groups=st.sampled_from([(), (), (), ("g",), ("g", "h")]),
    group_override=rarely,
    group_weight=st.sampled_from([0, 1, 100]),
    ignore_budget=rarely,
    scan_depth=st.sampled_from([None, None, 0, 1, 3]),
)


def numbered(id: str, found: list[Entry], settings: dict) -> Book:
    return Book(id=id, entries=tuple(replace(one, id=str(number)) for number, one in enumerate(found)), **settings)


limits = st.none() | st.integers(0, 6)
book_settings = st.fixed_dictionaries(
    {
        "scan_depth": st.none() | st.integers(0, 3),
        "token_budget": limits,
        "recursive_scanning": flags,
        "recursion_limit": st.none() | st.integers(0, 3),
        "stop_at_budget": rarely,
        "match_whole_words": flags,
    }
)
scopes = st.lists(st.tuples(st.lists(entries, max_size=6), book_settings), max_size=3).map(
    lambda books: [numbered(f"b{number}", *one) for number, one in enumerate(books)]
)
chats = st.lists(contents, max_size=4)
account = st.builds(
    LoreSettings, scan_depth=st.integers(0, 4), budget_tokens=limits, recursion_limit=st.none() | st.integers(0, 3)
)


def chance(label: str) -> float:
    return (sum(label.encode()) % 97) / 97


turns = st.builds(
    Turn, messages=st.integers(0, 6), greeting=st.none() | st.integers(0, 1), chance=st.just(chance), replies=limits
)


def wide(scope, chat, settings, turn, **more):
    return wake(scope, *chat, settings=settings, turn=turn, **more)


@given(scopes, chats, account, turns)
def test_every_entry_of_every_book_has_one_outcome(scope, chat, settings, turn):
    found = wide(scope, chat, settings, turn)
    assert [(one.book, one.entry) for one in found.outcomes] == [(b.id, e.id) for b in scope for e in b.entries]
    assert {(one.book, one.entry) for one in found.outcomes if one.included} == {
        (active.book, active.entry.id) for active in found.entries
    }
    assert len(found.entries) == sum(one.included for one in found.outcomes)
    assert all(one.reason in ALL_REASONS for one in found.outcomes)


@given(scopes, chats, account, turns)
def test_the_same_turn_wakes_the_same(scope, chat, settings, turn):
    first = wide(scope, chat, settings, turn)
    assert wide(scope, chat, settings, turn) == first
    assert json.loads(json.dumps(first.state)) == first.state


@given(scopes, chats, account, turns, st.integers(0, 6))
def test_a_regeneration_finds_its_turn_as_it_was(scope, chat, settings, turn, before):
    state = wide(scope, chat, settings, replace(turn, messages=before)).state
    first = wide(scope, chat, settings, replace(turn, messages=7, state=state))
    again = wide(scope, chat, settings, replace(turn, messages=7, state=first.state))
    assert (again.entries, again.outcomes, again.state) == (first.entries, first.outcomes, first.state)


@given(scopes, chats, account, turns)
def test_no_budget_is_exceeded(scope, chat, settings, turn):
    found = wide(scope, chat, settings, turn)
    charged = [active for active in found.entries if not active.entry.ignore_budget]
    assert all(active.tokens == count(active.text) for active in found.entries)
    if settings.budget_tokens is not None:
        assert sum(active.tokens for active in charged) <= settings.budget_tokens
    for one in scope:
        if one.token_budget is not None:
            assert sum(active.tokens for active in charged if active.book == one.id) <= one.token_budget


@given(scopes, chats, account, turns)
def test_the_recursion_limit_is_exact(scope, chat, settings, turn):
    found = wide(scope, chat, settings, turn)
    causes = {f"{active.book}/{active.entry.id}": active for active in found.entries}
    for one in scope:
        stated = [limit for limit in (one.recursion_limit, settings.recursion_limit) if limit is not None]
        most = min(stated, default=None) if one.recursive_scanning else 0
        for active in found.entries:
            if active.book != one.id or active.cause != "recursion":
                continue
            steps, at = 0, active
            while at is not None and at.cause == "recursion":
                steps, at = steps + 1, causes.get(at.woken_by)
            assert one.recursive_scanning
            assert most is None or steps <= most


@given(scopes, chats, account, turns)
def test_one_of_a_group_is_in(scope, chat, settings, turn):
    found = wide(scope, chat, settings, turn)
    for name in "gh":
        assert sum(name in active.entry.groups for active in found.entries) <= 1


@given(scopes, chats, account, turns)
def test_what_is_disabled_is_never_in(scope, chat, settings, turn):
    memory = {one.id: {e.id: {"woken": -1, "matched": -1} for e in one.entries} for one in scope}
    off = {(one.id, e.id) for one in scope for e in one.entries if not e.enabled}
    for state in ({}, {"turns": [-1], "entries": memory}):
        found = wide(scope, chat, settings, Turn(messages=turn.messages, state=state))
        assert {(one.book, one.entry) for one in found.outcomes if one.reason == "disabled"} == off


@given(scopes, chats, account, turns)
def test_composed_and_decomposed_chats_wake_the_same(scope, chat, settings, turn):
    composed, decomposed = ([normalize(form, text) for text in chat] for form in ("NFC", "NFD"))
    assert wide(scope, composed, settings, turn).outcomes == wide(scope, decomposed, settings, turn).outcomes


@given(scopes, chats, account, turns)
def test_entries_stand_by_place_then_order_then_book(scope, chat, settings, turn):
    places = list(Place)
    stand = [
        (places.index(a.place), a.entry.insertion_order, a.book, int(a.entry.id))
        for a in wide(scope, chat, settings, turn).entries
    ]
    assert stand == sorted(stand)


# -- keys ----------------------------------------------------------------------------------------------


def test_a_key_wakes_and_says_which():
    found = wake(book(entry("1", "Dragons sleep.", "wyrm", "dragon")), "a dragon")
    (active,) = found.entries
    assert (active.text, active.cause, active.woken_by, active.relevance) == ("Dragons sleep.", "key", "dragon", 0.5)
    assert found.outcomes[0].detail == "dragon"


@pytest.mark.parametrize(
    ("key", "text", "right"), [("кот", "мой кот спит", True), ("кот", "который", False), ("cole", "l'école", False)]
)
def test_b62_whole_words_outside_ascii(key, text, right):
    assert bool(wake(book(entry("1", "x", key), match_whole_words=True), text).entries) is right


@pytest.mark.parametrize(
    ("own", "books", "accounts", "right"),
    [
        (1, 3, 3, False),
        (None, 1, 3, False),
        (None, None, 1, False),
        (3, 1, 1, True),
        (None, 3, 1, True),
        (None, None, 3, True),
        (0, 3, 3, False),
        (None, 0, 3, False),
        (None, None, 0, False),
    ],
)
def test_the_entrys_scan_depth_counts_then_the_books_then_the_accounts(own, books, accounts, right):
    one = book(entry("1", "x", "fire", scan_depth=own), scan_depth=books)
    assert bool(wake(one, "fire", "b", "c", settings=LoreSettings(scan_depth=accounts)).entries) is right


@pytest.mark.parametrize(
    ("logic", "none", "some", "both"),
    [
        ("and-any", False, True, True),
        ("not-all", True, True, False),
        ("not-any", True, False, False),
        ("and-all", False, False, True),
    ],
)
def test_secondary_keys_decide(logic, none, some, both):
    one = book(entry("1", "x", "k", secondary_keys=("a1", "b2"), secondary_logic=SecondaryLogic(logic)))
    for text, right in (("k", none), ("k a1", some), ("k a1 b2", both)):
        assert reasons(wake(one, text)) == {"1": "key" if right else "secondary-keys"}


def test_macros_in_keys_and_contents_are_replaced():
    found = wake(
        book(entry("1", "{{user}} rules.", "{{user}}")), "Ann came", expand=lambda t: t.replace("{{user}}", "Ann")
    )
    assert found.entries[0].text == "Ann rules."
    assert found.entries[0].woken_by == "{{user}}"


def test_b73_a_pattern_that_faults_leaves_its_entry_out_and_no_other():
    one = book(entry("1", "x", "/slow/", "a"), entry("2", "x", "/[/"), entry("3", "x", "/A/i"), entry("4", "x", "a"))
    found = wake(one, "a" * 40 + "!")
    assert reasons(found) == {"1": "regex-timeout", "2": "regex-invalid", "3": "key", "4": "key"}
    assert [(d["code"], d["entry"], d["key"]) for d in found.diagnostics] == [
        ("regex-timeout", "1", "/slow/"),
        ("regex-invalid", "2", "/[/"),
    ]


def test_a_broken_pattern_costs_no_constant():
    assert reasons(wake(book(entry("1", "x", "/[/", constant=True)), "a")) == {"1": "constant"}


def test_with_use_regex_every_key_is_a_pattern():
    one = book(entry("1", "x", "dra.on", use_regex=True), entry("2", "x", "dra.on"))
    assert inside(wake(one, "A Dragon")) == {"1"}


# -- budget --------------------------------------------------------------------------------------------


def words_of(number: int) -> str:
    return " ".join(["w"] * number)


def budgeted(**more):
    sizes = zip("123", (20, 200, 30), strict=True)
    return book(
        *(entry(id, words_of(n), constant=True, insertion_order=int(id)) for id, n in sizes), token_budget=100, **more
    )


def test_b65_what_does_not_fit_is_passed_over():
    found = wake(budgeted())
    assert reasons(found) == {"1": "constant", "2": "lore-budget", "3": "constant"}
    assert [(o.tokens, o.detail) for o in found.outcomes if not o.included] == [(200, "book")]


def test_b65_in_compatibility_mode_it_ends_the_list():
    assert inside(wake(budgeted(stop_at_budget=True))) == {"3"}
    assert inside(wake(budgeted(), settings=LoreSettings(stop_at_budget=True))) == {"3"}


def test_b71_ignore_budget_is_always_taken_and_charged_to_nobody():
    first = entry("first", words_of(40), constant=True, insertion_order=2)
    second = entry("second", words_of(40), constant=True, insertion_order=1)
    free = entry("second", words_of(40), constant=True, insertion_order=3, ignore_budget=True)
    account = LoreSettings(budget_tokens=50)
    assert reasons(wake(book(first, second), settings=account)) == {"first": "constant", "second": "lore-budget"}
    assert inside(wake(book(first, free), settings=account)) == {"first", "second"}


def test_priority_goes_before_order_and_ignore_on_max_context_leaves_first():
    one = book(
        entry("1", "w w", constant=True, priority=9, insertion_order=0),
        entry("2", "w w", constant=True, insertion_order=5),
        entry("3", "@@ignore_on_max_context\nw w", constant=True, priority=99),
        token_budget=2,
    )
    assert inside(wake(one)) == {"1"}
    required = {a.entry.id: a.required for a in wake(replace(one, token_budget=None)).entries}
    assert required == {"1": True, "2": True, "3": False}


def test_what_has_no_text_is_out_as_empty():
    assert reasons(wake(book(entry("1", "@@depth 1\n ", constant=True)))) == {"1": "empty"}


# -- recursion -----------------------------------------------------------------------------------------


def chain(**more):
    names = "abcd"
    links = [entry(n, f"see {names[i + 1 : i + 2]}x", f"{n}x", insertion_order=i) for i, n in enumerate(names)]
    return book(*links, **{"recursive_scanning": True, **more})


def test_b68_the_limit_of_steps_is_exact():
    assert inside(wake(chain(recursion_limit=1), "ax")) == {"a", "b"}
    assert inside(wake(chain(), "ax", settings=LoreSettings(recursion_limit=2))) == {"a", "b", "c"}
    assert inside(wake(chain(recursion_limit=0), "ax")) == {"a"}
    assert inside(wake(chain(recursive_scanning=False), "ax")) == {"a"}
    found = wake(chain(), "ax")
    assert [(a.cause, a.woken_by) for a in found.entries] == [
        ("key", "ax"),
        ("recursion", "b/a"),
        ("recursion", "b/b"),
        ("recursion", "b/c"),
    ]


def test_only_what_passed_the_budget_wakes_others():
    one = book(entry("a", "bx w w", "ax"), entry("b", "w", "bx"), recursive_scanning=True, token_budget=2)
    assert reasons(wake(one, "ax")) == {"a": "lore-budget", "b": "no-key-match"}


def test_prevented_and_excluded_recursion():
    sees = "ax bx"
    assert inside(
        wake(book(entry("a", sees, "k", prevent_recursion=True), entry("b", "x", "bx"), recursive_scanning=True), "k")
    ) == {"a"}
    assert inside(
        wake(book(entry("a", sees, "k"), entry("b", "x", "bx", exclude_recursion=True), recursive_scanning=True), "k")
    ) == {"a"}


def test_what_waits_for_recursion_comes_in_its_step():
    late = [entry("1", "x", "k", delay_until_recursion=1), entry("3", "x", constant=True, delay_until_recursion=3)]
    assert inside(wake(book(*late, recursive_scanning=True), "k")) == {"1", "3"}
    assert reasons(wake(book(*late, recursive_scanning=True, recursion_limit=2), "k")) == {
        "1": "key",
        "3": "recursion-only",
    }
    assert reasons(wake(book(*late), "k")) == {"1": "recursion-only", "3": "recursion-only"}


def test_what_waits_and_may_not_be_woken_by_recursion_ends():
    one = entry("1", "x", "k", delay_until_recursion=1, exclude_recursion=True)
    assert reasons(wake(book(one, recursive_scanning=True), "k")) == {"1": "recursion-only"}


def test_a_secondary_key_may_stand_in_a_woken_entry():
    one = book(entry("a", "the bx", "ax"), entry("b", "x", "ax", secondary_keys=("bx",)), recursive_scanning=True)
    assert inside(wake(one, "ax")) == {"a", "b"}


def test_hidden_keys_wake_but_are_not_said():
    one = book(entry("a", "<hidden bx>", "ax"), entry("b", "text", "bx"), recursive_scanning=True)
    found = wake(one, "ax", expand=lambda text: text.replace("<hidden bx>", ""), expand_hidden=str)
    assert reasons(found) == {"a": "empty", "b": "recursion"}


# -- chance, groups, decorators, turns -----------------------------------------------------------------


def test_probability_is_a_share_of_the_given_chance():
    one = book(*(entry(str(p), "x", constant=True, probability=p) for p in (0, 49, 50, 51, 100)))
    assert inside(wake(one, turn=Turn(chance=lambda label: 0.5))) == {"51", "100"}


def test_a_group_has_one_winner_by_weight():
    one = book(*(entry(id, "x", constant=True, groups=("g",), group_weight=w) for id, w in (("a", 1), ("b", 3))))
    for roll, winner in ((0.0, "a"), (0.24, "a"), (0.26, "b"), (0.99, "b")):
        found = wake(one, turn=Turn(chance=lambda label, roll=roll: roll if label == "group:g" else 0.0))
        assert inside(found) == {winner}
        assert {o.detail for o in found.outcomes if o.reason == "group"} == {f"g: b/{winner}"}


def test_in_a_group_override_wins_by_order():
    one = book(
        entry("a", "x", constant=True, groups=("g",), group_weight=1000),
        entry("b", "x", constant=True, groups=("g",), group_override=True, insertion_order=1),
        entry("c", "x", constant=True, groups=("g",), group_override=True, insertion_order=2),
    )
    assert inside(wake(one)) == {"c"}


def test_a_group_that_is_taken_stays_so_in_recursion():
    one = book(entry("a", "bx", "ax", groups=("g",)), entry("b", "x", "bx", groups=("g",)), recursive_scanning=True)
    assert reasons(wake(one, "ax")) == {"a": "key", "b": "group"}


@pytest.mark.parametrize(
    ("head", "turn", "reason"),
    [
        ("@@activate", Turn(), "decorator"),
        ("@@activate\n@@dont_activate", Turn(), "decorator"),
        ("@@activate\n@@is_greeting 1", Turn(greeting=0), "decorator-off"),
        ("@@dont_activate", Turn(), "decorator-off"),
        ("@@is_greeting 1", Turn(greeting=1), "key"),
        ("@@is_greeting 1", Turn(greeting=0), "decorator-off"),
        ("@@is_greeting 1", Turn(), "key"),
        ("@@activate_only_after 3", Turn(messages=9, replies=2), "decorator-off"),
        ("@@activate_only_after 3", Turn(messages=9, replies=3), "key"),
        ("@@activate_only_after 3", Turn(messages=3), "key"),
        ("@@activate_only_every 3", Turn(messages=6, replies=4), "decorator-off"),
        ("@@activate_only_every 3", Turn(messages=7, replies=6), "key"),
        ("@@additional_keys ice", Turn(), "secondary-keys"),
        ("@@additional_keys ice, here", Turn(), "key"),
        ("@@exclude_keys here", Turn(), "secondary-keys"),
        ("@@exclude_keys ice", Turn(), "key"),
        ("@@scan_depth 0", Turn(), "no-key-match"),
    ],
)
def test_decorators_let_in_and_keep_out(head, turn, reason):
    assert reasons(wake(book(entry("1", f"{head}\nlore", "fire")), "fire here", turn=turn)) == {"1": reason}


def test_decorators_place():
    heads = ("@@depth 2\n@@role user", "@@reverse_depth 1", "@@position scenario\n@@depth 7", "@@unheard_of")
    found = wake(book(*(entry(str(n), f"{head}\nlore", constant=True) for n, head in enumerate(heads))))
    at = {a.entry.id: (a.text, a.place, a.role) for a in found.entries}
    assert at["0"] == ("lore", Place.AT_DEPTH, "user")
    assert at["1"] == ("lore", Place.REVERSE_DEPTH, "system")
    assert at["2"] == ("lore", Place.SCENARIO, "system")
    assert [(d["code"], d["decorator"]) for d in found.diagnostics] == [("unknown-decorator", "unheard_of")]


def played(one: Book, *chats: str) -> list[str]:
    """Play real turns of two messages each; what became of entry 1 in each."""
    state, outcomes = {}, []
    for number, chat in enumerate(chats):
        turn = Turn(messages=2 * number + 1, state=json.loads(json.dumps(state)))
        found = wake(one, chat, turn=turn)
        outcomes.append(reasons(found)["1"])
        state = found.state
    return outcomes


def test_sticky_stays_for_its_turns_and_cooldown_follows():
    one = book(entry("1", "x", "k", sticky=2, cooldown=1))
    assert played(one, "k", "", "k", "k", "k", "") == ["key", "sticky", "sticky", "cooldown", "key", "sticky"]
    assert played(book(entry("1", "x", "k", cooldown=1)), "k", "k", "k", "") == [
        "key",
        "cooldown",
        "key",
        "no-key-match",
    ]


def test_delay_counts_messages():
    assert played(book(entry("1", "x", "k", delay=3)), "k", "k") == ["delay", "key"]


def test_matched_before_is_remembered():
    assert played(book(entry("1", "@@keep_activate_after_match\nx", "k")), "", "k", "", "") == [
        "no-key-match",
        "key",
        "decorator",
        "decorator",
    ]
    assert (
        played(book(entry("1", "@@dont_activate_after_match\nx", "k")), "k", "k", "k")
        == ["key"] + ["decorator-off"] * 2
    )


def test_a_preview_uses_up_nothing_and_a_chat_taken_back_forgets():
    one = book(entry("1", "x", "k", cooldown=5))
    state = wake(one, "k", turn=Turn(messages=3)).state
    assert reasons(wake(one, "k", turn=Turn(messages=3, state=state))) == {"1": "key"}
    assert reasons(wake(one, "k", turn=Turn(messages=5, state=state))) == {"1": "cooldown"}
    assert reasons(wake(one, "k", turn=Turn(messages=1, state=state))) == {"1": "key"}


def test_memory_of_books_out_of_scope_stays_and_of_entries_gone_does_not():
    state = wake(
        [book(entry("1", "x", "k", sticky=3), id="b"), book(entry("1", "x", "k", sticky=3), id="c")], "k", turn=Turn(1)
    ).state
    later = wake(book(entry("2"), id="b"), "", turn=Turn(3, state=state)).state
    assert later["entries"] == {"c": {"1": {"woken": 1}}}


def test_two_books_of_one_id_are_refused():
    with pytest.raises(ValueError, match="one id"):
        wake([book(), book()])


def test_patterns_see_the_chat_as_it_is_written():
    seen = []

    def watch(source: str, flags: str, text: str) -> bool:
        seen.append((source, flags, text))
        return search(source, flags, text)

    wake(book(entry("1", "x", "/Fire$/i")), "One", "FIRE", search=watch)
    assert seen == [("Fire$", "i", "One\nFIRE")]


def test_a_secondary_pattern_that_faults_is_named():
    found = wake(book(entry("1", "x", "a", secondary_keys=("/slow/",))), "a")
    assert reasons(found) == {"1": "regex-timeout"}
    assert [(d["code"], d["key"]) for d in found.diagnostics] == [("regex-timeout", "/slow/")]
    assert found.outcomes[0].detail == "/slow/"


def test_recursion_goes_across_books_that_ask_for_it():
    asks = {"recursive_scanning": True}
    first, second = book(entry("1", "bx", "ax"), id="b", **asks), book(entry("2", "y", "bx"), id="c", **asks)
    assert [(a.book, a.woken_by) for a in wake([first, second], "ax").entries] == [("b", "ax"), ("c", "b/1")]
    assert inside(wake([first, replace(second, recursive_scanning=False)], "ax")) == {"1"}
    assert inside(wake([replace(first, recursive_scanning=False), second], "ax")) == {"1"}


def test_a_role_holds_where_world_info_gives_one_and_the_decorator_everywhere():
    places = {place: entry(place, "x", constant=True, place=place, role="user") for place in Place}
    said = entry("said", "@@role assistant\nx", constant=True)
    deep = entry("deep", "@@depth 1\nx", constant=True, role="user")
    roles = {one.entry.id: one.role for one in wake(book(*places.values(), said, deep)).entries}
    given = {"at_depth": "user", "reverse_depth": "user", "said": "assistant", "deep": "user"}
    assert roles == dict.fromkeys(places, "system") | given
