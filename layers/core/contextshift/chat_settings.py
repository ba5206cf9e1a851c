"""What a chat may say of its own prompts: its settings and its parameters, checked alike when written and when used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contextshift.errors import InvalidInput, InvalidSetting
from contextshift.scene import read_layout
from contextshift.settings import Overrides, check_overrides
from contextshift.vouching import is_ambiguous

__all__ = ["check_chat_settings", "check_params"]

_OWN = ("blocks", "names", "impersonation_prompt")
"""What a chat's settings hold beside the switches of `routing`."""
_NAMES = ("auto", "prefix", "none")
_NOT_A_CHAT_S = ("pin", "exclude", "chat_id")
_RESERVED = frozenset({"model", "messages", "stream", "stream_options", "routing", "n"})
_LONGEST_PROMPT = 200_000


def check_chat_settings(given: Mapping[str, Any], path: str = "settings") -> Overrides:
    """Check a chat's settings and return its switches. Raises InvalidInput with the path of the one at fault.

    >>> check_chat_settings({"names": "prefix", "headroom": 0.5})
    {'headroom': 0.5}
    """
    read_layout(given.get("blocks"), f"{path}.blocks")
    names, prompt = given.get("names"), given.get("impersonation_prompt")
    if names is not None and names not in _NAMES:
        raise InvalidSetting(f"must be one of {', '.join(_NAMES)}", f"{path}.names", "invalid_value")
    if prompt is not None and not (isinstance(prompt, str) and len(prompt) <= _LONGEST_PROMPT):
        raise InvalidSetting("must be a text", f"{path}.impersonation_prompt", "invalid_type")
    own = {name: value for name, value in given.items() if name not in _OWN}
    switches = check_overrides(own, path)
    for name in _NOT_A_CHAT_S:
        if name in switches:
            raise InvalidSetting("messages of a chat say this themselves", f"{path}.{name}", "unsupported_setting")
    return switches


def check_params(given: Mapping[str, Any], path: str = "params") -> None:
    """Raise InvalidInput for what no generation sends.

    That is a parameter that a generation decides itself, and a name that some readers would take for a known one.
    """
    for name in given:
        if name in _RESERVED:
            raise InvalidInput("a generation decides this itself", f"{path}.{name}", "reserved_parameter")
        if is_ambiguous(name):
            raise InvalidInput("a name differs from a known one only by case", f"{path}.{name}", "ambiguous_key")
