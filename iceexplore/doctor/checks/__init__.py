"""The checks: each looks at one theme of an examination and reports what it finds."""
