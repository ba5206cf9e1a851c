"""Chats over HTTP: kept as they were said, forked, changed by one at a time, gone for good, and nobody else's."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.world import World, worlds

CARD = {
    "spec": "chara_card_v2",
    "spec_version": "2.0",
    "data": {
        "name": "Ann",
        "description": "{{char}} flies.",
        "first_mes": "Hello {{user}}.",
        "alternate_greetings": ["Ahoy {{user}}."],
        "extensions": {"mine": {"kept": True}},
    },
}


class Api:
    """Calls ``/api/v2`` and expects a status."""

    def __init__(self, world: World, key: str = "sk-acme") -> None:
        self.world = world
        self.key = key

    def __call__(self, method: str, path: str, body: Any = None, status: int = 200, **headers: str) -> Any:
        sent = {"authorization": f"Bearer {self.key}", **headers}
        kind: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {} if body is None else {"json": body}
        answer: httpx.Response = self.world.client.request(
            method, f"{self.world.url}/api/v2/{path}", headers=sent, **kind
        )
        assert answer.status_code == status, answer.text
        if answer.headers.get("content-type") == "application/json":
            return answer.json()
        return answer


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    yield from worlds(tmp_path)


@pytest.fixture
def api(world: World) -> Api:
    return Api(world)


def cast(api: Api, **fields: Any) -> Any:
    """Make a chat with a character and a persona."""
    ann = api("POST", "characters", {"card": CARD}, 201)
    bob = api("POST", "personas", {"name": "Bob", "description": "Mends engines."}, 201)
    people = [{"id": "ann", "kind": "character", "character_id": ann["id"]}, {"id": "me", "kind": "user"}]
    chat = {"model": "plain", "participants": people, "persona": bob["id"], **fields}
    return api("POST", "chats", chat, 201)


def texts(api: Api, chat: str, query: str = "") -> list[str]:
    return [one["content"] for one in api("GET", f"chats/{chat}/messages{query}")["data"]]


def test_a_chat_reads_back_as_it_was_made(api: Api):
    given = {
        "title": "A talk",
        "variables": {"mood": "calm", "n": 3},
        "params": {"temperature": 0.5},
        "author_note": {"text": "rain", "depth": 2, "role": "system"},
        "metadata": {"aB": [1, None]},
        "settings": {"smart_truncation": True, "blocks": ["memory", "system"]},
        "user_id": "u1",
    }
    made = cast(api, **given)
    assert {name: made[name] for name in given} == given
    assert api("GET", f"chats/{made['id']}") == made
    assert api("GET", "chats?user_id=u1")["data"] == [made]
    assert api("GET", "chats?user_id=u2")["data"] == []


def test_camel_case_names_are_taken_too(api: Api):
    made = api("POST", "chats", {"model": "plain", "authorNote": {"text": "x"}, "userId": "u"}, 201)
    assert (made["author_note"]["text"], made["user_id"]) == ("x", "u")


def test_a_chat_begins_with_the_greeting_asked_for(api: Api):
    first, second = cast(api), cast(api, greeting=1)
    assert texts(api, first["id"]) == ["Hello Bob."]
    assert texts(api, second["id"]) == ["Ahoy Bob."]
    (message,) = api("GET", f"chats/{second['id']}/messages")["data"]
    assert [swipe["content"] for swipe in message["swipes"]] == ["Hello Bob.", "Ahoy Bob."]
    assert (message["swipe"], message["speaker_id"]) == (1, "ann")
    refused = api("POST", "chats", {"model": "plain", "greeting": 1}, 400)
    assert refused["error"]["path"] == "greeting"


def greeted(api: Api, greeting: int | None = None, status: int = 201, **data: Any) -> Any:
    """Make a chat with a card of these fields; return its first message, None where there is none."""
    card = {**CARD, "data": {**CARD["data"], **data}}
    made = api("POST", "characters", {"card": card}, 201)["id"]
    people = [{"id": "ann", "kind": "character", "character_id": made}]
    wish = {"model": "plain", "participants": people} | ({} if greeting is None else {"greeting": greeting})
    chat = api("POST", "chats", wish, status)
    if status != 201:
        return chat["error"]["path"]
    return next(iter(api("GET", f"chats/{chat['id']}/messages")["data"]), None)


def test_a_greeting_may_name_what_its_card_says(api: Api):
    said = "{{scenario}}|{{description}}|{{personality}}|{{char}}"
    first = greeted(api, first_mes=said, scenario="a hangar", personality="calm", description="a pilot")
    assert first["content"] == "a hangar|a pilot|calm|Ann"


@pytest.mark.parametrize(
    ("greetings", "index", "shown"),
    [
        (["", "one", "two"], 1, "one"),
        (["", "one", "two"], 2, "two"),
        (["", "one", "two"], 0, "one"),
        (["", "one", "two"], None, "one"),
        (["zero", " ", "two"], 2, "two"),
        (["", " "], 0, None),
        ([""], None, None),
    ],
)
def test_greetings_are_counted_as_their_card_counts_them(api: Api, greetings: list[str], index: Any, shown: str | None):
    first = greeted(api, index, first_mes=greetings[0], alternate_greetings=greetings[1:])
    assert (first and first["content"]) == shown
    if first:
        assert [one["content"] for one in first["swipes"]] == [one for one in greetings if one.strip()]


@pytest.mark.parametrize("index", [1, 3])
def test_a_greeting_that_the_card_has_not_is_refused(api: Api, index: int):
    assert greeted(api, index, 400, first_mes="zero", alternate_greetings=["", "two"]) == "greeting"


def test_lore_for_a_greeting_follows_the_one_shown(api: Api):
    entry = {"keys": [], "constant": True, "content": "@@is_greeting 2\nOf the second.", "enabled": True}
    book = api("POST", "lorebooks", {"book": {"entries": [entry]}}, 201)["id"]
    card = {**CARD, "data": {**CARD["data"], "first_mes": "", "alternate_greetings": ["one", "two"]}}
    made = api("POST", "characters", {"card": card}, 201)["id"]
    people = [{"id": "ann", "kind": "character", "character_id": made}]
    chat = api("POST", "chats", {"model": "plain", "participants": people, "lorebooks": [book]}, 201)["id"]

    def sent() -> list[str]:
        shown = api("POST", "context-preview?include=messages", {"chat_id": chat, "user_message": "x"})
        return [one["content"] for one in shown["messages"]]

    assert "Of the second." not in sent()
    api("PATCH", f"chats/{chat}/messages/main.1", {"swipe": 1})
    assert "Of the second." in sent()


def test_of_two_who_change_a_chat_the_later_is_told(api: Api):
    chat = cast(api)
    changed = api("PATCH", f"chats/{chat['id']}", {"version": 1, "title": "one"})
    assert (changed["version"], changed["title"], changed["persona"]) == (2, "one", chat["persona"])
    assert api("PATCH", f"chats/{chat['id']}", {"version": 1, "title": "two"}, 409)["error"]["code"] == "CONFLICT"
    assert api("PATCH", f"chats/{chat['id']}", {"persona": None})["persona"] is None


def test_changes_at_once_that_name_no_version_are_all_made(api: Api):
    chat = api("POST", "chats", {"model": "plain"}, 201)["id"]
    api("POST", f"chats/{chat}/messages", {"role": "user", "content": "x"}, 201)
    changes = [
        ("", {"title": "t"}),
        ("", {"metadata": {"a": 1}}),
        ("", {"variables": {"v": 1}}),
        ("/messages/main.1", {"pinned": True}),
        ("/messages/main.1", {"meta": {"a": 1}}),
        ("/messages/main.1", {"content": "y"}),
    ]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda one: api("PATCH", f"chats/{chat}{one[0]}", one[1]), changes))
    for path, change in changes:
        assert change.items() <= api("GET", f"chats/{chat}{path}").items()


def test_messages_are_kept_edited_swiped_and_removed(api: Api):
    chat = api("POST", "chats", {"model": "plain"}, 201)["id"]
    parts = [{"type": "text", "text": "hi"}]
    message = {"role": "user", "content": parts, "pinned": True, "meta": {"a": 1}, "speaker_id": "me"}
    said = api("POST", f"chats/{chat}/messages", message, 201)
    assert {name: said[name] for name in message} == message
    swipes = [{"content": "a"}, {"content": "b"}]
    reply = api("POST", f"chats/{chat}/messages", {"role": "assistant", "content": "a", "swipes": swipes}, 201)
    swiped = api("PATCH", f"chats/{chat}/messages/{reply['id']}", {"swipe": 1})
    assert (swiped["content"], swiped["version"]) == ("b", 2)
    edited = api("PATCH", f"chats/{chat}/messages/{reply['id']}", {"content": "B"})
    assert [one["content"] for one in edited["swipes"]] == ["a", "B"]
    conflict = api("PATCH", f"chats/{chat}/messages/{reply['id']}", {"version": 1, "content": "x"}, 409)
    assert conflict["error"]["code"] == "CONFLICT"
    assert api("PATCH", f"chats/{chat}/messages/{reply['id']}", {"swipe": 7}, 400)["error"]["path"] == "swipe"
    api("DELETE", f"chats/{chat}/messages/{said['id']}", status=204)
    api("GET", f"chats/{chat}/messages/{said['id']}", status=404)
    assert texts(api, chat) == ["B"]


ANSWERS = [
    {"content": "a", "reasoning": "ra", "generation_id": "1-a", "partial": True},
    {"content": None, "tool_calls": [{"id": "c", "type": "function"}], "generation_id": "2-b"},
    {"content": "c"},
]
OF_AN_ANSWER = ("content", "reasoning", "tool_calls", "generation_id", "partial")


def is_what_it_shows(message: Any) -> bool:
    shown = message["swipes"][message["swipe"]]
    return all(message[name] == shown.get(name, False if name == "partial" else None) for name in OF_AN_ANSWER)


def test_a_message_says_what_the_swipe_shown_says_whatever_is_done_to_it(api: Api):
    chat = api("POST", "chats", {"model": "plain"}, 201)["id"]
    said = api("POST", f"chats/{chat}/messages", {"role": "assistant", "swipes": ANSWERS, "swipe": 1}, 201)
    assert said["generation_id"] == "2-b"
    assert is_what_it_shows(said)
    path = f"chats/{chat}/messages/{said['id']}"
    for change in (
        {"swipe": 0},
        {"reasoning": "other"},
        {"partial": False},
        {"content": "C", "swipe": 2},
        {"swipe": 1},
        {"swipe": 0, "reasoning": None, "partial": True},
        {"pinned": True},
    ):
        changed = api("PATCH", path, change)
        assert is_what_it_shows(changed), change
        assert {name: changed[name] for name in change} == change
        assert api("GET", path) == changed
    assert [one["content"] for one in changed["swipes"]] == ["a", None, "C"]
    assert changed["swipes"][1]["tool_calls"] == ANSWERS[1]["tool_calls"]


def test_what_is_said_beside_swipes_is_an_edit_of_the_one_shown(api: Api):
    chat = api("POST", "chats", {"model": "plain"}, 201)["id"]
    new = {"role": "assistant", "content": "A", "swipes": [{"content": "a"}, {"content": "b"}]}
    said = api("POST", f"chats/{chat}/messages", new, 201)
    assert ([one["content"] for one in said["swipes"]], said["content"]) == (["A", "b"], "A")


@pytest.mark.parametrize(
    ("message", "path"),
    [
        ({"role": "assistant", "content": "x", "swipe": 3}, "swipe"),
        ({"role": "assistant", "swipes": [{"content": "a"}], "swipe": 1}, "swipe"),
        ({"role": "user"}, "content"),
        ({"role": "system"}, "content"),
        ({"role": "tool", "tool_call_id": "c"}, "content"),
        ({"role": "", "content": "x"}, "role"),
        ({"role": "r" * 65, "content": "x"}, "role"),
        ({"role": 1, "content": "x"}, "role"),
        ({"content": "x"}, "role"),
    ],
)
def test_a_message_that_makes_no_sense_is_refused_by_its_path(api: Api, message: Any, path: str):
    chat = api("POST", "chats", {"model": "plain"}, 201)["id"]
    assert api("POST", f"chats/{chat}/messages", message, 400)["error"]["path"] == path
    assert texts(api, chat) == []


@pytest.mark.parametrize(
    "message", [{"role": "assistant"}, {"role": "user", "content": None}, {"role": "narrator", "content": "It rains."}]
)
def test_messages_that_pass(api: Api, world: World, message: Any):
    chat = api("POST", "chats", {"model": "plain"}, 201)["id"]
    said = api("POST", f"chats/{chat}/messages", message, 201)
    assert (said["role"], said["content"]) == (message["role"], message.get("content"))
    shown = api("POST", "context-preview?include=messages", {"chat_id": chat, "user_message": "x"})
    assert shown["messages"][0]["role"] == message["role"]


def test_a_branch_is_a_path_through_one_tree(api: Api):
    chat = api("POST", "chats", {"model": "plain"}, 201)["id"]
    for text in "abc":
        api("POST", f"chats/{chat}/messages", {"role": "user", "content": text}, 201)
    fork = api("POST", f"chats/{chat}/branches", {"from_message": "main.2", "id": "alt", "name": "what if"}, 201)
    assert (fork["parent"], fork["from_message"]) == ("main", "main.2")
    api("POST", f"chats/{chat}/messages?branch=alt", {"role": "user", "content": "C"}, 201)
    assert texts(api, chat) == ["a", "b", "c"]
    assert texts(api, chat, "?branch=alt") == ["a", "b", "C"]
    api("PATCH", f"chats/{chat}/messages/main.1", {"content": "A"})
    assert texts(api, chat, "?branch=alt&order=desc") == ["C", "b", "A"]
    assert [one["id"] for one in api("GET", f"chats/{chat}/branches")["data"]] == ["main", "alt"]
    api("POST", f"chats/{chat}/branches", {"from_message": "main.2", "id": "alt"}, 409)
    api("POST", f"chats/{chat}/branches", {"from_message": "main.3", "branch": "alt"}, 400)
    api("GET", f"chats/{chat}/messages?branch=none", status=404)


def test_pages_lead_through_everything_once(api: Api):
    chat = api("POST", "chats", {"model": "plain"}, 201)["id"]
    for n in range(5):
        api("POST", f"chats/{chat}/messages", {"role": "user", "content": str(n)}, 201)
    seen, cursor = [], ""
    while True:
        page = api("GET", f"chats/{chat}/messages?limit=2{cursor}")
        seen += [one["content"] for one in page["data"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == list("01234")
    for bad in ("limit=0", "limit=x", "cursor=%20", "cursor=nonsense", "order=up"):
        assert api("GET", f"chats/{chat}/messages?{bad}", status=400)["error"]["path"] == bad.split("=")[0]


def test_a_list_s_parameters_are_taken_in_camel_case_and_no_other(api: Api):
    for user in ("u1", "u2"):
        api("POST", "chats", {"id": user, "model": "plain", "userId": user}, 201)
    assert [one["id"] for one in api("GET", "chats?userId=u1")["data"]] == ["u1"]
    for path, bad in (
        ("chats?user=u1", "user"),
        ("chats?userId=u1&user_id=u1", "user_id"),
        ("chats?user_id=" + "u" * 3000, "user_id"),
        ("chats?limit=1&limit=2", "limit"),
        ("chats/u1/messages?brunch=main", "brunch"),
        ("memories?offset=1", "offset"),
    ):
        assert api("GET", path, status=400)["error"]["path"] == bad
    api("POST", "chats/u1/messages?chat=u2", {"role": "user", "content": "x"}, 400)
    for branch in ("none", "a%20b", "b" * 2000):
        api("GET", f"chats/u1/messages?branch={branch}", status=404)
        api("POST", f"chats/u1/messages?branch={branch}", {"role": "user", "content": "x"}, 404)


def test_a_cursor_is_of_one_list_of_one_account(world: World, api: Api):
    other = Api(world, "sk-other")
    for one in (api, other):
        for n in range(3):
            one("POST", "chats", {"id": f"c{n}", "model": "plain", "user_id": "u"}, 201)
            one("POST", "memories", {"id": f"m{n}", "text": "x"}, 201)
            one("POST", "personas", {"id": f"m{n}", "name": "x"}, 201)
            for chat in ("c0", "c1")[: n + 1]:
                for _ in range(3):
                    one("POST", f"chats/{chat}/messages", {"role": "user", "content": "x"}, 201)
        one("POST", "chats/c0/branches", {"from_message": "main.3", "id": "alt"}, 201)
    lists = [
        "chats?limit=1",
        "chats?limit=1&user_id=u",
        "memories?limit=1",
        "personas?limit=1",
        "chats/c0/messages?limit=1",
        "chats/c0/messages?limit=1&order=desc",
        "chats/c0/messages?limit=1&branch=alt",
        "chats/c1/messages?limit=1",
    ]
    cursors = {(one, path): one("GET", path)["next_cursor"] for one in (api, other) for path in lists}
    assert all(cursors.values())
    for (owner, of), cursor in cursors.items():
        for reader in (api, other):
            for path in lists:
                status = 200 if (reader, path) == (owner, of) else 400
                answer = reader("GET", f"{path}&cursor={cursor}", status=status)
                assert status == 200 or answer["error"]["path"] == "cursor"


def test_a_deleted_chat_is_gone_with_all_it_held(api: Api):
    chat = cast(api)["id"]
    api("DELETE", f"chats/{chat}", status=204)
    for path in ("", "/messages", "/branches", "/context-audit", "/messages/main.1", "/generations/1-x"):
        api("GET", f"chats/{chat}{path}", status=404)
    api("POST", f"chats/{chat}/messages", {"role": "user", "content": "x"}, 404)
    api("DELETE", f"chats/{chat}", status=404)
    assert api("GET", "chats")["data"] == []


def test_a_deleted_chat_leaves_no_text_in_the_file(tmp_path: Path):
    for world in worlds(tmp_path):
        api = Api(world)
        chat = api("POST", "chats", {"model": "plain"}, 201)["id"]
        api("POST", f"chats/{chat}/messages", {"role": "user", "content": "a secret nobody may find"}, 201)
        kept = list((tmp_path / "data").iterdir())
        assert any(b"a secret nobody may find" in one.read_bytes() for one in kept)
        api("DELETE", f"chats/{chat}", status=204)
        assert not any(b"a secret nobody may find" in one.read_bytes() for one in kept if one.exists())


def test_nothing_of_an_account_is_there_for_another(world: World, api: Api):
    chat = cast(api)
    other, stranger = Api(world, "sk-other"), Api(world, "sk-nobody")
    ids = {name: api("GET", name)["data"][0]["id"] for name in ("characters", "personas")}
    fork = {"from_message": "main.1"}
    for method, path, body in (
        ("GET", f"chats/{chat['id']}", None),
        ("PATCH", f"chats/{chat['id']}", {"title": "x"}),
        ("GET", f"chats/{chat['id']}/messages", None),
        ("POST", f"chats/{chat['id']}/messages", {"role": "user", "content": "x"}),
        ("PATCH", f"chats/{chat['id']}/messages/main.1", {"content": "x"}),
        ("DELETE", f"chats/{chat['id']}/messages/main.1", None),
        ("POST", f"chats/{chat['id']}/branches", fork),
        ("POST", f"chats/{chat['id']}/generations", {"user_message": "x"}),
        ("GET", f"chats/{chat['id']}/context-audit", None),
        ("DELETE", f"chats/{chat['id']}", None),
        *(("GET", f"{kind}/{id}", None) for kind, id in ids.items()),
        *(("DELETE", f"{kind}/{id}", None) for kind, id in ids.items()),
        ("GET", f"characters/{ids['characters']}/export", None),
    ):
        other(method, path, body, 404)
        stranger(method, path, body, 401)
    preview = {"chat_id": chat["id"], "user_message": "x"}
    other("POST", "context-preview", preview, 404)
    assert texts(api, chat["id"]) == ["Hello Bob."]
    assert other("GET", "chats")["data"] == []


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"titel": "x"}, "titel"),
        ({"participants": [{"id": "a"}]}, "participants[0].kind"),
        ({"participants": [{"id": "a b", "kind": "user"}]}, "participants[0].id"),
        ({"participants": [{"id": "a", "kind": "user"}, {"id": "a", "kind": "user"}]}, "participants[1].id"),
        ({"participants": [{"id": "a", "kind": "character", "character_id": "no"}]}, "participants[0].character_id"),
        ({"lorebooks": ["no"]}, "lorebooks[0]"),
        ({"persona": "no"}, "persona"),
        ({"settings": {"context_swaping": True}}, "settings.context_swaping"),
        ({"settings": {"blocks": ["nothing"]}}, "settings.blocks[0]"),
        ({"settings": {"names": 5}}, "settings.names"),
        ({"settings": {"names": "nope"}}, "settings.names"),
        ({"settings": {"impersonation_prompt": 7}}, "settings.impersonation_prompt"),
        ({"settings": {"pin": [0]}}, "settings.pin"),
        ({"settings": {"exclude": [0]}}, "settings.exclude"),
        ({"settings": {"chat_id": "c"}}, "settings.chat_id"),
        ({"settings": {"context_strategy": "nope"}}, "settings.context_strategy"),
        ({"context_strategy": "nope"}, "context_strategy"),
        ({"params": {"n": 2}}, "params.n"),
        ({"params": {"model": "plain"}}, "params.model"),
        ({"params": {"Messages": []}}, "params.Messages"),
        ({"params": {"MAX_TOKENS": 5}}, "params.MAX_TOKENS"),
        ({"params": {"stream": False}}, "params.stream"),
        ({"params": {"stream_options": {}}}, "params.stream_options"),
        ({"params": {"routing": {}}}, "params.routing"),
        ({"params": {"max_tokens": "x"}}, "params.max_tokens"),
        ({"author_note": {"text": 1}}, "author_note.text"),
        ({"title": "x", "id": "a b"}, "id"),
        ([], None),
    ],
)
def test_a_chat_that_makes_no_sense_is_refused_by_its_path(api: Api, body: Any, path: str | None):
    error = api("POST", "chats", body, 400)["error"]
    assert error.get("path") == path
    assert api("GET", "chats")["data"] == []
    if isinstance(body, dict) and path and body.keys() & {"settings", "params", "context_strategy"}:
        chat = api("POST", "chats", {"model": "plain"}, 201)
        assert api("PATCH", f"chats/{chat['id']}", body, 400)["error"]["path"] == path
        assert api("GET", f"chats/{chat['id']}") == chat


def test_a_strategy_is_known_and_in_the_plan_before_it_is_stored(world: World, api: Api):
    admin = Api(world, "sk-acme-admin")
    for name, status in (("nope", 400), ("summarize", 403), ("manual", 200)):
        made = {200: 201}.get(status, status)
        for answer in (
            admin("PUT", "settings", {"settings": {"context_strategy": name}}, status),
            api("POST", "chats", {"model": "plain", "settings": {"context_strategy": name}}, made),
        ):
            assert status == 200 or answer["error"]["path"] == "settings.context_strategy"
        answer = api("POST", "chats", {"model": "plain", "context_strategy": name}, made)
        assert status == 200 or answer["error"]["path"] == "context_strategy"
    assert api("GET", "settings")["settings"] == {"context_strategy": "manual"}


def test_settings_are_the_admin_s_to_write_and_hold_for_the_next_call(world: World, api: Api):
    admin = Api(world, "sk-acme-admin")
    assert api("GET", "settings")["version"] == 0
    api("PUT", "settings", {"settings": {}}, 403)
    written = admin("PUT", "settings", {"settings": {"context_swapping": True}, "version": 0})
    assert (written["version"], written["settings"]) == (1, {"context_swapping": True})
    assert api("GET", "settings") == written
    assert admin("PUT", "settings", {"settings": {}, "version": 0}, 409)["error"]["code"] == "CONFLICT"
    wrong = admin("PUT", "settings", {"settings": {"context_swapping": 1}}, 400)
    assert wrong["error"]["path"] == "settings.context_swapping"
    answer = world.post({"model": "small", "max_tokens": 5, "messages": [{"role": "user", "content": "w " * 90}]})
    assert "swapped" in answer.headers["x-bastion-context-warning"]


# -- the library ----------------------------------------------------------------------------------------------


def test_a_card_is_kept_exported_and_imported_without_losing_a_field(api: Api):
    made = api("POST", "characters", {"card": CARD}, 201)
    assert (made["name"], made["card"]["spec"]) == ("Ann", "chara_card_v3")
    assert made["card"]["data"]["extensions"] == CARD["data"]["extensions"]
    exported = api("GET", f"characters/{made['id']}/export")
    assert exported == made["card"]
    png = api("GET", f"characters/{made['id']}/export?format=png")
    assert png.content.startswith(b"\x89PNG")
    again = api("POST", "characters/import", png.content, 201)
    assert again["card"] == made["card"]
    assert api("POST", "lorebooks/import", png.content, 400)["error"]["message"]


def test_world_info_becomes_a_lorebook_with_warnings_for_what_is_not_honoured(api: Api):
    entry = {"uid": 0, "key": ["moon"], "content": "Rust.", "vectorized": True}
    made = api("POST", "lorebooks", {"book": {"entries": {"0": entry}}}, 201)
    assert {"path": "entries.0.vectorized", "code": "not-honoured"} in made["warnings"]
    assert api("GET", f"lorebooks/{made['id']}")["book"] == made["book"]


def test_a_memory_s_keys_are_kept_and_not_honoured(api: Api):
    made = api("POST", "memories", {"text": "x", "keys": ["moon"]}, 201)
    assert (made["keys"], made["warnings"]) == (["moon"], [{"path": "keys", "code": "not-honoured"}])
    assert api("POST", "memories", {"text": "x"}, 201)["warnings"] == []


def test_things_of_the_library_are_replaced_by_version_listed_and_removed(api: Api):
    made = api("POST", "memories", {"id": "m", "text": "one", "priority": 2}, 201)
    api("POST", "memories", {"id": "m", "text": "two"}, 409)
    changed = api("PUT", "memories/m", {"text": "two", "version": made["version"]})
    assert (changed["text"], changed["version"]) == ("two", 2)
    api("PUT", "memories/m", {"text": "three", "version": 1}, 409)
    assert [one["text"] for one in api("GET", "memories")["data"]] == ["two"]
    api("DELETE", "memories/m", status=204)
    api("GET", "memories/m", status=404)
    api("PUT", "memories/m", {"text": "x"}, 404)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"\x89PNG\r\n\x1a\n", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"PK\x03\x04" + b"x" * 100, 400),
        (b"x" * 11_000_000, 413),
    ],
)
def test_a_file_that_is_no_card_is_refused(api: Api, body: bytes, status: int):
    assert api("POST", "characters/import", body, status)["error"]["code"]
