# Two commands do everything, set-up included; they need Python >= 3.11 and make.
#   make book    install the base tier (no torch) into .venv and build the book from cached results
#   make test    install everything and run the tests
#   make lab     install JupyterLab and PyTorch besides and open the pages' notebooks in it
# For the commands that train, `make install` installs everything and does no more.
# Variables: PYTHON (default python3), JOBS (pages executed at once), PIP_ARGS, PYTEST_ARGS.

PYTHON ?= python3
JOBS ?=
PIP_ARGS ?=
PYTEST_ARGS ?=

venv := .venv
bin := $(venv)/bin
pip := $(bin)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS)

.PHONY: help book lab install test check format picture clean distclean

help:
	@sed -n '2,6p' Makefile | cut -c3-

book: $(venv)/.base
	@$(bin)/mnmt-repro book $(if $(JOBS),--jobs $(JOBS))

lab: $(venv)/.lab
	@$(bin)/jupyter lab book

install: $(venv)/.full

test: $(venv)/.full
	@$(bin)/python -m pytest --numprocesses auto --dist loadfile $(PYTEST_ARGS)

check: $(venv)/.full
	@$(bin)/ruff check .
	@$(bin)/ruff format --check .
	@$(bin)/mypy

format: $(venv)/.full
	@$(bin)/ruff check --fix .
	@$(bin)/ruff format .

$(bin)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	    "mnmt-repro needs Python 3.11 or newer; this is %d.%d. Try: make PYTHON=python3.11 ..." \
	    % sys.version_info[:2])'
	@$(PYTHON) -m venv $(venv)

# Stamps: an install is repeated only when pyproject.toml changes. Of torch it takes the version that
# stored runs were made with; any within the bounds of pyproject.toml may be installed by hand.
$(venv)/.base: pyproject.toml | $(bin)/python
	@echo "Installing the base tier into $(venv) (once; a minute or two) ..."
	@$(pip) --editable .
	@touch $@

$(venv)/.full: pyproject.toml | $(bin)/python
	@echo "Installing the base, train and test tiers and the extras into $(venv) (once; some minutes) ..."
	@$(pip) --editable '.[train,test,ct2,submitit,dask]' $$(grep '^torch==' requirements.lock)
	@touch $@ $(venv)/.base

$(venv)/.lab: pyproject.toml | $(venv)/.base
	@echo "Installing JupyterLab and PyTorch into $(venv) (once; some minutes) ..."
	@$(pip) --editable '.[notebook,train]'
	@touch $@

picture: $(venv)/.base
	@$(bin)/python -m mnmt_repro.papers.pages.picture

clean:
	rm -rf _build .pytest_cache .mypy_cache .ruff_cache

distclean: clean
	rm -rf $(venv)
