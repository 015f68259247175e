"""The web UI: static files, and the headers under which a browser may run them."""
