"""What the checks look at, and how their outcomes are collected."""
