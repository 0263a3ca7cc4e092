# carrick: make alone builds; make help lists.

GO      ?= go
BIN     := $(CURDIR)/bin
SANDBOX := $(BIN)/carrick-sandbox
RELEASE ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)

.DEFAULT_GOAL := build

.PHONY: build
build: ## build bin/carrick
	$(GO) build -trimpath -ldflags "-s -w -X main.release=$(RELEASE) -X main.commit=$(COMMIT)" -o $(BIN)/carrick ./cmd/carrick

.PHONY: image
image: ## an image of carrick, without a daemon: bin/carrick-image.tar; IMAGE=REGISTRY/NAME:TAG pushes it; ARCH=arm64
	CGO_ENABLED=0 GOOS=linux GOARCH=$(or $(ARCH),$(shell $(GO) env GOARCH)) $(GO) build -trimpath \
		-ldflags "-s -w -X main.release=$(RELEASE) -X main.commit=$(COMMIT)" -o $(BIN)/image/carrick ./cmd/carrick
	cd .ci/image && $(GO) run . -o $(BIN)/carrick-image.tar -version $(RELEASE) $(if $(IMAGE),-push $(IMAGE)) $(BIN)/image/carrick

.PHONY: sandbox
sandbox: ## build bin/carrick-sandbox: the two control planes (10 minutes the first time)
	$(MAKE) --no-print-directory -C cluster/sandbox OUT=$(SANDBOX)

.PHONY: demo
demo: build sandbox ## the wizard on two control planes on this machine
	$(BIN)/carrick demo $(GUIDE)

.PHONY: man
man: ## write the man pages into bin/man: carrick.1 and one a command
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || date +%s) $(GO) test -count=1 -ldflags "-X carrick/cmd/carrick.release=$(RELEASE)" \
		-run '^TestManPages$$' ./cmd/carrick -man $(BIN)/man

.PHONY: demo-cast
demo-cast: build sandbox ## record a walk through the demo: testdata/cast/GUIDE.cast
	$(GO) run ./ui/cast -o testdata/cast/$(or $(GUIDE),renku).cast -title "carrick demo $(or $(GUIDE),renku)" -- \
		$(BIN)/carrick demo $(or $(GUIDE),renku) --autoplay --pace 1.5

.PHONY: test test-all test-program test-guides test-younger
test: build sandbox ## the tests, on real control planes; of many that are much alike, such as those of faults, one in three (CARRICK_TURN)
	@$(MAKE) --no-print-directory -k -j3 test-program test-guides test-younger

test-all: export CARRICK_ALL := 1
test-all: test ## all tests, without leaving any out (about twice as long)

# Three lanes that wait more than they work and take about as long, on control planes of
# their own.
YOUNGER := ./steps/ondemand/... ./steps/interlink/... ./steps/vsphere/...
TEST := CARRICK_SANDBOX=$(SANDBOX) $(GO) run ./cluster/clustertest/share $(GO) test -p 1 -timeout 45m
test-program:
	$(TEST) ./assets/... ./cluster/... ./cmd/... ./ui/...
	cd .ci/image && $(GO) test ./...
test-guides:
	$(TEST) $$($(GO) list ./steps/... | grep -vxF "$$($(GO) list $(YOUNGER))")
test-younger:
	$(TEST) $(YOUNGER)

.PHONY: lint
lint: $(BIN)/staticcheck ## gofumpt, vet, staticcheck
	$(GO) vet ./...
	cd cluster/sandbox && $(GO) vet ./...
	cd .ci/image && $(GO) vet ./...
	@out=$$($(BIN)/gofumpt -l cmd ui steps cluster assets .ci/image); test -z "$$out" || { echo "not gofumpt's style: $$out"; exit 1; }
	$(BIN)/staticcheck ./...
	cd cluster/sandbox && $(BIN)/staticcheck ./...

$(BIN)/staticcheck: .ci/tools/go.mod
	cd .ci/tools && $(GO) build -o $(BIN)/ honnef.co/go/tools/cmd/staticcheck mvdan.cc/gofumpt

.PHONY: verify
verify: sandbox ## the proof: crashes, faults, rights, hostile input, secrets, fuzzing; one table; GUIDES="renku liqo" for some
	@rm -f $(CASES); echo "each lane writes bin/prove-LANE.log"; date +%T
	@$(MAKE) --no-print-directory -k -j4 prove-guides prove-rights prove-program prove-fuzz; lanes=$$?; date +%T; \
		$(GO) run ./cluster/clustertest/cases/table -want crash,fault,right,hostile,secret,fuzz $(CASES) && exit $$lanes

# The lanes of verify. Each guide, and each lane but that of fuzzing, has a sandbox of its own.
CASES := $(BIN)/cases.jsonl
PROVE := CARRICK_PROOF=1 CARRICK_GUIDES="$(GUIDES)" CARRICK_CASES=$(CASES) CARRICK_SANDBOX=$(SANDBOX) $(GO) test -count=1 -timeout 60m

.PHONY: prove-guides prove-rights prove-program prove-fuzz
prove-guides:
	$(PROVE) -p 2 -run '^(TestCrashes|TestFaults)$$' $(if $(GUIDES),$(GUIDES:%=./steps/%),./steps/...) >$(BIN)/prove-guides.log 2>&1
prove-rights:
	$(PROVE) -run '^Test(Rights|Secrets)OfEveryGuide$$' ./cmd/carrick >$(BIN)/prove-rights.log 2>&1
prove-program:
	$(PROVE) -p 1 -run '^TestHostile' ./cmd/carrick ./steps >$(BIN)/prove-program.log 2>&1
prove-fuzz: # takes what the others leave
	CARRICK_CASES=$(CASES) WORKERS=1 TARGETS=3 NICE=19 .ci/fuzz 60s 4s >$(BIN)/prove-fuzz.log 2>&1

.PHONY: ci
ci: test lint conformance bench-short ## what is run on every change
	cd cluster/sandbox && $(GO) test ./...

.PHONY: conformance
conformance: sandbox ## what carrick writes, under strict validation by a real API server
	CARRICK_SANDBOX=$(SANDBOX) $(GO) test -count=1 -timeout 30m -run Conformance ./steps/...

.PHONY: bench
bench: sandbox ## the budgets, as ratios measured in one run
	CARRICK_SANDBOX=$(SANDBOX) $(GO) test -run '^$$' -bench . -benchtime 20x -timeout 30m ./... | $(GO) run ./cluster/clustertest/budgets

# Benchmarks that take minutes by what they are.
MINUTES := Growth|Idle|Memory

.PHONY: bench-short
bench-short: sandbox ## the same, in a short run: without idle, memory and growth
	CARRICK_SANDBOX=$(SANDBOX) $(GO) test -run '^$$' -bench . -skip '$(MINUTES)' -benchtime 1x -timeout 30m ./... | $(GO) run ./cluster/clustertest/budgets -skip '$(MINUTES)'

.PHONY: golden
golden: ## write the goldens anew; look at the diff
	$(GO) test ./ui ./steps/... ./cmd/... -update

.PHONY: clean
clean: ## remove bin
	rm -rf $(BIN)

.PHONY: help
help:
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "%-12s %s\n", $$1, $$2}'
