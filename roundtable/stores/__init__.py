"""Stores that outlive the broker, one file each; imported only by who was asked for one."""
