# Builds the manager's image: make docker-build IMG=<registry>/<name>:<tag>
# The image holds what the one of `make image` holds: the program, built with the same flags, and nothing else.
FROM golang:1.26.8@sha256:0f063af2d465d8dcae54cce04278ada488b96f77b42449c8d071e47d016cc65a AS build
ARG TARGETOS
ARG TARGETARCH
WORKDIR /src

# The modules are a layer of their own, which a change of the code does not throw away.
COPY go.mod go.sum ./
RUN go mod download

# .dockerignore lists what the manager is built from.
COPY . .
# Without TARGETARCH the binary is for the machine that builds it.
RUN CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags '-s -w' -o /manager .

FROM scratch
COPY --from=build /manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
