# `make` alone lists what there is. Each target sets up what it needs, once.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
PORT ?= 8000
PEERS := _build/peers
# Files are UTF-8, whatever the machine's language.
export PYTHONUTF8 := 1

.DEFAULT_GOAL := help
.PHONY: help book serve test test-all lint check lighthouse offline translations notebooks benchmarks experiments search clean setup lock new fork

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */\1|/' | awk -F'|' '{printf "make %-12s %s\n", $$1, $$2}'

book: $(READY)  ## execute what changed and build the site (STRICT=1: warnings are errors; DRAFTS=1: with unfinished translations)
	@$(RUN) book/tools/build.py $(if $(STRICT),--strict) $(if $(DRAFTS),--drafts)

serve: $(READY)  ## serve the site on localhost:8000; the open page follows each save
	@$(RUN) book/tools/serve.py $(PORT)

test: $(READY)  ## every promise once, on the book as it is built now: up to 25 minutes on two cores
	@$(RUN) book/tools/build.py --strict
	@OMP_NUM_THREADS=1 $(RUN) -m pytest -n auto --dist worksteal --durations=10 -m "not nightly"

test-all: $(READY)  ## every test there is, as each night: every combination, notebook and kill, in 45 minutes and more (FILES=tests/library: some)
	@$(RUN) book/tools/build.py --strict
	@OMP_NUM_THREADS=1 $(RUN) -m pytest -n auto --dist worksteal --durations=10 $(FILES)

lint: $(READY)  ## style, imports, types and workflows
	@$(RUN) -m ruff check . && $(RUN) -m ruff format --check -q .
	@PYTHONPATH=.:book:engine $(VENV)/bin/lint-imports --no-logo --no-cache
	@$(RUN) -m mypy
	@$(VENV)/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

check: lint  ## style, types, and the tests nearest to what you changed: two minutes on two cores
	@OMP_NUM_THREADS=1 $(RUN) -m pytest -n auto -p changed -m "not slow and not browser and not nightly"

offline: book  ## the whole book as one PDF, as an EPUB and as an archive, into the site (by Chromium)
	@$(RUN) book/tools/offline.py $(if $(STRICT),--strict)
	@$(RUN) book/tools/build.py $(if $(STRICT),--strict)

lighthouse: book  ## Lighthouse's figures for every page, on its mobile setting (installs it: 185 MB; 10 quiet minutes)
	@$(RUN) benchmarks/lighthouse/measure.py

translations: book  ## bring the catalogues of book/locale up to the English book, and count (STRICT=1: as for a release)
	@$(RUN) book/tools/translations.py $(if $(STRICT),--strict)

notebooks: book  ## write notebooks/*.ipynb, with the numbers that the build computed
	@$(RUN) book/tools/write_notebooks.py

benchmarks: $(READY) $(PEERS)/.ready  ## measure against other libraries, and record (20 quiet minutes)
	@for question in attention step compared floor compiled generation generation_elsewhere compiled_generation forward_pass memory; do \
		echo "benchmarks.$$question"; $(RUN) -W ignore -m benchmarks.$$question --record || exit 1; done
	@$(RUN) book/tools/build.py
	@$(RUN) book/tools/write_notebooks.py

experiments: $(READY)  ## estimate and run the missing long experiments (ONLY=speedup: one plan)
	@$(RUN) -m experiments.harness.run $(if $(ONLY),--only $(ONLY))

search: $(READY)  ## estimate and run the missing searches for architectures (ONLY=transformer-0: one)
	@$(RUN) -m experiments.search.run $(if $(ONLY),--only $(ONLY))

clean:  ## remove what was built and executed, and the environment (not _build/experiments, the checkpoints)
	[ ! -d _build ] || find _build -mindepth 1 -maxdepth 1 ! -name experiments -exec rm -rf {} +
	rm -rf $(VENV) book/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis

setup: $(READY)  ## install what all of these need into .venv, once (a few minutes; 2.1 GB with PyTorch for CPUs)

# uv writes the versions and their hashes below the two lines that say how. An upgrade takes what was published a week
# ago or earlier, and renews the locks of tests, too; tests/kernels/colab.lock follows Colab, by hand.
WEEK := --exclude-newer "7 days"
newest = @grep '^\#' $(1) > $(1).new && printf '%s\n' $(2) | uv pip compile - $(3) --no-config \
	--python-version 3.11 --no-annotate --no-header $(WEEK) -q >> $(1).new && mv $(1).new $(1)
lock:  ## write requirements.lock again from pyproject.toml, by uv (UPGRADE=1: to the newest versions)
	@head -2 requirements.lock > requirements.lock.new
	@cp requirements.lock .requirements.lock && uv pip compile pyproject.toml --extra training --group test --universal \
		--python-version 3.11 --no-annotate --no-header --generate-hashes $(if $(UPGRADE),--upgrade $(WEEK)) -q -o .requirements.lock >/dev/null
	@cat .requirements.lock | grep -v '^#' >> requirements.lock.new && mv requirements.lock.new requirements.lock && rm .requirements.lock
ifdef UPGRADE
	$(call newest,tests/kernels/current.lock,ipykernel ipython)
	$(call newest,engine/tests/jupyter_book.lock,filelock matplotlib 'jupyter-book<2')
	$(call newest,engine/tests/themes.lock,furo sphinx-basic-ng,--no-deps)
	$(call newest,engine/tests/walk_through.lock,labml-nn,--no-deps)
endif

new: $(READY)  ## begin a chapter, with its picture and place (CHAPTER=labml_primer/primer/name), or an experiment (EXPERIMENT=name)
	@$(if $(EXPERIMENT),$(RUN) -m experiments.harness.new_plan $(EXPERIMENT),$(RUN) book/tools/new_chapter.py $(CHAPTER))

fork: $(READY)  ## give a fork its own address, in every file, notebook and test (URL=https://github.com/you/your-book)
	@$(RUN) book/tools/fork.py $(URL)

# A virtual environment with the versions of requirements.lock, whose hashes pip checks. torch comes first
# and by itself, so that it brings what its own build needs; a CPU build, whose hash is another, is taken where
# pip knows of one.
$(READY): requirements.lock book/package-lock.json
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or later is needed, and $(PYTHON) is not here. Name one: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed; $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another: make PYTHON=/path/to/python3.11"; exit 1; }
	@[ -w . ] || { echo "$(CURDIR) cannot be written. Clone the book into a folder that can."; exit 1; }
	@echo "Setting up $(VENV) (once, a few minutes)"
	@$(PYTHON) -m venv $(VENV)
	@$(RUN) -m pip install -q --disable-pip-version-check "$$(grep -o '^torch==[0-9.]*' requirements.lock)"
	@$(RUN) -m pip install -q --disable-pip-version-check --no-deps -r requirements.lock
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" npm ci --prefix book --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

# Packages that only the benchmarks need, in a folder outside the environment.
$(PEERS)/.ready: benchmarks/requirements.txt
	@$(RUN) -m pip install -q --disable-pip-version-check --no-deps --upgrade --target $(PEERS) -r $<
	@touch $@
