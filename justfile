# The commands of .ci/run and of the README

# Run the CI gate
ci:
    .ci/run

# Run riops
run *arguments:
    cargo run --release -- {{arguments}}

# Run the tests
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

# Compare riops with pgbench and sysbench: ratios, and a table for docs/performance.md
bench-peers *options="--rounds 7 --seconds 5":
    cargo build --release --bins --examples
    bench/bench.py peers {{options}}

# Compare riops with other tools (see bench/README.md)
bench *cases="all":
    cargo build --release --bins --examples
    bench/bench.py {{cases}}

# Build and test the packages (as root; see CONTRIBUTING.md)
packages:
    deploy/build
    deploy/test

# Check the manifests of Kubernetes against its schemas
manifests:
    scripts/check-manifests

# Run the commands of the guide again, and replace their outputs and the pictures (on a quiet machine)
docs-figures *pages:
    cargo build --release
    scripts/docs-figures {{pages}}

# Build the guide
book:
    mdbook build docs

# Run the server tests on releases 14 to 18 of PostgreSQL
test-servers *releases:
    scripts/test-servers {{releases}}
