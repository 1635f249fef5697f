"""Plan maintenance: what each of an engine's procedures would do now, why, at what cost, and the table after it."""
