# What people type. Every target sets up what it needs in .venv and build/, and does so again only when its sources
# changed. `make` alone lists the targets.
PYTHON ?= python3
CXX ?= g++
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
LAWS ?= 10000
FUZZ ?= 100000
FOLDERS ?= 10000
KILLS ?= 100
SERVE_KILLS ?= 50
TRAIN_KILLS ?= 20
PARTITIONS ?= 12
SETS ?=
ARM_MODELS ?= 1000

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export PYTHONDONTWRITEBYTECODE := 1

PIP := $(BIN)/python -m pip install -qq -c constraints.txt
NATIVE := $(shell find native -type f -name '*.[ch]pp' -o -type f -name '*.[ch]' -o -type f -name '*.inc' -o -type f -name CMakeLists.txt)
SOURCES := pyproject.toml CMakeLists.txt $(filter-out native/tests/% native/fuzz/%,$(NATIVE)) $(shell find src -type f -not -path '*/__pycache__/*')
PYTHONS := src tests bench examples tools
TEST_JOBS ?= 2
COVERAGE := build/coverage
FORMATTED := $(filter %.cpp %.hpp %.inc,$(NATIVE))
say = @printf '\033[1m== %s\033[0m\n' "$(1)"
WITH_TOOLS = PATH="$(CURDIR)/$(BIN):$$PATH" CC="$(CC)" CXX="$(CXX)"
comma := ,

# $(call configure,folder,options) and $(call native_build,folder,options): warnings are errors there
configure = $(WITH_TOOLS) cmake -S . -B build/$(1) -G Ninja -DBEAMWOOD_PYTHON=OFF -DBEAMWOOD_TESTS=ON $(2) \
  --log-level=WARNING >/dev/null
native_build = $(call configure,$(1),-DBEAMWOOD_DEV=ON $(2)) && $(WITH_TOOLS) cmake --build build/$(1) -- --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test test-page test-pages test-rivals test-serve test-resume test-image test-ecosystem test-ray \
  test-ray-sets test-ray-kills test-ray-network bench laws fuzz fuzz-foreign sanitize sanitize-short sanitize-python \
  test-clang test-arm promises coverage-native lint format tidy types native docs wheels pins release clean
.DELETE_ON_ERROR:

help:
	@echo "make demo       set up, train on library records, measure, compare the variants, search, write the model"
	@echo "make test       set up, lint, types, native tests, Python tests with coverage: what must be green (minutes)"
	@echo "make test-page  the search page in Chromium: typing, beam, explanations, dark, phone"
	@echo "make test-pages code of the pages, also what takes long: what they show is what is printed"
	@echo "make test-serve overload, swaps, SIGTERM, killed workers, hostile requests: CAMPAIGNS='swap kill' chooses"
	@echo "make test-resume  KILLS=$(KILLS) trainings killed at random moments: each goes on to the same file"
	@echo "make test-image the server image from Debian's packages, run without rights; the Kubernetes and compose files, played"
	@echo "make test-ecosystem  other programs that work with ours, each for real: MCP, a hub, data sets, MLflow, Annif, Prometheus"
	@echo "make test-ray   install Ray, Dask and Spark in build/ray; train and score on nodes that come and die"
	@echo "make test-ray-sets   whole data sets trained on 1, 2, 3 Ray nodes, one killed: equal files; SETS='FOLDER …' for more"
	@echo "make test-ray-kills  TRAIN_KILLS=$(TRAIN_KILLS) in trainings; SERVE_KILLS=$(SERVE_KILLS) under load: answers whole, declared or an error"
	@echo "make test-ray-network  as root: nodes in network namespaces, delay, loss, PARTITIONS=$(PARTITIONS): never a wrong answer"
	@echo "make bench      the paper's benchmark on small stand-ins and against rivals, with plots: build/bench-report"
	@echo "make laws       the laws on LAWS=$(LAWS) random models"
	@echo "make fuzz       FUZZ=$(FUZZ) damaged model files"
	@echo "make fuzz-foreign  FOLDERS=$(FOLDERS) damaged copies of each foreign format"
	@echo "make test-rivals   install PECOS, napkinXC, omikuji, LibMultiLabel, Annif; compare answers both ways"
	@echo "make sanitize   native tests and fuzzing under ASan + UBSan, native tests under TSan"
	@echo "make sanitize-short  a part of it in minutes, for every commit"
	@echo "make sanitize-python  Python tests of a module under ASan and UBSan: SANITIZED='tests/storage' chooses"
	@echo "make test-clang native tests and a part of the Python tests, compiled by clang"
	@echo "make test-arm   native tests and ARM_MODELS=$(ARM_MODELS) models on emulated 64-bit ARM: the same bits"
	@echo "make promises   an hour of campaigns against what we promise, into docs/trust/promises.md; PROMISES=long, ONLY='2 3'"
	@echo "make coverage-native  lines of native code that the native tests run, with a floor"
	@echo "make lint       ruff and clang-format, as in make test"
	@echo "make format     rewrite the sources as make lint wants them"
	@echo "make tidy       clang-tidy over the native core (minutes)"
	@echo "make docs       build the documentation into build/site, no warning allowed"
	@echo "make wheels     build wheels for every Python found, check them, try each in a clean environment; WHEELS='--twice --zig'"
	@echo "make pins       renew constraints.txt: the versions of tools that all checks are run with"
	@echo "make release    say what a release still needs; GO=1 checks, builds wheels and sdist, tags"
	@echo "make clean      remove .venv, build and caches"
	@echo "PYTHON=$(PYTHON) CXX=$(CXX) JOBS=$(JOBS) may be given: make test PYTHON=python3.12"

