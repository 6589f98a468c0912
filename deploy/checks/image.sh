#!/bin/sh
# image.sh FOLDER: builds the container image from the folder `image` that `cargo xtask dist` makes, starts
# it and asks whether it is ready. Without a container engine and without a registry: buildah isolates with
# chroot, and the base image is made of Debian's packages by mmdebstrap. Needs root.
set -eu

image=$(realpath "$1")
suite=${DEBIAN_SUITE:-bookworm}
folder=$(mktemp -d)
container=
finish() {
    status=$?
    # The group: buildah does not end the programs that it started.
    if [ -n "${server:-}" ]; then kill -9 "-$server" 2>/dev/null || true; fi
    if [ -n "$container" ]; then buildah rm "$container" >/dev/null || true; fi
    buildah rmi --force localhost/portcullis-check localhost/portcullis-base >/dev/null 2>&1 || true
    rm -rf "$folder"
    exit "$status"
}
trap finish EXIT
# vfs needs nothing of the kernel; the storage is thrown away.
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs

# Like the distroless base: libraries and certificates, and no shell.
mmdebstrap --quiet --variant=extract --include=base-files,ca-certificates,libc6,libgcc-s1,tzdata \
    "$suite" "$folder/base.tar"
mkdir "$folder/base" && tar -xf "$folder/base.tar" -C "$folder/base"
find "$folder/base/usr/share/ca-certificates" -name '*.crt' -exec cat {} + \
    >"$folder/base/etc/ssl/certs/ca-certificates.crt"
base=$(buildah from scratch)
buildah add --quiet "$base" "$folder/base" / >/dev/null
buildah commit --quiet "$base" localhost/portcullis-base >/dev/null
buildah rm "$base" >/dev/null

# A context of its own, for the target folder may lie elsewhere.
context=$folder/context
mkdir -p "$context/target/dist" "$context/deploy/config"
cp -a "$image" "$context/target/dist/image"
cp deploy/config/container.toml "$context/deploy/config/"
cp deploy/container/Dockerfile.dockerignore "$context/.dockerignore"
buildah build --quiet --format docker --file deploy/container/Dockerfile --target prebuilt --pull-never \
    --build-arg RUNTIME_IMAGE=localhost/portcullis-base --tag localhost/portcullis-check "$context"
container=$(buildah from --pull-never localhost/portcullis-check)
buildah inspect --type image --format '{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}' \
    localhost/portcullis-check | grep -q '^65532:65532 \[/usr/local/bin/portcullis\] \[serve\]$'

# The network is the machine's: two ports that are likely to be free, below those of outgoing connections.
port=$(($(od -An -N2 -tu2 /dev/urandom) % 20000 + 10000))
listen="--env PORTCULLIS_SERVER__LISTEN=127.0.0.1:$port"
metrics="--env PORTCULLIS_SERVER__METRICS_LISTEN=127.0.0.1:$((port + 1))"
inside() {
    # shellcheck disable=SC2086
    buildah run $listen $metrics "$container" -- /usr/local/bin/portcullis "$@"
}
inside --version
inside key new
inside policy init
# shellcheck disable=SC2086
setsid buildah run $listen $metrics "$container" -- /usr/local/bin/portcullis serve >"$folder/log" 2>&1 &
server=$!
for _ in $(seq 100); do
    if inside ready >"$folder/ready" 2>&1; then
        cat "$folder/ready"
        echo "image: ok"
        exit 0
    fi
    kill -0 "$server" 2>/dev/null || break
    sleep 0.2
done
cat "$folder/log" "$folder/ready" >&2
echo "image: does not become ready" >&2
exit 1
