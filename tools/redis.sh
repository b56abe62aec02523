#!/bin/sh
# Tests and benchmarks of windrow.stores.Redis start a server of their own. Found: nothing to do.
# Missing, on Debian and as root: installed.
command -v redis-server >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "redis-server was not found: installing Debian's"
    # no service: the tests start the server themselves
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d
    apt-get -qq update && apt-get -qq install -y --no-install-recommends redis-server >/dev/null
    status=$?
    rm -f /usr/sbin/policy-rc.d
    [ $status = 0 ] && exit 0
fi
echo "The tests of stores need redis-server: install it (for example Debian's redis-server), then run make again." >&2
exit 1
