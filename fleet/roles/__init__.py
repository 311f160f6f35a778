"""Fan a team out by hand: a manifest or a blueprint as a plan to read or a script to run. Nothing is started here."""
