"""A run: its folder, journal, rooms, members and result."""
