#!/bin/sh
# The programs that some tests need: Java 17 or later, Chromium, Graphviz's dot.
# On Debian and Ubuntu as root the missing ones are installed; elsewhere this says what is missing:
# the tests that need it are then skipped, or fail where CI=true.
set -eu

java_is_new_enough() {
    java=${JAVA_HOME:+$JAVA_HOME/bin/}java
    command -v "$java" >/dev/null || return 1
    # 'openjdk version "17.0.15" 2025-04-15', '"21"', and '"1.8.0_412"' of old
    major=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    [ "${major:-0}" -ge 17 ]
}

chromium_is_there() {
    for name in "${ICEEXPLORE_CHROMIUM:-chromium}" chromium-headless-shell chromium chromium-browser google-chrome; do
        command -v "$name" >/dev/null && return 0
    done
    return 1
}

# Playwright's driver, a Node.js of its own, is linked against it.
libatomic_is_there() {
    case "$(uname -s)" in
        Linux) "$(command -v ldconfig || echo /sbin/ldconfig)" -p 2>/dev/null | grep -q 'libatomic\.so\.1' ;;
    esac
}

can_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null
}

updated=
install() {
    if [ -z "$updated" ]; then
        apt-get update -q
        updated=yes
    fi
    apt-get install -q -y --no-install-recommends "$@" </dev/null
}

export DEBIAN_FRONTEND=noninteractive
if can_install; then
    # a release has one of these
    java_is_new_enough || install openjdk-17-jre-headless || install openjdk-21-jre-headless || install default-jre-headless || :
    # Debian has Chromium without its windows, which takes a quarter less time; what cannot be installed is named below
    chromium_is_there || install chromium-headless-shell fonts-dejavu-core || install chromium fonts-dejavu-core || :
    libatomic_is_there || install libatomic1 || :
    command -v dot >/dev/null || install graphviz || :
fi

status=0
missing() {
    echo "missing: $1" >&2
    status=1
}
java_is_new_enough || missing "Java 17 or later (Debian: openjdk-17-jre-headless); without it the Spark tests are skipped"
chromium_is_there || missing "Chromium (Debian: chromium; or set ICEEXPLORE_CHROMIUM); without it the browser tests are skipped"
libatomic_is_there || missing "libatomic.so.1 (Debian: libatomic1); without it Playwright, and so the browser tests, cannot start"
command -v dot >/dev/null || missing "Graphviz's dot (Debian: graphviz); without it the tests that draw DOT are skipped"
if [ "${CI:-}" = true ]; then
    exit "$status"
fi
