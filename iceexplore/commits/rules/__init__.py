"""The rules that every commit must follow, and the checker for them."""
