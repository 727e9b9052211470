"""Settings and host facts become a Policy: what will be true inside. Pure."""
