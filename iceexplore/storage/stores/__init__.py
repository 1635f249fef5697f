"""The stores that bytes come from: local disk, object stores, HTTP."""
