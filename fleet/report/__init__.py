"""What people see of a run, made from its events; nothing here decides anything."""