# --- set-up: build tools, then the package, then the tools of developers -------------------------------------------

$(VENV)/.tools: constraints.txt
	@tools/machine "$(PYTHON)" "$(CXX)"
	$(call say,set up $(VENV))
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) "scikit-build-core>=0.10" "nanobind>=2.4" cmake ninja
	@touch $@

$(VENV)/.package: $(VENV)/.tools $(SOURCES)
	$(call say,build and install beamwood)
	@$(WITH_TOOLS) $(PIP) --no-build-isolation .
	@touch $@

$(VENV)/.developer: $(VENV)/.tools pyproject.toml | $(VENV)/.package
	$(call say,install the tools of developers)
	@$(WITH_TOOLS) $(PIP) --no-build-isolation ".[dev]"
	@touch $@

# --- what people run -----------------------------------------------------------------------------------------------

demo: $(VENV)/.package
	@$(BIN)/python examples/demo.py

bench: $(VENV)/.package
	@$(PIP) "matplotlib>=3.7"
	$(call say,the gauntlet: some ten minutes on two cores)
	@$(BIN)/python bench/rivals/install.py libpecos napkinxc
	@$(BIN)/beamwood bench bench/plans/small.toml --rivals build/rivals --out build/bench-report

# --- checks --------------------------------------------------------------------------------------------------------

test: lint types native coverage-native
	$(call say,Python tests)
	@rm -rf $(COVERAGE) && mkdir -p $(COVERAGE)
	@$(BIN)/python -m pytest -n $(TEST_JOBS) --dist loadfile --durations=10 --cov --cov-report=term \
	  --cov-report=json:$(COVERAGE)/report.json
	@$(BIN)/python tools/coverage_floor.py $(COVERAGE)/report.json
	$(call say,all green; the search page was not tried in a browser: make test-page does that)

# The search page in Debian's Chromium. Installs it where it can (root, apt); elsewhere it says what is missing.
test-page: $(VENV)/.package $(VENV)/.developer
	$(call say,the search page in a browser)
	@command -v chromium >/dev/null || [ "$$(id -u)" != 0 ] || \
	  (apt-get update -qq && apt-get install -qq -y chromium) >/dev/null 2>&1 || true
	@$(PIP) "playwright>=1.40" || true
	@$(BIN)/python tests/server/page.py || { code=$$?; [ $$code = 3 ] && [ -z "$(STRICT)" ] || exit $$code; }

test-pages: $(VENV)/.package $(VENV)/.developer
	$(call say,the pages$(comma) with what takes long)
	@BEAMWOOD_LONG_PAGES=1 $(BIN)/python -m pytest -n $(TEST_JOBS) tests/project/test_docs.py

test-serve: $(VENV)/.package $(VENV)/.developer
	$(call say,campaigns against the server (minutes each))
	@$(PIP) "schemathesis>=4" psutil
	@$(BIN)/python tests/campaigns/serve.py $(CAMPAIGNS)

