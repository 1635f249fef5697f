"""Recovery: the files of lost manifests, sought in the manifests of other snapshots and in the data folder."""
