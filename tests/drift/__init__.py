"""Measures how strong the tests are: `python -m tests.drift`. Not part of a plain test run."""
