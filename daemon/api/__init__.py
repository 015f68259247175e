"""Operations of the REST API for memories, `/api/v1`; see README.md."""
