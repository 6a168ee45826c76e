# make run     the main job on the simulated provider, no network needed
# make check   format, vet, staticcheck, unit tests; under two minutes
# make test    everything, with the real OpenCode clients and agents; what CI runs
# make agents  real agent programs on the simulated provider
# make bench   figures beside the real OpenCode server
# make sim     the simulation, a hundred thousand steps; SEED=n replays a run
# make mutants breaks rules on purpose; each must be noticed

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X rouse.Version=$(VERSION)
STATIC  := $(GO) tool -modfile=tools/go.mod staticcheck
SECTION  = @printf '\n==== %s (%s)\n' "$(1)" "$$(date -u +%H:%M:%S)"

SIM_CHECKS ?= 1000

.PHONY: sim mutants build run check test bench fmt lint unit race peers agents clean

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/rouse ./cmd/rouse

run: build
	./bin/rouse drill tour

fmt:
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "not formatted:"; echo "$$out"; exit 1; }

lint: fmt
	$(GO) vet ./...
	$(STATIC) ./...

unit:
	$(GO) test -short ./...

check: lint unit

race:
	$(call SECTION,tests with the race detector)
	GORACE=atexit_sleep_ms=0 $(GO) test -race -short -timeout 20m ./...

# A thousand runs of about a hundred steps; SEED=n replays the one that failed.
sim:
	$(call SECTION,simulation)
	$(GO) test -count=1 -run TestSimulation -timeout 20m ./internal/sim -rapid.checks=$(SIM_CHECKS) $(if $(SEED),-rapid.seed=$(SEED))

# Breaks rules on purpose; each must be noticed by the simulation.
mutants:
	$(GO) run ./internal/sim/mutants

peers: build
	$(call SECTION,real clients)
	peers=$$(scripts/peers.sh) && ROUSE_PEERS=$$peers ROUSE_BINARY=$(CURDIR)/bin/rouse \
		$(GO) test -count=1 -timeout 25m -skip '^TestAgent' ./test/...

# Real agent programs on the simulated provider; scripts/agents.sh says which
# ones cannot run here, and why.
agents: build
	$(call SECTION,real agents)
	peers=$$(scripts/peers.sh) && agents=$$(scripts/agents.sh) && \
		ROUSE_PEERS=$$peers ROUSE_AGENTS=$$agents ROUSE_BINARY=$(CURDIR)/bin/rouse \
		$(GO) test -count=1 -timeout 25m -run '^TestAgent' ./test/...

test:
	$(call SECTION,format vet staticcheck)
	$(MAKE) --no-print-directory lint
	$(MAKE) --no-print-directory race
	$(call SECTION,long tests)
	$(GO) test -timeout 20m $$($(GO) list ./... | grep -v /test$$)
	$(MAKE) --no-print-directory sim
	$(MAKE) --no-print-directory peers
	$(MAKE) --no-print-directory agents

bench: build
	peers=$$(scripts/peers.sh) && ROUSE_PEERS=$$peers ROUSE_BINARY=$(CURDIR)/bin/rouse $(GO) run ./bench $(BENCH)

clean:
	rm -rf bin .cache
