#!/bin/sh
# Programs that tests look for beside what pip brings, as PROGRAM:PACKAGE. Debian's packages bring those that are missing
# where that is allowed; where it is not, this says so, and the tests that need them fail with that sentence too.
set -u

there() {
    command -v "$1" >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/"$1" >/dev/null 2>&1
}

wanted=
for each in "$@"; do
    there "${each%%:*}" || wanted="$wanted ${each#*:}"
done
[ -n "$wanted" ] || exit 0

if [ "$(id -u)" = 0 ]; then as_root=; else as_root="sudo -n"; fi
echo "== installing$wanted by apt, for tests"
if command -v apt-get >/dev/null 2>&1 &&
    { $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $wanted ||
        { $as_root apt-get update -qq &&
            $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $wanted; }; } \
        >/dev/null 2>&1; then
    exit 0
fi
echo "== could not: the tests that need it fail until somebody does (apt-get install$wanted)"
