"""The rules that every commit must follow, and the checker that looks for violations."""
