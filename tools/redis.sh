#!/bin/sh
# Tests and benchmarks of windrow.stores.Redis start a server of their own. Found: nothing to do.
# Missing, on Debian and as root: installed.
command -v redis-server >/dev/null && exit 0
echo "redis-server was not found: installing Debian's, where that can be done"
sh tools/debian.sh redis-server && exit 0
echo "The tests of stores need redis-server: install it (for example Debian's redis-server), then run make again." >&2
exit 1
