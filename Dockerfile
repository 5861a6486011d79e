# syntax=docker/dockerfile:1

FROM rust:1-bookworm AS build
WORKDIR /build
COPY . .
# Printed by `abgauge version --json`, since the build context has no repository.
ARG SOURCE_COMMIT=
# Crates and compiled dependencies stay in the builder's cache, so a change in abgauge rebuilds only abgauge. The binary is copied out of the
# cache, which is not part of the image, and stripped of its line tables, which are four fifths of it.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    cargo build --profile dist --locked --bin abgauge \
    && install -D --strip target/dist/abgauge /out/abgauge

FROM debian:bookworm-slim
# Certificates for TLS to the brokers. They are not pinned, because the newest are the safest.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/abgauge /usr/local/bin/abgauge
COPY config/abgauge.toml /etc/abgauge/abgauge.toml

# A number, because Kubernetes cannot check runAsNonRoot with a name.
USER 65532:65532
# The default, 127.0.0.1, can be reached only from inside the container.
ENV ABGAUGE_HTTP__LISTEN=0.0.0.0:9464
EXPOSE 9464
# Checks that the process is alive, not that it has caught up (/readyz): a restart would only start that over. It reads the same
# configuration, and uses TLS if that sets it. With `http.open_probes = false`, a daemon that asks for a token counts as alive.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["/usr/local/bin/abgauge", "health", "--config", "/etc/abgauge/abgauge.toml"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/abgauge"]
CMD ["run", "--config", "/etc/abgauge/abgauge.toml"]
