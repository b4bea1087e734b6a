"""Records and what is done to them before a network sees them: reading, scaling, splitting."""
