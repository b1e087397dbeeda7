"""Device profiles with their sources, and the operations of models: the data behind simulated times."""
