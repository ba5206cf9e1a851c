"""JSON to core values and back, one module a dialect."""
