# Greets a person by name, or everybody.
greet() {
    if [ -n "$1" ]; then
        echo "Hello, everybody!"
    else
        echo "Hello, $1!"
    fi
}
