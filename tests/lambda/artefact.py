"""Where `make artefact` puts things, and the environments in which Lambda would run them."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / ".build/sam"
PYTHON = ROOT / ".venv-lambda/bin/python"
FUNCTIONS = ("ApiFunction", "StreamFunction")
LAYERS = ("CoreLayer", "DepsLayer", "VocabLayer")


def python_path(function: str) -> str:
    """What is importable on Lambda, besides the runtime's own."""
    return os.pathsep.join(map(str, [BUILD / function, BUILD / "CoreLayer/python", BUILD / "DepsLayer/python"]))


def environment(function: str, **more: str) -> dict[str, str]:
    """A function's environment: nothing of this machine's but PATH, and credentials that are nobody's."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": python_path(function),
        "LAMBDA_TASK_ROOT": str(BUILD / function),
        "AWS_LAMBDA_FUNCTION_NAME": function,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1769",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
        "BASTION_VOCAB": str(BUILD / "VocabLayer/vocab"),
        "BASTION_CONTROL_TABLE": "control",
        "BASTION_CHATS_TABLE": "chats",
        **more,
    }


def run_python(function: str, code: str, **more: str) -> str:
    """Runs `code` as the function's process would, and returns what it prints."""
    done = subprocess.run(
        [PYTHON, "-c", code],
        cwd=BUILD / function,
        env=environment(function, **more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rie() -> Path:
    """AWS's Runtime Interface Emulator, which the SAM CLI's wheel brings along."""
    machine = "arm64" if os.uname().machine in ("aarch64", "arm64") else "x86_64"
    (binary,) = ROOT.glob(f".venv-sam/lib/python*/site-packages/samcli/local/rapid/aws-lambda-rie-{machine}")
    return binary
