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

FROM python:3.11-slim
COPY --from=build /opt/sluice /opt/sluice
ENV PATH=/opt/sluice/bin:$PATH PYTHONUNBUFFERED=1
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/sluice sluice
USER sluice
WORKDIR /var/lib/sluice
VOLUME /var/lib/sluice
EXPOSE 8080
# 503 from /readyz raises, and that is unhealthy.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8080/readyz', timeout=3)"]
ENTRYPOINT ["sluice"]
CMD ["serve", "--config", "/etc/sluice/sluice.yaml", "--host", "0.0.0.0", "--port", "8080"]
