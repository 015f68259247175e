"""The OpenAPI document outside of a daemon, and its checks with other programs."""
