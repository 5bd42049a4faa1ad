# Everything is done by one of these; `make` alone lists them. What is installed goes into .venv/, once.
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
SETTLED := settings.ini setup.py constraints.txt
STARTUP := $(VENV)/etc/ipython/startup/pages.py
# Two processes, each with whole files, whose tests share fixtures, in their order: the longest one is an early one.
PYTEST := python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=10
export PATH := $(CURDIR)/$(BIN):$(PATH)

.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help run demo test test-long check notebooks lab docs docs-check bench clean spark java dev jars pages quarto

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

run: spark java  ## rank the sample groups: which of them need attention, why, and what would help
	@echo "kafka-assign fleet compare samples/ -o runs --joins clicks+impressions"
	@kafka-assign fleet compare samples/ -o runs --joins clicks+impressions

demo: spark java dev jars  ## three consumers on a real Kafka: what a change of their group should do, and what it does
	@$(BIN)/python tools/demo.py

test: spark java dev jars pages  ## run every notebook, then everything in tests/
	$(PYTEST) tests

test-long: spark java dev jars pages  ## the long forms of the tests in random order, then every planted fault
	LONG=1 $(PYTEST) -p randomly tests
	python tools/mutants.py

check: spark java dev jars  ## what CI runs: notebooks executed, clean and in sync, docs-check, then everything in tests/
	@$(BIN)/python tools/notebooks.py check
	@$(BIN)/python tools/docs_check.py
	$(PYTEST) tests

notebooks: spark java dev  ## export, execute and clean every notebook, and write README.md
	@$(BIN)/python tools/notebooks.py write

lab: spark java dev  ## open the notebooks in JupyterLab
	@$(BIN)/jupyter trust nbs/*.ipynb nbs/*/*.ipynb > /dev/null  # else JupyterLab shows their pictures only after a run
	@$(BIN)/python -m jupyterlab --ContentsManager.pre_save_hook=tools.notebooks.clean_page nbs/index.ipynb

docs: quarto dev  ## build the site into _docs/ (needs quarto)
	@$(BIN)/python tools/notebooks.py docs

docs-check: spark java dev  ## check what the site shows: links, lines, words; with quarto, the built site, too
	@$(BIN)/python tools/docs_check.py

bench: spark java dev  ## run every benchmark (one to two hours); what they measure goes into benchmarks/measured.json
	@for file in $$(grep -l __main__ benchmarks/*.py); do \
	    echo "== $$file"; MEASURED=benchmarks/measured.json $(BIN)/python $$file || exit 1; done

clean:  ## remove what was made, .venv/ included
	rm -rf $(VENV) .cache .pytest_cache .hypothesis _proc _docs build dist runs *.egg-info nbs/nbdev.yml nbs/.quarto
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

quarto:
	@command -v quarto >/dev/null || { \
	    echo "make docs needs quarto on PATH: get it from https://quarto.org/docs/get-started/" >&2; exit 1; }

# Without a network there are no jars: what needs a broker is skipped.
jars: spark java
	@$(BIN)/python tools/jars.py >/dev/null || true

pages: spark java dev
	@$(BIN)/python tools/notebooks.py test

# What is installed, and stamps that say so: a second run installs nothing and works offline.
spark: $(VENV)/.spark
dev: $(VENV)/.dev $(STARTUP)
java: $(VENV)/.python
	@$(BIN)/python tools/java.py || $(MAKE) -s $(VENV)/.java

$(VENV)/.python:
	@python=$$(sh tools/find_python.sh) && echo "Making $(VENV)/ with $$python" && "$$python" -m venv $(VENV)
	@touch $@

$(VENV)/.spark: $(VENV)/.python $(SETTLED)
	@echo "Installing kafka_assign and Spark into $(VENV)/ (once; this can take minutes)"
	@$(PIP) install --quiet --use-pep517 -c constraints.txt -e '.[spark]'
	@touch $@

$(VENV)/.java: $(VENV)/.spark
	@echo "No Java 17 or newer here: installing one into $(VENV)/ (once)"
	@$(PIP) install --quiet --use-pep517 -c constraints.txt -e '.[java]'
	@touch $@

$(VENV)/.dev: $(VENV)/.spark
	@echo "Installing what notebooks and tests need into $(VENV)/ (once)"
	@$(PIP) install --quiet --use-pep517 -c constraints.txt -e '.[kafka,dev]'
	@touch $@

$(STARTUP): | $(VENV)/.python
	@mkdir -p $(@D) && ln -sf $(CURDIR)/tools/startup.py $@
