# Targets for people and for CI. `make` alone lists them. Needs Go and, where a target says so, gcc.

GO      ?= go
BUILD   := build
CROSS   := aarch64-linux-gnu-gcc
QEMU    := qemu-aarch64 -L /usr/aarch64-linux-gnu
SUDO    := $(shell test "$$(id -u)" = 0 || echo sudo)
APT_GET := $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get

PLATFORMS := linux/amd64 linux/arm64 windows/amd64 windows/arm64 darwin/arm64 freebsd/amd64
TAGS      := puregpu_syscalln nogpu
# Packages that call no library are the same under every tag, and programs call what the packages do.
UNTAGGED  := puregpu/(runtime/(gpu|gpu/internal/(blockpool|points|work)|rendezvous|driver/simdriver)|symbols|internal/(explore(/.*)?|apitest|extract|programs|kernelobject|testkernels)|tools/(bindgen|extract|symbols|ctxprobe|gpubench|faults|kernelgen|explore(/.*)?))$$
# Packages that do their work on one goroutine: under the race detector nothing is to be seen of them.
SERIAL    := puregpu/(runtime/gpu/internal/(points|work)|symbols|internal/(apitest|extract|programs|kernelobject)|tools/(bindgen|extract|symbols|ctxprobe|faults|kernelgen|explore|explore/internal/.*))$$

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-print-directory

.PHONY: help
help: ## list the targets
	@awk -F ': .*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: generate ## generate the bindings, then run the examples on the GPU there is, or say what is missing
	@$(GO) run ./runtime/examples/first
	@$(GO) run ./runtime/examples/compile
	@$(GO) run ./runtime/examples/pipeline
	@$(GO) run ./runtime/examples/mlp
	@$(GO) run ./runtime/examples/allreduce
	@$(GO) run ./runtime/examples/serve -selftest
	@for p in saxpy ncclrank; do $(GO) run ./runtime/examples/$$p 2>/dev/null || echo "$$p: not run: it needs a GPU of NVIDIA's"; done
	@$(GO) run ./tools/gpuinfo

.PHONY: test
test: ## vet and test everything: without cgo, and with the race detector (needs gcc)
	@echo "on two cores that have nothing else to do this takes about five minutes, and longer the first time"
	$(GO) vet ./...
	cd testdata/callbench && $(GO) vet ./...
	@$(MAKE) -j2 test-plain test-race

.PHONY: test-tags
test-tags: ## test under each build tag what is another under it
	@set -e; for tag in $(TAGS); do \
		set -x; \
		CGO_ENABLED=0 $(GO) test -short -tags $$tag $$($(GO) list ./... | grep -vE '$(UNTAGGED)'); \
		{ set +x; } 2>/dev/null; \
	done

# The longest tests keep one core busy for half of the time: side by side the two use both. To test copies of the examples, and to
# build them for other systems, is left to build-matrix; and to the half without the race detector what -short leaves out.
.PHONY: test-plain test-race
test-plain:
	CGO_ENABLED=0 $(GO) test -skip '^TestCopyOut$$/^(tests|other_systems)$$' $$($(GO) list ./... | grep -v 'runtime/gpu$$')
	CGO_ENABLED=0 $(GO) test ./runtime/gpu
test-race:
	CGO_ENABLED=1 $(GO) test -race ./runtime/gpu
	CGO_ENABLED=1 $(GO) test -race -short $$($(GO) list ./... | grep -vE 'runtime/gpu$$|$(SERIAL)')

.PHONY: soak
soak: ## submit a million random operations to simulated GPUs, under the race detector if there is gcc; SEED=n repeats a run
	@set -e; race=; export CGO_ENABLED=0; \
	if command -v gcc >/dev/null; then race=-race CGO_ENABLED=1; fi; \
	set -x; \
	$(GO) test $$race -count=1 -timeout=2h -v -run='^TestRandom$$' ./runtime/gpu -gpu.soak $(if $(SEED),-gpu.seed=$(SEED))

.PHONY: faults
faults: ## put each mended fault back, and see that a test catches it (needs gcc); docs/faults.md lists them
	@echo "on two cores that have nothing else to do this takes about 12 minutes"
	$(GO) run ./tools/faults

.PHONY: explore
explore: ## run the runtime in as many orders of its goroutines as TIME allows (10m); RACE=1 with the race detector, SEED=n as before
	$(GO) run ./tools/explore -time $(or $(TIME),10m) $(if $(RACE),-race) $(if $(SEED),-seed $(SEED)) $(if $(RUN),-run '$(RUN)')

