# Every target is a task of dev.py, which says what it does and runs without make too. `make help` lists them.
PYTHON ?= python3
ARGS ?=
TASKS := serve build offline pdf test practice watch publish drift rivals lint bench bench-site update-outputs figures zensical record new-day

.PHONY: help $(TASKS)
help:
	@$(PYTHON) dev.py help
$(TASKS):
	@$(PYTHON) dev.py $@ $(ARGS)
