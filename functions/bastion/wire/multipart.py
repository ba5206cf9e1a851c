"""The model's name in a multipart form (RFC 7578), and its place; the rest of the form is nobody's business here.

What is checked here must be what the provider reads, whichever parser it has. So a form is refused where two parsers
could read two things: a part with more than one name, or a name written in a way that only some understand; an
encoding of a part; a delimiter in the midst of a value; anything behind the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser

from bastion.wire.openai_chat import ROUTING_HEADER, check_model_name
from bastion.wire.relayed import default_model
from contextshift.errors import InvalidBody, InvalidInput

__all__ = ["FormBody", "read_form"]

_FIELDS = 1_000
"""Parts of a form at the most."""
_PARAMETER = re.compile(rb';[ \t]*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)=(?:"([^"\r\n]*)"|([^\s";,\\]+))[ \t]*')
"""One parameter of a header (RFC 9110, section 5.6.6), its name, and its value in quotes or without."""
_NOTHING_MORE = re.compile(rb"[; \t]*\Z")
_BOUNDARY = re.compile(rb"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
"""RFC 2046, section 5.1.1."""
_PLAIN_CODINGS = (b"7bit", b"8bit", b"binary")
_PLAIN_TEXT = re.compile(rb"text/plain(?:[ \t]*;[ \t]*charset=\"?(?:utf-8|us-ascii)\"?)?", re.IGNORECASE)
_NAME = re.compile(rb"(?! )[^\x00-\x1f\x7f\\]*(?<! )")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class FormBody:
    """A form as it came, and where its ``model`` stands; nowhere for a route's default."""

    raw: bytes
    model: str
    start: int = 0
    end: int = 0

    @property
    def size(self) -> int:
        """Bytes of it."""
        return len(self.raw)

    @property
    def reply(self) -> int | None:
        """No form asks for a reply limit."""
        return None

    @property
    def replies(self) -> int:
        """Nor for more than one reply of text."""
        return 1

    @property
    def only_text(self) -> bool:
        """A form brings a picture or sound."""
        return False

    @property
    def reference(self) -> str | None:
        """A form brings its files with it."""
        return None

    def sent(self, upstream_name: str) -> bytes:
        """Return the form as it came, with another value of ``model`` where the provider calls it so."""
        if upstream_name == self.model or not self.end:
            return self.raw
        return self.raw[: self.start] + upstream_name.encode() + self.raw[self.end :]


class _Places:
    """Follows a parser through a form and remembers where the values of ``model`` stand."""

    def __init__(self) -> None:
        self.found: list[tuple[int, int]] = []
        self.parts = 0
        self._field = bytearray()
        self._value = bytearray()
        self._headers: list[tuple[bytes, bytes]] = []
        self._is_model = False
        self._span: tuple[int, int] | None = None

    def part_begin(self) -> None:
        self._is_model, self._span = False, None
        self._headers.clear()
        self.parts += 1
        if self.parts > _FIELDS:
            raise InvalidBody(f"a form may hold at most {_FIELDS} parts", None, "too_many_parts")

    def header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def header_end(self) -> None:
        self._headers.append((bytes(self._field).lower(), bytes(self._value).strip()))
        self._field.clear()
        self._value.clear()

    def headers_finished(self) -> None:
        """Read the part's name from its headers. Raises InvalidInput where they can be read in two ways."""
        name, is_file = _name(self._headers)
        if name == b"routing":
            message = f"a form's settings are given in the header {ROUTING_HEADER}"
            raise InvalidInput(message, "routing", "unsupported_field")
        self._is_model = name == b"model"
        kinds = [value for header, value in self._headers if header == b"content-type"]
        if self._is_model and (is_file or not all(map(_PLAIN_TEXT.fullmatch, kinds))):
            raise InvalidInput("model must be plain text", "model", "invalid_type")

    def part_data(self, _data: bytes, start: int, end: int) -> None:
        if self._is_model:
            self._span = (self._span[0] if self._span else start, end)

    def part_end(self) -> None:
        if self._is_model:
            self.found.append(self._span or (0, 0))


