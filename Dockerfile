# The showcase (`make run`) in an image: `docker compose up`, then http://127.0.0.1:7350/.

FROM rust:1-slim-bookworm AS build
# Node.js, which bundles what browsers load. In CI, and here, it is an error if that fails.
COPY --from=node:22-bookworm-slim /usr/local /usr/local
ENV CI=true
WORKDIR /playfield
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/playfield/target \
    cargo build --release --locked --package playfield-showcase \
    && strip -o /playfield-showcase target/release/playfield-showcase

FROM debian:bookworm-slim
COPY --from=build /playfield-showcase /usr/local/bin/playfield-showcase
# No user of the system: it owns nothing, and nothing in the image can be written by it.
USER 10001:10001
ENV PLAYFIELD_LISTEN=0.0.0.0:7350
EXPOSE 7350
# The node answers HTTP on its port. `bash` opens the connection, since the image has no client.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["bash", "-c", \
    "exec 3<>/dev/tcp/127.0.0.1/7350 && printf 'HEAD / HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3 && read -r answer <&3 && [[ $answer == 'HTTP/1.1 200 '* ]]"]
# Docker stops it with SIGTERM, on which it says goodbye to its players.
ENTRYPOINT ["playfield-showcase"]
