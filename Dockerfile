# The steps are in scripts/image.sh, which .ci/run runs without Docker too.

FROM rust:1.95-slim-bookworm AS build
WORKDIR /source
COPY scripts scripts
RUN scripts/image.sh build-packages
COPY . .
RUN scripts/image.sh build && scripts/image.sh install /image

FROM debian:bookworm-slim
COPY scripts /tmp/stint/scripts
RUN /tmp/stint/scripts/image.sh runtime-packages && rm -rf /tmp/stint /var/lib/apt/lists
COPY --from=build /image/usr /usr
COPY --from=build /image/etc /etc
COPY --from=build --chown=10001:10001 /image/var/lib/stint /var/lib/stint

# A file mounted over /etc/stint/stint.toml needs neither address nor key: these override it. Without a place of its own
# in the file, the ledger is /var/lib/stint/ledger.db. The first start makes a key and says where it is.
ENV STINT_CONFIG=/etc/stint/stint.toml
ENV STINT_LISTEN=0.0.0.0:8080
ENV XDG_DATA_HOME=/var/lib
ENV STINT_FIRST_KEY=/var/lib/stint/first-key
ENV LP_NUM_THREADS=0

USER 10001:10001
VOLUME /var/lib/stint
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["stint", "health", "--alive"]
ENTRYPOINT ["stint"]
CMD ["serve"]
