r"""Write it from memory: the exercises, their stubs, and a judge made of llmcore's own tests.

One source for everything: the reference is `llmcore`, the stub is cut from it (`source`), the judge is
`tests/llmcore` with the reader's definitions put in place (`worker`, `inside`). An exercise is one file of
`exercises/` (`catalogue`), whose wrong variants become the diagnosis, the page's common mistakes, the drills.
"""
