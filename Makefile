# The whole project from two commands: `make demo` and `make test`. `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
STAY ?= 0
export CARGO_TERM_COLOR ?= auto
SUIRO := target/release/suiro

.PHONY: help setup build deb try-package demo docs release test test-long check bench order fuzz clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what the other targets need (Debian packages, Rust, a Python environment); safe to repeat
	@scripts/setup

build: ## release binary at target/release/suiro (a compiler is installed first; 10 to 30 minutes the first time)
	@scripts/setup build
	@[ -e $(SUIRO) ] || echo "build: a release, 10 to 30 minutes the first time"
	@cargo build --release --locked -p suiro

deb: build ## Debian package of it in target/deb
	@scripts/setup package
	@scripts/deb

try-package: deb ## installs, breaks, upgrades and purges it in a fresh Debian 12 with its own systemd (a minute after make deb); OLDER=FILE.deb
	@scripts/setup try
	@scripts/try-package $(OLDER)

release: deb ## packages, tarball, bill of materials and checksums, in target/dist
	@scripts/release

docs: ## a site with search from docs/, in target/site; SERVE=8000 serves it on that port of this machine
	@scripts/setup docs
	@scripts/docs-site
	@$(if $(SERVE),python3 -m http.server --bind 127.0.0.1 --directory target/site $(SERVE),echo "the site is target/site; make docs SERVE=8000 serves it")

demo: build ## two switches, six guests, one real controller; STAY=1 leaves it running
	@scripts/setup demo
	@scripts/demo $(if $(filter 1,$(STAY)),--stay)

test: setup ## every test, real ports and real controllers included
	@scripts/test

test-long: setup ## what random frames and moves can find, at length, and Mininet under Faucet ten times (FRAMES=10000000, CHANGES=1000 of rules; the first run builds a release)
	@SUIRO_RUNG_FRAMES=1000000 cargo test --release --locked -p suiro-xdp --test rungs -- --nocapture
	@SUIRO_OFFLOAD_FRAMES=$(or $(FRAMES),10000000) cargo test --release --locked -p suiro-xdp --test offload -- --nocapture --test-threads=1
	@SUIRO_ORDER_FRAMES=$(or $(FRAMES),10000000) cargo test --release --locked -p suiro-port --test past -- --nocapture --test-threads=1
	@SUIRO_WHY_FRAMES=100000 cargo test --release --locked -p suiro-datapath --test datapath why:: -- --nocapture
	@cargo build --release --locked -p suiro
	@SUIRO_FAUCET_ROUNDS=10 cargo test --release --locked -p suiro-acceptance --test controllers mininet:: -- --nocapture --test-threads=1
	@SUIRO_RULE_CHANGES=$(or $(CHANGES),1000) cargo test --release --locked -p suiro-acceptance --test cli moves:: -- --nocapture --test-threads=1
	@SUIRO_DAMAGES=1000 cargo test --release --locked -p suiro-node --lib damage:: -- --nocapture

check: setup ## lint gate: format, clippy, docs, dependencies, the layer rule
	@scripts/check

bench: setup build ## our figures beside Open vSwitch's and the Linux bridge's (about 20 minutes)
	@$(SUIRO) bench flow
	@$(SUIRO) bench node
	@$(SUIRO) bench wire

order: setup ## frames under a thousand moves a second, kernel and workers: none may be overtaken; FRAMES=10000000
	@SUIRO_ORDER_FRAMES=$(or $(FRAMES),10000000) cargo test --release --locked -p suiro-xdp --test steer order:: -- --nocapture --test-threads=1
	@SUIRO_STEERED_FRAMES=$(or $(FRAMES),10000000) cargo test --release --locked -p suiro-datapath --test datapath stay_in_order -- --nocapture

fuzz: setup ## every fuzz target, SECONDS_EACH=60, from the kept corpora
	@scripts/fuzz $(or $(SECONDS_EACH),60)

clean: ## remove what was built, and what an interrupted demo left behind
	@scripts/demo --clean || true
	@rm -rf target fuzz/target fuzz/artifacts .venv
