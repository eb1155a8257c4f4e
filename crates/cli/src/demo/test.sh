# Tells whether greet.sh does what it should.
. ./greet.sh

failed=0
expect() {
    if [ "$1" = "$2" ]; then
        echo "ok: $2"
    else
        echo "FAILED: expected '$2', got '$1'"
        failed=1
    fi
}

expect "$(greet Ada)" "Hello, Ada!"
expect "$(greet)" "Hello, everybody!"
exit $failed
