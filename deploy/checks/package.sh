#!/bin/sh
# package.sh PACKAGE: installs, removes and purges the Debian package in a Debian of its own, made from
# Debian's packages by mmdebstrap; no systemd runs there. Needs mmdebstrap, and root or user namespaces.
set -eu

package=$(realpath "$1")
suite=${DEBIAN_SUITE:-bookworm}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/inside" <<'INSIDE'
set -eux
dpkg --install /package.deb
test "$(portcullis --version)" = "portcullis $(dpkg-query --showformat '${Version}' --show portcullis)"
for file in /usr/lib/systemd/system/portcullis.service /usr/lib/sysusers.d/portcullis.conf \
    /usr/share/man/man1/portcullis.1.gz /usr/share/man/man1/portcullis-serve.1.gz \
    /usr/share/bash-completion/completions/portcullis /usr/share/zsh/vendor-completions/_portcullis \
    /usr/share/fish/vendor_completions.d/portcullis.fish /usr/share/doc/portcullis/copyright \
    /usr/share/doc/portcullis/portcullis.rules.yml; do
    test -s "$file"
done
grep -q '^ExecStart=/usr/bin/portcullis serve$' /usr/lib/systemd/system/portcullis.service
grep -q /etc/portcullis/portcullis.toml /var/lib/dpkg/info/portcullis.conffiles
test "$(stat --format '%U %G %a' /var/lib/portcullis)" = 'portcullis portcullis 700'
test "$(stat --format '%U %a' /etc/portcullis/portcullis.toml)" = 'root 644'

# As the unit runs it: the starter configuration is one that the gateway takes, and the user of the
# service can make what it needs.
as_service() {
    setpriv --reuid portcullis --regid portcullis --clear-groups \
        env PORTCULLIS_CONFIG=/etc/portcullis/portcullis.toml portcullis "$@"
}
as_service key new
as_service policy init
as_service check
as_service org create acme
test -s /var/lib/portcullis/portcullis.db

# Once more, as an upgrade does: what the operator changed stays.
echo '# mine' >>/etc/portcullis/portcullis.toml
dpkg --force-confold --install /package.deb
grep -q '^# mine$' /etc/portcullis/portcullis.toml

dpkg --remove portcullis
test ! -e /usr/bin/portcullis && test ! -e /usr/lib/systemd/system/portcullis.service
test -e /etc/portcullis/portcullis.toml && test -e /var/lib/portcullis/portcullis.db
dpkg --purge portcullis
test ! -e /etc/portcullis
# The audit log outlives the package.
test -e /var/lib/portcullis/portcullis.db
dpkg --install /package.deb && rm -r /var/lib/portcullis/*
dpkg --purge portcullis
test ! -e /var/lib/portcullis
if getent passwd portcullis; then exit 1; fi
INSIDE

mmdebstrap --quiet --variant=essential --include=ca-certificates,passwd \
    --customize-hook="copy-in $folder/inside /" \
    --customize-hook="upload $package /package.deb" \
    --customize-hook='chroot "$1" sh /inside' \
    "$suite" /dev/null
echo "package: ok"
