# The Lambda artefact and its tools. Each tool with heavy pins of its own lives in an environment of its own.
UV := $(VENV)/bin/uv
ARCH ?= x86_64
PYTHON313 := $(shell infra/python313)
SAM := SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=$${AWS_DEFAULT_REGION:-us-east-1} .venv-sam/bin/sam

.PHONY: artefact lint-template lock-tools emulators node

# SAM CLI: build, validate, deploy; also brings cfn-lint, the SAM translator and the Runtime Interface Emulator.
.venv-sam/.stamp: requirements-sam.lock | $(VENV)/bin/python
	$(UV) venv --quiet --clear --python $(VENV)/bin/python .venv-sam
	$(UV) pip sync --quiet --python .venv-sam --require-hashes requirements-sam.lock
	touch $@

# The managed runtime's side of the artefact's tests.
.venv-lambda/.stamp: requirements-lambda.lock | $(VENV)/bin/python
	$(UV) venv --quiet --clear --python "$(PYTHON313)" .venv-lambda
	$(UV) pip sync --quiet --python .venv-lambda --require-hashes requirements-lambda.lock
	touch $@

# The AWS of the tests: ministack, and dynalite for a second opinion on conditional writes. ministack runs functions on
# its own interpreter: it must be the runtime's version, as compiled packages in a layer are.
.venv-emulator/.stamp: requirements-emulator.lock | $(VENV)/bin/python
	$(UV) venv --quiet --clear --python "$(or $(PYTHON313),$(VENV)/bin/python)" .venv-emulator
	$(UV) pip sync --quiet --python .venv-emulator --require-hashes requirements-emulator.lock
	touch $@

tests/node/node_modules/.package-lock.json: tests/node/package-lock.json
	cd tests/node && npm ci --silent --no-audit --no-fund
	touch $@

emulators: .venv-emulator/.stamp

node: tests/node/node_modules/.package-lock.json

# What `sam deploy` uploads: always from an empty folder, since a cached build that failed once reports success.
# Without a Python 3.13 there is none (bytecode and tests need it), and the tests that run it are not collected.
ifeq ($(PYTHON313),)
artefact: .venv-sam/.stamp
	@echo "no Python 3.13 found: the Lambda artefact is not built"
else
artefact: .venv-sam/.stamp .venv-lambda/.stamp vocab
	rm -rf .build/sam .build/sam-cache && mkdir -p .build
	PATH="$(dir $(PYTHON313)):$$PATH" PYTHON313="$(PYTHON313)" UV="$(abspath $(UV))" ARCH=$(ARCH) \
	    $(SAM) build --template template.yaml --build-dir .build/sam --cache-dir .build/sam-cache \
	    --parameter-overrides Architecture=$(ARCH) > .build/sam.log 2>&1 || { cat .build/sam.log; exit 1; }
	@du -sm .build/sam/*/ | sort -n
endif

lint-template: .venv-sam/.stamp
	$(SAM) validate --lint --template template.yaml
	.venv-sam/bin/cfn-lint --regions us-east-1 -- template.yaml infra/*.yaml

# Anew from the newest versions; the lock files carry hashes and no addresses.
lock-tools:
	echo aws-sam-cli | $(UV) pip compile - --quiet --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --no-emit-index-url --no-emit-find-links --upgrade -o requirements-sam.lock
	$(UV) pip compile requirements-emulator.in --quiet --universal --python-version 3.11 --generate-hashes \
	    --no-header --no-annotate --no-emit-index-url --no-emit-find-links --upgrade -o requirements-emulator.lock
	echo awslambdaric | $(UV) pip compile - --quiet --universal --python-version 3.13 --generate-hashes \
	    --no-header --no-annotate --no-emit-index-url --no-emit-find-links --upgrade -o requirements-lambda.lock