test-resume: $(VENV)/.package
	$(call say,$(KILLS) trainings that are killed and go on)
	@$(BIN)/python tests/campaigns/resume.py --kills $(KILLS)

# Debian: apt-get install mmdebstrap buildah podman podman-compose runc catatonit netavark aardvark-dns prometheus. No
# registry is asked; needs root and some minutes of compiling.
test-image: $(VENV)/.package $(VENV)/.developer
	$(call say,the server image$(comma) built and run without a registry)
	@$(BIN)/python tests/campaigns/image.py

# Other programs bring requirements that must not touch ours: environments of their own, which share one build. Prometheus is
# Debian's package; npm brings the types of Grafana's dashboards. Where one of them is not there, its tests say so.
test-ecosystem: $(VENV)/.package
	$(call say,other programs that work with ours)
	@rm -rf build/ecosystem-wheel
	@$(WITH_TOOLS) $(BIN)/python -m pip wheel -qq --no-build-isolation --no-deps -w build/ecosystem-wheel .
	@$(PYTHON) -m venv --clear build/ecosystem
	@build/ecosystem/bin/python -m pip install -qq -c tests/ecosystem/constraints.txt "mcp>=2" huggingface_hub datasets mlflow skops \
	  scikit-learn pandas pyarrow safetensors uvicorn uvloop httptools orjson pyyaml pytest pytest-timeout numpy scipy typer rich
	@build/ecosystem/bin/python -m pip install -qq build/ecosystem-wheel/*.whl
	@$(PYTHON) -m venv --clear build/annif
	@build/annif/bin/python -m pip install -qq "annif==1.4.*" typer rich
	@build/annif/bin/python -m pip install -qq --no-deps build/ecosystem-wheel/*.whl
	@command -v npm >/dev/null && npm install --silent --no-fund --no-audit --prefix build/grafana @grafana/schema@13 typescript@5 || true
	@BEAMWOOD_ANNIF=build/annif/bin/python PYTHONPATH=tests:. build/ecosystem/bin/python -m pytest -q -c /dev/null --rootdir . \
	  tests/ecosystem

# Ray brings many packages: an environment of its own. The wheel is built once more from what is compiled already. The
# recipe for Spark needs Java.
build/ray/.ready: $(SOURCES) | $(VENV)/.package
	$(call say,install beamwood with Ray$(comma) Dask and Spark into build/ray)
	@[ -x build/ray/bin/python ] || $(PYTHON) -m venv build/ray
	@rm -rf build/ray/wheel
	@$(WITH_TOOLS) $(BIN)/python -m pip wheel -qq --no-build-isolation --no-deps -w build/ray/wheel .
	@build/ray/bin/python -m pip install -qq --force-reinstall --no-deps build/ray/wheel/*.whl
	@build/ray/bin/python -m pip install -qq "beamwood[ray,serve]" "dask[bag]" $(if $(shell command -v java),pyspark pandas) \
	  setuptools pytest pytest-timeout hypothesis
	@touch $@

CLUSTER := build/ray/bin/python tests/campaigns/cluster
test-ray: build/ray/.ready
	$(call say,Ray nodes that come and die)
	@build/ray/bin/python -m pytest -W default tests/on_ray
	@$(CLUSTER)/shards.py

test-ray-sets: build/ray/.ready
	$(call say,whole data sets on 1$(comma) 2 and 3 Ray nodes)
	@$(CLUSTER)/training.py --sets $(SETS)

test-ray-kills: build/ray/.ready
	$(call say,$(TRAIN_KILLS) kills in training$(comma) $(SERVE_KILLS) under load in serving)
	@$(CLUSTER)/training.py --kills $(TRAIN_KILLS)
	@$(CLUSTER)/serve_kills.py --kills $(SERVE_KILLS)

test-ray-network: build/ray/.ready
	$(call say,Ray nodes in network namespaces$(comma) cut off from each other: needs root)
	@$(CLUSTER)/network.py --partitions $(PARTITIONS)

lint: $(VENV)/.developer
	$(call say,lint)
	@$(BIN)/python tools/pins.py --check
	@$(BIN)/ruff check -q $(PYTHONS)
	@$(BIN)/ruff format -q --check $(PYTHONS) || (echo "Run: make format"; exit 1)
	@$(BIN)/clang-format --dry-run -Werror $(FORMATTED) || (echo "Run: make format"; exit 1)

format: $(VENV)/.developer
	@$(BIN)/ruff check -q --fix $(PYTHONS)
	@$(BIN)/ruff format -q $(PYTHONS)
	@$(BIN)/clang-format -i $(FORMATTED)

types: $(VENV)/.package $(VENV)/.developer
	$(call say,types)
	@cd build && ../$(BIN)/mypy --config-file ../pyproject.toml --no-error-summary -p beamwood
	@cd tests && MYPYPATH=. ../$(BIN)/mypy --config-file support/mypy.ini --no-error-summary .
	@for room in bench tools examples; do (cd $$room && MYPYPATH=. ../$(BIN)/mypy --config-file ../pyproject.toml \
	  --explicit-package-bases --no-warn-return-any --no-error-summary .) || exit 1; done

native: $(VENV)/.package
	$(call say,native tests)
	@$(call native_build,native-tests,)
	@build/native-tests/native/tests/beamwood_tests

laws: $(VENV)/.package $(VENV)/.developer
	$(call say,the laws on $(LAWS) random models)
	@BEAMWOOD_LAWS_MODELS=$(LAWS) BEAMWOOD_INDEX_CASES=$(LAWS) $(BIN)/python -m pytest -s -o timeout=0 tests/test_laws.py tests/lexical/test_index.py

fuzz: $(VENV)/.package $(VENV)/.developer
	$(call say,$(FUZZ) damaged model files)
	@BEAMWOOD_FUZZ_FILES=$(FUZZ) $(BIN)/python -m pytest -s tests/attacks/test_model_files.py

test-rivals: $(VENV)/.package $(VENV)/.developer
	$(call say,models of the rivals$(comma) which are installed into build/rivals)
	@BEAMWOOD_RIVALS=1 $(BIN)/python -m pytest -s tests/rivals

fuzz-foreign: $(VENV)/.package $(VENV)/.developer
	$(call say,$(FOLDERS) damaged copies of each foreign format)
	@BEAMWOOD_FUZZ_FOLDERS=$(FOLDERS) $(BIN)/python -m pytest -s tests/attacks/test_foreign_folders.py

# Debian: apt-get install g++-aarch64-linux-gnu qemu-user. The test that forks fails inside the emulator.
ARM := qemu-aarch64 -L /usr/aarch64-linux-gnu
test-arm: native
	$(call say,64-bit ARM by emulation: native tests$(comma) then the answers of $(ARM_MODELS) models beside this machine's)
	@command -v qemu-aarch64 aarch64-linux-gnu-g++ >/dev/null || \
	  { echo "Install g++-aarch64-linux-gnu and qemu-user first."; exit 1; }
	@$(call native_build,native-arm,-DCMAKE_TOOLCHAIN_FILE=tools/arm.cmake)
	@BEAMWOOD_NO_FORK=1 $(ARM) build/native-arm/native/tests/beamwood_tests
	@here=$$(build/native-tests/native/fuzz/beamwood_law_models $(ARM_MODELS)) && \
	  there=$$($(ARM) build/native-arm/native/fuzz/beamwood_law_models $(ARM_MODELS)) && \
	  echo "here $$here, ARM $$there" && [ "$$here" = "$$there" ]

promises: $(VENV)/.package $(VENV)/.developer
	$(call say,what we promise$(comma) broken on purpose: docs/trust/promises.md)
	@$(PIP) "schemathesis>=4" psutil
	@$(BIN)/python tests/promises/run.py $(if $(filter long,$(PROMISES)),--long) $(if $(SIZE),--size $(SIZE)) \
	  --page docs/trust/promises.md $(ONLY)
	$(call say,a bug of each kind$(comma) which its campaign must find)
	@BEAMWOOD_DEAR_BUGS=1 $(BIN)/python -m pytest tests/promises/test_planted.py

# Which lines of the core the native tests run, by gcov: CXX must be a gcc. The floor is in pyproject.toml.
coverage-native: $(VENV)/.developer
	$(call say,lines of native code that the native tests run)
	@$(call native_build,native-coverage,-DBEAMWOOD_COVERAGE=ON)
	@find build/native-coverage -name '*.gcda' -delete
	@build/native-coverage/native/tests/beamwood_tests
	@$(BIN)/gcovr -j $(JOBS) --print-summary --txt build/native-coverage.txt build/native-coverage

# The short form, for every commit, tries fewer damaged forests.
sanitize: FORESTS := 20000
sanitize-short: FORESTS := 300
sanitize sanitize-short: $(VENV)/.tools
	$(call say,native tests under ASan and UBSan)
	@$(call native_build,native-asan,-DBEAMWOOD_SANITIZE=address$(comma)undefined)
	@build/native-asan/native/tests/beamwood_tests
	$(call say,$(FORESTS) damaged forests under ASan and UBSan)
	@build/native-asan/native/fuzz/beamwood_fuzz $(FORESTS)
	$(call say,native tests under TSan)
	@$(call native_build,native-tsan,-DBEAMWOOD_SANITIZE=thread)
	@TSAN_OPTIONS="die_after_fork=0 halt_on_error=1 $$TSAN_OPTIONS" build/native-tsan/native/tests/beamwood_tests
	$(call say,no reports)

# The module itself with sanitizers, in a folder that goes before the installed one. Python must load them before all else.
# SIGBUS is ours (mapped.hpp), an allocation that is too large is refused as it is without them, and all takes longer.
SANITIZED ?= tests/test_engine.py tests/test_laws.py tests/storage tests/attacks
sanitize-python: $(VENV)/.package $(VENV)/.developer
	$(call say,Python tests of a module under ASan and UBSan)
	@$(WITH_TOOLS) $(PIP) --no-build-isolation --no-deps --upgrade --target build/sanitized . \
	  --config-settings=cmake.define.BEAMWOOD_SANITIZE=address$(comma)undefined --config-settings=build-dir=build/module-asan
	@LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0:handle_sigbus=0:allocator_may_return_null=1 \
	  PYTHONPATH=$(CURDIR)/build/sanitized $(BIN)/python -m pytest -o timeout=1800 $(SANITIZED)

# The other compiler: native tests, and Python tests of a module that it made.
test-clang: private CXX := clang++
test-clang: private CC := clang
test-clang: $(VENV)/.package $(VENV)/.developer
	$(call say,native tests by clang)
	@$(call native_build,native-clang,)
	@grep -q '^CMAKE_CXX_COMPILER:.*clang' build/native-clang/CMakeCache.txt
	@build/native-clang/native/tests/beamwood_tests
	$(call say,Python tests of a module by clang)
	@$(WITH_TOOLS) $(PIP) --no-build-isolation --no-deps --upgrade --target build/clang . \
	  --config-settings=build-dir=build/module-clang
	@grep -q '^CMAKE_CXX_COMPILER:.*clang' build/module-clang/CMakeCache.txt
	@PYTHONPATH=$(CURDIR)/build/clang $(BIN)/python -m pytest tests/test_engine.py tests/test_laws.py tests/storage

tidy: $(VENV)/.developer
	$(call say,clang-tidy)
	@$(call configure,tidy,-DCMAKE_EXPORT_COMPILE_COMMANDS=ON)
	@$(BIN)/clang-tidy -quiet -p build/tidy $(filter %.cpp,$(filter native/tests/% native/fuzz/%,$(NATIVE)))

# --- what people read and install ----------------------------------------------------------------------------------

$(VENV)/.docs: $(VENV)/.tools pyproject.toml | $(VENV)/.package
	$(call say,install the tools of the documentation)
	@$(WITH_TOOLS) $(PIP) --no-build-isolation ".[docs]"
	@touch $@

docs: $(VENV)/.docs
	$(call say,documentation)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@! grep -n "<blockquote>" build/site/api.html || { echo "An example of a docstring became a quotation: docs/docstrings.py"; exit 1; }
	@echo "open build/site/index.html; for the search box: $(PYTHON) -m http.server -d build/site"

wheels:
	@tools/machine "$(PYTHON)" "$(CXX)"
	$(call say,wheels)
	@CXX="$(CXX)" $(PYTHON) tools/wheels.py $(WHEELS)

pins:
	$(call say,renew constraints.txt)
	@$(PYTHON) tools/pins.py

release:
	@$(PYTHON) tools/release.py $(if $(GO),--go)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