def read_form(raw: bytes, content_type: str, path: str) -> FormBody:
    """Read the model of a form for a route. Raises InvalidInput where it is named twice or not at all, InvalidBody."""
    boundary = _parameters(content_type.encode("latin-1", "replace")).get(b"boundary", b"")
    if not _BOUNDARY.fullmatch(boundary):
        raise InvalidBody("the form's boundary is not named", None, "invalid_form")
    places = _followed(raw, boundary)
    _check_ends(raw, boundary, places.parts)
    default = default_model(path)
    if not places.found and default is not None:
        return FormBody(raw, default)
    if len(places.found) != 1:
        reason = "missing" if not places.found else "duplicate_key"
        raise InvalidInput("model must be named once", "model", reason)
    start, end = places.found[0]
    try:
        model = check_model_name(raw[start:end].decode())
    except UnicodeDecodeError:
        raise InvalidInput("model must be the name of a model", "model", "invalid_utf8") from None
    if _CONTROL.search(model):
        raise InvalidInput("a model's name has no control characters", "model", "invalid_value")
    return FormBody(raw, model, start, end)


def _followed(raw: bytes, boundary: bytes) -> _Places:
    places = _Places()
    callbacks = {
        "on_part_begin": places.part_begin,
        "on_header_field": places.header_field,
        "on_header_value": places.header_value,
        "on_header_end": places.header_end,
        "on_headers_finished": places.headers_finished,
        "on_part_data": places.part_data,
        "on_part_end": places.part_end,
    }
    try:
        parser = MultipartParser(boundary, callbacks)  # type: ignore[arg-type]
        parser.write(raw)
        parser.finalize()
    except FormParserError as error:
        raise InvalidBody("the form cannot be read", None, "invalid_form") from error
    return places


def _check_ends(raw: bytes, boundary: bytes, parts: int) -> None:
    """Raise InvalidBody where a line begins like a delimiter and is none, or where something follows the end.

    Some parsers take a line feed alone for the end of a line, and some read on behind the end.
    """
    lines = re.findall(rb"(?:\A|[\r\n])--" + re.escape(boundary), raw)
    if len(lines) != parts + 1 or not raw.rstrip(b" \t\r\n").endswith(b"--" + boundary + b"--"):
        raise InvalidBody("the form's delimiters can be read in two ways", None, "invalid_form")


def _name(headers: list[tuple[bytes, bytes]]) -> tuple[bytes, bool]:
    """Return a part's one name, and whether it is a file. Raises InvalidBody."""
    dispositions = [value for header, value in headers if header == b"content-disposition"]
    codings = [value.lower() for header, value in headers if header == b"content-transfer-encoding"]
    kinds = [value.lower() for header, value in headers if header == b"content-type"]
    coded = any(coding not in _PLAIN_CODINGS for coding in codings)
    if len(dispositions) != 1 or coded or len(kinds) > 1 or any(kind.startswith(b"multipart/") for kind in kinds):
        raise InvalidBody("a part of a form must have one content-disposition and no encoding", None, "invalid_form")
    parameters = _parameters(dispositions[0])
    name = parameters.get(b"name")
    if not name or not _NAME.fullmatch(name) or any(one.startswith(b"name*") for one in parameters):
        raise InvalidBody("a part of a form must have one plain name", None, "invalid_form")
    return name, any(one.startswith(b"filename") for one in parameters)


def _parameters(header: bytes) -> dict[bytes, bytes]:
    r"""Return the parameters of a header by their names in lower case. Raises InvalidBody where they are not plain.

    A backslash before a quotation mark ends the value for some parsers and not for others.
    """
    start = header.find(b";")
    found: dict[bytes, bytes] = {}
    while start >= 0 and not _NOTHING_MORE.match(header, start):
        one = _PARAMETER.match(header, start)
        name = one[1].lower() if one is not None else b""
        value = (one[2] if one[2] is not None else one[3]) if one is not None else b""
        if one is None or name in found or value.endswith(b"\\"):
            raise InvalidBody("a header of the form cannot be read in one way only", None, "invalid_form")
        found[name] = value
        start = one.end()
    return found
