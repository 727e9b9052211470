"""What root does for a site: UNIX users for agents (bots), and directories shared with them."""
