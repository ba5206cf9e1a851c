"""The model's name in a multipart form (RFC 7578), and its place; the rest of the form is nobody's business here."""

from __future__ import annotations

from dataclasses import dataclass

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from contextshift.errors import InvalidBody, InvalidInput

__all__ = ["FormBody", "read_form"]

_FIELDS = 1_000
"""Parts of a form at the most."""


@dataclass(frozen=True, slots=True)
class FormBody:
    """A form as it came, and where its ``model`` stands."""

    raw: bytes
    model: str
    start: int
    end: int

    @property
    def size(self) -> int:
        """Bytes of it."""
        return len(self.raw)

    @property
    def reply(self) -> int | None:
        """No form asks for a reply limit."""
        return None

    def sent(self, upstream_name: str) -> bytes:
        """Return the form as it came, with another value of ``model`` where the provider calls it so."""
        if upstream_name == self.model:
            return self.raw
        return self.raw[: self.start] + upstream_name.encode() + self.raw[self.end :]


class _Places:
    """Follows a parser through a form and remembers where the values of ``model`` stand."""

    def __init__(self) -> None:
        self.found: list[tuple[int, int]] = []
        self._header = b""
        self._is_model = False
        self._span: tuple[int, int] | None = None
        self._parts = 0
        self._name = b""

    def part_begin(self) -> None:
        self._is_model, self._span = False, None
        self._parts += 1
        if self._parts > _FIELDS:
            raise InvalidBody(f"a form may hold at most {_FIELDS} parts", None, "too_many_parts")

    def header_field(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def header_end(self) -> None:
        if self._name.lower() == b"content-disposition":
            _, options = parse_options_header(self._header)
            self._is_model = options.get(b"name") == b"model"
        self._name = self._header = b""

    def part_data(self, _data: bytes, start: int, end: int) -> None:
        if self._is_model:
            self._span = (self._span[0] if self._span else start, end)

    def part_end(self) -> None:
        if self._is_model:
            self.found.append(self._span or (0, 0))


def read_form(raw: bytes, content_type: str) -> FormBody:
    """Read a form's model. Raises InvalidInput where there is none, or more than one, and InvalidBody."""
    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if not boundary:
        raise InvalidBody("the form's boundary is not named", None, "invalid_form")
    places = _Places()
    callbacks = {
        "on_part_begin": places.part_begin,
        "on_header_field": places.header_field,
        "on_header_value": places.header_value,
        "on_header_end": places.header_end,
        "on_part_data": places.part_data,
        "on_part_end": places.part_end,
    }
    try:
        parser = MultipartParser(boundary, callbacks)  # type: ignore[arg-type]
        parser.write(raw)
        parser.finalize()
    except FormParserError as error:
        raise InvalidBody("the form cannot be read", None, "invalid_form") from error
    if len(places.found) != 1:
        reason = "missing" if not places.found else "duplicate_key"
        raise InvalidInput("model must be named once", "model", reason)
    start, end = places.found[0]
    try:
        return FormBody(raw, raw[start:end].decode(), start, end)
    except UnicodeDecodeError:
        raise InvalidInput("model must be the name of a model", "model", "invalid_utf8") from None
