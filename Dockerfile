# A program of this module as a static binary: no shell, not root, nothing written to the root file system.
#
#   docker build --platform linux/amd64 -t soloist .     # Container Apps run nothing but amd64
#   docker build --build-arg PACKAGE=./mine -t mine .    # another main package of the module
#
# No instruction needs BuildKit: registries that build images do not all have it. .ci/image builds and runs this file.
#
# Where the addresses that pull are shared, as those of a registry that builds, Docker Hub may refuse: name a copy of your own
# with --build-arg BUILD_IMAGE=REGISTRY/golang:1.26, and BASE_IMAGE likewise.
ARG BUILD_IMAGE=golang:1.26
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot
FROM $BUILD_IMAGE AS build
WORKDIR /src
# On their own, so that the modules are downloaded again only when these two change.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG PACKAGE=./jobs
# The same sources and the same Go make the same bytes: paths, build IDs and the state of the checkout stay out.
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w -buildid=" -o /soloist "$PACKAGE"
# The licences ask to go with the binary: those of Go and of each module that is linked. A module without one ends the build.
RUN mkdir /licenses && { echo "$(go env GOROOT) Go"; \
      CGO_ENABLED=0 go list -deps -f '{{with .Module}}{{if not .Main}}{{.Dir}} {{.Path}} {{.Version}}{{end}}{{end}}' "$PACKAGE"; } \
    | sort -u | sed '/^$/d' | while read -r dir name; do \
      files=$(find "$dir" -maxdepth 1 -type f ! -name '*.go' \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' -o \
        -iname 'patents*' \) | sort); \
      [ -n "$files" ] || { echo "no licence of $name in $dir" >&2; exit 1; }; \
      for file in $files; do printf '\n%s: %s\n\n' "$name" "${file##*/}"; cat "$file"; done; \
    done >/licenses/NOTICES

# It has CA certificates. Time zones are in the program.
FROM $BASE_IMAGE
COPY --from=build /soloist /soloist
COPY --from=build /src/LICENSE /licenses/LICENSE
COPY --from=build /licenses /licenses
# A number, since a platform that refuses root cannot look up a name.
USER 65532:65532
EXPOSE 8080
# The program does so by itself as process 1. Below an init process (docker run --init) it could not know.
ENV SOLOIST_ADDR=:8080
# Without a shell in between, the program is process 1 and gets SIGTERM itself.
ENTRYPOINT ["/soloist"]
# Last, as they change with each commit.
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="soloist" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.source="https://github.com/soloist-go/soloist" \
      org.opencontainers.image.licenses="MIT"
