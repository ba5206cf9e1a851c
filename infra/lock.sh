#!/usr/bin/env bash
# Writes the hashed requirement files from pyproject.toml; with --check, fails where they have drifted.
# A version that a file already pins stays pinned; delete the file to take the newest of everything.
set -euo pipefail
cd "$(dirname "$0")/.."
export UV_PYTHON_DOWNLOADS=never

compile() {  # FILE EXTRA-ARGUMENTS…
    .venv/bin/uv pip compile pyproject.toml --quiet --universal --generate-hashes \
        --no-header --no-annotate --no-emit-index-url --no-emit-find-links "${@:2}" --output-file "$1" >/dev/null
}

target=. check=${1:-}
if [ "$check" = --check ]; then
    target=$(mktemp -d)
    trap 'rm -rf "$target"' EXIT
    mkdir -p "$target/layers/deps"
    cp requirements.lock requirements-dev.lock "$target"
    cp layers/deps/requirements.txt "$target/layers/deps"
fi
compile "$target/requirements-dev.lock" --extra local --group dev
# The smaller files pin what the development file pins.
compile "$target/requirements.lock" --extra local --constraint "$target/requirements-dev.lock"
compile "$target/layers/deps/requirements.txt" --constraint "$target/requirements-dev.lock"
if [ "$check" = --check ]; then
    for file in requirements.lock requirements-dev.lock layers/deps/requirements.txt; do
        diff -u "$file" "$target/$file" || { echo "$file has drifted from pyproject.toml: run make lock" >&2; exit 1; }
    done
fi
