# syntax=docker/dockerfile:1

FROM rust:1-bookworm AS build
WORKDIR /build
COPY . .
# Told by `abgauge version --json`, since the build context has no repository.
ARG SOURCE_COMMIT=
# Crates and compiled dependencies stay in the builder's cache: a changed line of abgauge rebuilds abgauge alone.
# The binary is copied out, since a cache is no part of the image, without the tables of lines that are four fifths of it.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    cargo build --profile dist --locked --bin abgauge \
    && install -D --strip target/dist/abgauge /out/abgauge

FROM debian:bookworm-slim
# Certificates for TLS to the brokers. Not pinned: the newest are the safe ones.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/abgauge /usr/local/bin/abgauge
COPY config/abgauge.toml /etc/abgauge/abgauge.toml

# By number, so that Kubernetes' runAsNonRoot can tell.
USER 65532:65532
# The default, 127.0.0.1, is nobody's but the container's own.
ENV ABGAUGE_HTTP__LISTEN=0.0.0.0:9464
EXPOSE 9464
# The process lives. Whether it has caught up is /readyz: not grounds for a restart, which would only begin anew.
# By the same configuration, over TLS where that sets it. With `http.open_probes = false` a daemon that asks for a token counts
# as alive.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["/usr/local/bin/abgauge", "health", "--config", "/etc/abgauge/abgauge.toml"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/abgauge"]
CMD ["run", "--config", "/etc/abgauge/abgauge.toml"]
