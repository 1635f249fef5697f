"""Movement through the explorer: back and forward."""
