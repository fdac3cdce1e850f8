# The program of ./jobs as a static binary, without a shell, not as root.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -buildid=" -o /soloist ./jobs

FROM gcr.io/distroless/static-debian12:nonroot
LABEL org.opencontainers.image.title="soloist" org.opencontainers.image.licenses="MIT"
COPY --from=build /soloist /soloist
EXPOSE 8080
ENTRYPOINT ["/soloist"]
