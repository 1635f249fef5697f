"""Movement through the explorer: back and forward, and a field to find things."""
