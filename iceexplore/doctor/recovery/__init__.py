"""Recover the files of lost manifests from the manifests of other snapshots and from the data folder."""
