"""The engine: values, maths, network, collectives, workers, methods, and what they record."""
