# recalld with HTTP on port 7331. Data is in the volume /data. HTTP beyond loopback needs tokens:
#   docker build -t recalld .
#   docker run --rm -v recalld:/data recalld token add laptop --file /data/tokens.toml
#   docker run -d -p 127.0.0.1:7331:7331 -v recalld:/data recalld
FROM python:3.12-slim AS build
COPY . /source
RUN python -m venv /opt/recalld \
    && /opt/recalld/bin/pip install --no-cache-dir --disable-pip-version-check \
        --require-hashes --requirement /source/scripts/requirements/recalld.txt \
    && /opt/recalld/bin/pip install --no-cache-dir --disable-pip-version-check \
        --no-deps --no-build-isolation /source

FROM python:3.12-slim
RUN useradd --no-log-init --create-home --uid 1000 recalld \
    && install --directory --owner recalld --mode 0700 /data
COPY --from=build /opt/recalld /opt/recalld
# The variable holds a path, not a token.
# hadolint ignore=DL3064
ENV PATH=/opt/recalld/bin:$PATH \
    RECALLD_HOME=/data \
    RECALLD_BIND=0.0.0.0:7331 \
    RECALLD_TOKEN_FILE=/data/tokens.toml
USER 1000
VOLUME /data
EXPOSE 7331
HEALTHCHECK --interval=30s --timeout=6s CMD ["recalld", "health"]
ENTRYPOINT ["recalld"]
CMD ["serve"]
