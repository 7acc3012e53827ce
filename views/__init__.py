"""The views of the page: they draw events and stored values, and hold no logic of their own."""
