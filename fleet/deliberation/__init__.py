"""How members talk, and how a decision comes of it."""
