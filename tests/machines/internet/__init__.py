"""Two network namespaces that a test makes: "the internet" with real servers in it, and a host beside it. No packet leaves the machine."""
