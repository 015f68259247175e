"""Operations for the owner of the daemon: state, sources and imports."""
