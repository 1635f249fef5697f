"""The table grid."""
