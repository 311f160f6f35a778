"""Blueprints: the files in which people declare teams, as frozen values with positions.

Nothing is imported here: what reads a roles manifest needs two small modules of this package and none of its models.
"""
