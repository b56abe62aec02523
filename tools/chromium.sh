#!/bin/sh
# The tests of reports look at them in a headless Chromium. Found: nothing to do.
# Missing, on Debian and as root: installed.
command -v chromedriver >/dev/null && for name in chromium chromium-browser google-chrome; do
    command -v $name >/dev/null && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Chromium was not found: installing Debian's, with its driver"
    apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium chromium-driver >/dev/null && exit 0
fi
echo "The tests of reports need Chromium and chromedriver: install them (for example Debian's chromium and chromium-driver), then run make again." >&2
exit 1
