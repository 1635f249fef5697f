"""Plan the engines' maintenance procedures: what each would do now, why, and at what cost; simulate the result."""
