"""SQL of views as syntax trees."""