.PHONY: test-abi
test-abi: setup-abi ## prove every function's ABI against a C library, here and for arm64 under qemu
	CGO_ENABLED=0 $(GO) test -count=1 -run Echo -v ./gen
	CGO_ENABLED=0 $(GO) test -count=1 ./runtime/dl
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) test -c -o $(BUILD)/abi-arm64.test ./gen
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) test -c -o $(BUILD)/dl-arm64.test ./runtime/dl
	cd examples/cublas && CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) test -c -o ../../$(BUILD)/cublas-arm64.test ./cublas
	cd gen && PUREGPU_TEST_CC=$(CROSS) $(QEMU) ../$(BUILD)/abi-arm64.test -test.run Echo -test.v
	cd runtime/dl && PUREGPU_TEST_CC=$(CROSS) $(QEMU) ../../$(BUILD)/dl-arm64.test -test.short
	cd examples/cublas/cublas && PUREGPU_TEST_CC=$(CROSS) $(QEMU) ../../../$(BUILD)/cublas-arm64.test -test.run ABI -test.v

.PHONY: setup-abi
setup-abi: ## install what test-abi needs: qemu and a cross compiler
	@if ! command -v qemu-aarch64 >/dev/null || ! command -v $(CROSS) >/dev/null || ! test -e /usr/aarch64-linux-gnu/lib/libc.so.6; then \
		$(APT_GET) update && $(APT_GET) install -y --no-install-recommends qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross; \
	fi

.PHONY: bench-call
bench-call: ## compare C calls with cgo's (needs gcc)
	cd testdata/callbench && $(GO) run .

.PHONY: build-matrix
build-matrix: ## build and vet for every platform and tag; check that nogpu makes static programs
	@set -e; for platform in $(PLATFORMS); do \
		echo "build and vet for $$platform"; \
		export CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/}; \
		$(GO) build ./...; \
		$(GO) vet ./...; \
	done
	@set -e; export CGO_ENABLED=0 GOOS=linux; for arch in amd64 arm64; do for tag in $(TAGS); do \
		echo "build and vet for linux/$$arch with -tags $$tag"; \
		GOARCH=$$arch $(GO) build -tags $$tag ./...; \
		GOARCH=$$arch $(GO) vet -tags $$tag ./...; \
	done; done
	CGO_ENABLED=0 GOOS=linux $(GO) build -tags nogpu -o $(BUILD)/gpuinfo-nogpu ./tools/gpuinfo
	@if readelf -lW $(BUILD)/gpuinfo-nogpu | grep -E '^ *(INTERP|DYNAMIC) '; then \
		echo "$(BUILD)/gpuinfo-nogpu is dynamic: with the tag nogpu nothing may be linked in that loads libraries" >&2; exit 1; \
	fi
	@echo "$(BUILD)/gpuinfo-nogpu is static"
	CGO_ENABLED=0 $(GO) test -run '^TestCopyOut$$' ./runtime/examples

.PHONY: test-bindgen
test-bindgen: ## build, vet and test the module that binds cuBLAS with bindgen, for every platform; it needs no cuBLAS
	cd examples/cublas && CGO_ENABLED=0 $(GO) test ./...
	@set -e; cd examples/cublas; for platform in $(PLATFORMS); do \
		echo "build and vet examples/cublas for $$platform"; \
		export CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/}; \
		$(GO) build -o /dev/null .; \
		$(GO) vet ./...; \
	done
	cd examples/cublas && CGO_ENABLED=0 $(GO) run .

.PHONY: real-hip
real-hip: ## test packages hip, hiprtc and hipdriver against Debian's libamdhip64, which needs no AMD GPU to be opened
	GO="$(GO)" tools/bundle/hip.sh $(BUILD)/hip

.PHONY: real-nvidia
real-nvidia: ## test packages nvrtc, nvjitlink, nvml and cudadriver against Debian's builds of NVIDIA's libraries, which need no GPU (55 MB to fetch)
	GO="$(GO)" tools/bundle/nvidia.sh $(BUILD)/nvidia

.PHONY: generate
generate: ## write the bindings anew from the symbol tables, and the Go functions of kernels
	$(GO) generate ./...
	cd examples/cublas && $(GO) generate ./...

.PHONY: check-generated
check-generated: ## fail if generate changes a file
	GO="$(GO)" tools/bundle/drift.sh

.PHONY: check-tidy
check-tidy: ## fail if go mod tidy would change a go.mod or go.sum
	$(GO) mod tidy -diff
	cd testdata/callbench && $(GO) mod tidy -diff
	cd examples/cublas && $(GO) mod tidy -diff

.PHONY: fmt
fmt: ## format the Go files
	$(GO) fmt ./...

.PHONY: size
size: ## compare a program that is linked with the bindings with one that is not: bytes and start-up time
	$(GO) run ./tools/size

.PHONY: gpu-bundle
gpu-bundle: ## put programs and tests into build/gpu, to be run on a machine with a GPU and no Go: build/gpu/run.sh
	GO="$(GO)" tools/bundle/gpu.sh $(BUILD)/gpu

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BUILD)/gpu $(BUILD)/hip $(BUILD)/nvidia $(BUILD)/*.test $(BUILD)/gpuinfo-nogpu
