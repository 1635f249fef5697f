"""The rules that every commit must keep, and the checker for them."""
