"""Scripts that write the shipped files of the embedding model."""
