"""Chains: steps that work one after the other, each with what the earlier ones gave."""
