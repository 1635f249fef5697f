"""Which readers read what iceexplore writes, and what each gets wrong: `make interop` writes ``docs/interop.md``."""
