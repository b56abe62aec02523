#!/bin/sh
# The tests of reports look at them in a headless Chromium. Found: nothing to do.
# Missing, on Debian and as root: installed.
command -v chromedriver >/dev/null && for name in chromium chromium-browser google-chrome; do
    command -v $name >/dev/null && exit 0
done
echo "Chromium was not found: installing Debian's, with its driver, where that can be done"
sh tools/debian.sh chromium chromium-driver && exit 0
echo "The tests of reports need Chromium and chromedriver: install them (for example Debian's chromium and chromium-driver), then run make again." >&2
exit 1
