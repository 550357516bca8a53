# What is done often, by name. Needs go, git, bash and make; a C compiler for
# the race detector. Everything else is fetched into a cache on first use.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
FUZZTIME ?= 10s
BENCHTIME ?=
SOAK ?= 1h
SCHEMA ?= docs/pawl.schema.json

.PHONY: help build test attack places check lint e2e e2e-all cluster-test cluster-chaos bench-cluster bench sim sim-board chaos proof soak night powercut fuzz mutate size schema release picture web web-check web-browse clean

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  make \1\t/' | expand -t 18

build: ## build ./bin/pawl, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/pawl ./cmd/pawl

test: ## run all tests, with the race detector where a C compiler is
	@scripts/test

attack: ## try some 500 ways out of the box in every way that this machine can play, and print what refused each
	@$(GO) test ./cmd/pawl -run 'TestAttack(Classes)?$$' -count=1 -v -timeout 30m -attack-all | grep -vE '^(===| *--- PASS: TestAttack(Classes)?/)'

places: ## tell the small story of a user in some 130 places that root can make here, and print what it came to
	@$(GO) test ./cmd/pawl -run 'TestPlaces' -count=1 -v -timeout 60m -places-all | grep -vE '^(=== |    --- PASS: TestPlaces/)'

check: ## formatting, vet (linux and darwin), lint, the map
	@scripts/check

lint: ## golangci-lint, and prettier and eslint for the pages
	@"$$(scripts/tool golangci-lint)" run
	@scripts/web lint

e2e: ## drive real agent programs from npm against a scripted model server
	@scripts/e2e

e2e-all: ## the same in every scenario, which takes minutes
	@PAWL_E2E_ALL=1 E2E_TIMEOUT=$${E2E_TIMEOUT:-60m} scripts/e2e

cluster-test: ## build a Temporal server once, and work tasks on it
	@scripts/temporal/build >/dev/null
	@$(GO) test ./internal/do/cluster/... ./cmd/pawl-cluster -count=1

cluster-chaos: ## kill, stop and cut off workers, database and engine while a board is worked, put it back from copies and change gates; FAULTS=20 SEED=1
	@scripts/temporal/build >/dev/null
	@$(GO) test ./cmd/pawl-cluster -run 'TestTeamUnderFaults$$' -count=1 -timeout 3h -v -chaos-faults $${FAULTS:-20} -chaos-seed $${SEED:-1}
	@$(GO) test ./internal/do/cluster -run 'TestClusterChaos$$' -count=1 -timeout 3h -v -chaos-faults $${FAULTS:-20} -chaos-seed $${SEED:-1}

bench-cluster: ## print what 20 workers of 5 slots, and four of one, reach on this machine with agents that do nothing; TASKS=200
	@scripts/temporal/build >/dev/null
	@$(GO) test ./internal/do/cluster -run 'TestFigures$$' -count=1 -timeout 30m -v -figures $${TASKS:-200} | grep -v '^=== '
	@$(GO) test ./internal/do/cluster -run 'TestFigures$$' -count=1 -timeout 30m -v -figures 40 -figure-workers 4 -figure-slots 1 | grep -v '^=== '

bench: ## print what pawl reaches of its figures; BENCHTIME=1s runs all benchmarks after it
	@scripts/bench $(BENCHTIME)

sim: ## play 100,000 loops with each selector of strategies and print what they reach
	@$(GO) run ./scripts/sim

sim-board: ## play ten boards of 2,000 tasks and 100 agents, killed and interfered with, and hold them to their laws
	@$(GO) run ./scripts/sim -board

chaos: ## kill pawl hundreds of times while agents work a board or deliver, and hold it to its promises
	@$(GO) test ./cmd/pawl -run TestChaos -count=1 -v -timeout 30m -chaos-kills 100
	@$(GO) test ./cmd/pawl -run TestKilledDelivery -count=1 -v -timeout 60m -delivery-kills 300
	@$(GO) test ./internal/do/merge ./internal/do/workspace -run 'FullDisk|DiskIsFull' -count=1 -full-disk-all
	@$(GO) test ./internal/do/merge -run TestGitIsKilled -count=1 -timeout 30m -kill-step 1

proof: ## work a board of forty tasks: ten are cheats, and three landings turn a later gate red
	@$(GO) test ./cmd/pawl -run 'TestScripts$$/^proof_board$$' -count=1 -v -timeout 20m -proof-tasks 40

soak: ## work a board that is filled again and again while things go wrong, for an hour; SOAK=10m is shorter
	@$(GO) test ./cmd/pawl -run 'TestSoak$$' -count=1 -v -timeout 3h -soak $(SOAK)

night: ## leave the autopilot alone with sixty tasks and every fault of a night, ten times; NIGHTS=1 SEED=7 repeats one
	@$(GO) test ./cmd/pawl -run 'TestNight$$' -count=1 -v -timeout 4h -nights $${NIGHTS:-10} -night-seed $${SEED:-1}

hour: build ## lead three public projects from a fresh clone to a landed board, with a scripted agent; CLONES=folder
	@scripts/hour/run bin/pawl $(CLONES)

powercut: ## cut the power a hundred times under a board, on a disk that forgets what was not synced; needs root and FUSE
	@$(GO) test ./cmd/pawl -run 'TestPowerCut$$' -count=1 -v -timeout 60m -power-cuts 100

fuzz: ## run every fuzz test for FUZZTIME
	@scripts/fuzz $(FUZZTIME)

mutate: ## break a hundred lines, one at a time, and list those that no test misses; takes an hour or two
	@nice $(GO) run ./scripts/mutate

size: ## lines of product code by room, and the figures that only get better
	@$(GO) run ./scripts/size

schema: ## write the JSON schema of pawl.yaml
	@mkdir -p $(dir $(SCHEMA))
	$(GO) run ./cmd/pawl schema > $(SCHEMA).new
	@mv $(SCHEMA).new $(SCHEMA)

release: ## make a release in dist/: archives, install.sh, npm, formula, container file, checksums: VERSION=v1.2.0
	@$(GO) run ./scripts/release -version '$(VERSION)'

picture: build ## play pawl demo and draw it as the moving picture of the README; take the picture of a run, with chromium
	@$(GO) test ./cmd/pawl -run '^TestPicture$$' -count=1 -draw
	@folder=$$(mktemp -d) && PAWL=$$PWD/bin/pawl WIDTHS=1280 SCHEMES=dark PROJECTS=story scripts/web pictures "$$folder" changes && \
		{ ! test -e "$$folder"/changes-*.png || mv "$$folder"/changes-*.png docs/images/run.png; }; rm -r "$$folder"

web: ## build the pages into internal/ask/web/dist; needs node
	@scripts/web build

web-check: ## format, lint, types and unit tests of the pages, and that what is committed is what they make
	@scripts/web check

web-browse: ## every page and key in chromium, over a real server
	@scripts/web browse

clean: ## remove what was built
	rm -rf bin dist
