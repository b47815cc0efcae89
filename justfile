# The same commands as in .ci/run and in the README.

# What the gate runs
ci:
    .ci/run

# The README's first command
run *arguments:
    cargo run --release -- {{arguments}}

# The README's second command
test *arguments:
    cargo test {{arguments}}

fmt:
    cargo fmt --all

lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings

doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

deny:
    cargo deny check licenses bans

# riops beside its peers: bench/README.md
bench *cases="all":
    cargo build --release --bins --examples
    bench/bench.py {{cases}}
