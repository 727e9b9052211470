"""Site install, bots, sharing and the egress firewall: the side that runs as root."""
