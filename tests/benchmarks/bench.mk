# The peers of `make bench ONLY="peers gateways"`, in an environment of their own: their pins are not ours.
.PHONY: peers lock-bench

.venv-bench/.stamp: requirements-bench.lock | $(BIN)/python
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-bench
	$(BIN)/uv pip sync --quiet --python .venv-bench --require-hashes requirements-bench.lock
	touch $@

tests/benchmarks/node/node_modules/.stamp: tests/benchmarks/node/package-lock.json
	cd tests/benchmarks/node && npm ci --silent --no-audit --no-fund
	touch $@

peers: .venv-bench/.stamp tests/benchmarks/node/node_modules/.stamp

lock-bench: | $(BIN)/python
	$(BIN)/uv pip compile requirements-bench.in --quiet --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --no-emit-index-url --no-emit-find-links --upgrade -o requirements-bench.lock
