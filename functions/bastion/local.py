"""The same app on localhost: ``make run``, or a container."""

from __future__ import annotations

import os
import sys

import uvicorn

from bastion.app import create_app
from bastion.bootstrap import bootstrap, log_to_stdout
from bastion.config import Config
from bastion.config_file import ConfigError

__all__ = ["main"]


def main() -> int:
    """Serve until interrupted."""
    try:
        config = Config.from_environ(os.environ)
    except ConfigError as error:
        print(f"bastion: {error}", file=sys.stderr)
        return 2
    for provider, variable in config.file.unavailable.items():
        print(f"bastion: {variable} is not set, so the models of {provider} are not offered", file=sys.stderr)
    if config.demo:
        print(_welcome(config))
    log_to_stdout()
    app = create_app(bootstrap(config))
    uvicorn.run(app, host=config.host, port=config.port, log_level="warning", access_log=False, server_header=False)
    return 0


def _welcome(config: Config) -> str:
    base = f"http://{config.host}:{config.port}"
    return f"""Bastion listens on {base}

  base URL   {base}/v1
  demo key   sk-local-demo
  models     demo-small (60 words), demo-medium (240), demo-large (2000), demo-gpt (1024 o200k tokens)
  store      {config.data / "bastion.sqlite3"}

A conversation too long for demo-small, and what became of it:

  curl -si {base}/v1/chat/completions -H 'Authorization: Bearer sk-local-demo' \\
    -H 'Content-Type: application/json' -d @- <<'JSON'
  {{"model": "demo-small", "max_tokens": 10, "routing": {{"chat_id": "first-light"}}, "messages": [
    {{"role": "system", "content": "Answer in one short sentence."}},
    {{"role": "user", "content": "{_words("alpha", 40)}"}},
    {{"role": "assistant", "content": "{_words("beta", 10)}"}},
    {{"role": "user", "content": "What did I just ask?"}}]}}
  JSON

  curl -s {base}/api/v2/chats/first-light/context-audit -H 'Authorization: Bearer sk-local-demo'
"""


def _words(word: str, count: int) -> str:
    return " ".join([word] * count)


if __name__ == "__main__":
    sys.exit(main())
