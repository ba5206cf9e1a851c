"""Configuration: the environment, read once, through a mapping. Nothing else in the service reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bastion.config_file import ConfigError, FileConfig, read_file

__all__ = ["DEPLOYMENT", "Config"]

DATA = Path(__file__).parent / "data"
DEMO = DATA / "demo.toml"
DEPLOYMENT = DATA / "deployment.toml"
LAMBDA_BODY = 4_500_000
"""Bytes of a request body on Lambda: its 6 MB event limit counts the body in base64."""
LOCAL_BODY = 20_000_000


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that a start needs to know."""

    file: FileConfig
    port: int = 8787
    data: Path = Path(".bastion")
    vocab: Path = Path("layers/vocab")
    control_table: str | None = None
    chats_table: str | None = None
    dynamodb_endpoint: str | None = None
    secrets_endpoint: str | None = None
    """Of an emulator of Secrets Manager and the Parameter Store."""
    cors_origins: Sequence[str] = ()
    strategies: Sequence[str] = ()
    """Entry points of context strategies to load: those named, and no other."""
    interceptors: Sequence[str] = ()
    """Entry points of interceptors to load, for chats."""
    max_body: int = LOCAL_BODY
    timeout: float = 600.0
    first_byte: float = 300.0
    """Seconds until the first content of a streamed answer."""
    demo: bool = False
    embedded_store: bool = True
    """Whether a file of our own may be the store; on Lambda it would vanish."""
    host: str = "127.0.0.1"

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Config:
        """Read the configuration. Raises ConfigError.

        ``BASTION_CONFIG`` names the file; without it the demo runs, or on Lambda the shipped deployment.
        """
        on_lambda = "AWS_LAMBDA_FUNCTION_NAME" in environ
        given = environ.get("BASTION_CONFIG")
        path = Path(given) if given else (DEPLOYMENT if on_lambda else DEMO)
        return cls(
            file=read_file(path, environ),
            port=_number(environ, "PORT", 8787),
            data=Path(environ.get("BASTION_DATA", ".bastion")),
            vocab=Path(environ.get("BASTION_VOCAB", Path(__file__).parents[2] / "layers" / "vocab")),
            control_table=environ.get("BASTION_CONTROL_TABLE") or None,
            chats_table=environ.get("BASTION_CHATS_TABLE") or None,
            dynamodb_endpoint=environ.get("BASTION_DYNAMODB_ENDPOINT") or None,
            secrets_endpoint=environ.get("BASTION_SECRETS_ENDPOINT") or None,
            cors_origins=_names(environ, "BASTION_CORS_ORIGINS"),
            strategies=_names(environ, "BASTION_STRATEGIES"),
            interceptors=_names(environ, "BASTION_INTERCEPTORS"),
            max_body=LAMBDA_BODY if on_lambda else LOCAL_BODY,
            timeout=float(_number(environ, "BASTION_TIMEOUT", 600)),
            first_byte=float(_number(environ, "BASTION_FIRST_BYTE_TIMEOUT", 300)),
            demo=path == DEMO,
            embedded_store=not on_lambda,
            host=environ.get("HOST") or "127.0.0.1",
        )


def _names(environ: Mapping[str, str], name: str) -> list[str]:
    return [one.strip() for one in environ.get(name, "").split(",") if one.strip()]


def _number(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name, "")
    if not text:
        return default
    if not text.isdecimal():
        raise ConfigError(f"{name} must be a whole number")
    return int(text)
