# Builds the manager's image: make docker-build IMG=<registry>/<name>:<tag>
FROM golang:1.26 AS build
ARG TARGETOS
ARG TARGETARCH
WORKDIR /src

# The modules are a layer of their own, which a change of the code does not throw away.
COPY go.mod go.sum ./
RUN go mod download

COPY main.go ./
COPY api/ api/
COPY internal/ internal/
# Without TARGETARCH the binary is for the machine that builds it.
RUN CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags '-s -w' -o /manager .

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
