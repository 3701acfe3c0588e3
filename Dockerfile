FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /opt/sluice && /opt/sluice/bin/pip install --no-cache-dir -r requirements.lock
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE ./
COPY proxy proxy
COPY rules rules
COPY prices prices
COPY recordings recordings
RUN /opt/sluice/bin/pip install --no-cache-dir --no-deps .

# With the extra `toon`. TORCH_INDEX: the index of a torch for CPUs, or for one kind of GPU; else it is the usual one.
FROM build AS build-toon
ARG TORCH_INDEX=
COPY requirements-toon.lock ./
RUN torch=$(grep '^torch==' requirements-toon.lock) \
  && /opt/sluice/bin/pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} --no-deps "$torch" \
  && /opt/sluice/bin/pip install --no-cache-dir -r requirements-toon.lock

FROM python:3.11-slim AS runtime
ENV PATH=/opt/sluice/bin:$PATH PYTHONUNBUFFERED=1
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/sluice sluice
USER sluice
WORKDIR /var/lib/sluice
VOLUME /var/lib/sluice
ENTRYPOINT ["sluice"]

# docker build --target toon: models that take token ids, from a registry and folders mounted at /models.
FROM runtime AS toon
COPY --from=build-toon /opt/sluice /opt/sluice
EXPOSE 8090
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8090/readyz', timeout=3)"]
CMD ["toon", "serve", "--registry", "/models/toon.yaml", "--host", "0.0.0.0", "--port", "8090"]

FROM runtime
COPY --from=build /opt/sluice /opt/sluice
EXPOSE 8080
# 503 from /readyz raises, and that is unhealthy.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8080/readyz', timeout=3)"]
CMD ["serve", "--config", "/etc/sluice/sluice.yaml", "--host", "0.0.0.0", "--port", "8080"]
