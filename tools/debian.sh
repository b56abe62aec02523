#!/bin/sh
# Installs Debian's packages:  sh tools/debian.sh PACKAGE...
# Only there and as root; elsewhere it fails without a word, and the caller says what is needed.
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 1
exec 9>"${TMPDIR:-/tmp}/windrow-debian.lock" && flock 9 # make asks for several at once
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then # nothing is to run as a service: the tests start what they need
    trap 'rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy
fi
install="apt-get -qq install -y --no-install-recommends"
$install "$@" >/dev/null 2>&1 || { apt-get -qq update && $install "$@" >/dev/null; }
