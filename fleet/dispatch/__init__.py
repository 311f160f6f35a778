"""Work that is given out: each member is asked once, and what comes back is bounded."""
