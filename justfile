# The recipes of the project; CI runs them too. `just` lists them.

set shell := ["bash", "-euo", "pipefail", "-c"]

# List the recipes.
default:
    @just --list

# Run the proxy with the dashboard, such as: just run --upstream unix:/tmp/app.sock
run *ARGS:
    cargo run --release --locked -- {{ARGS}}

# Everything built in: certificate, upstream, load, dashboard.
demo *ARGS:
    cargo run --release --locked -- demo {{ARGS}}

# The program without debug tables, and these in a file beside it, where gdb and perf look for them: target/dist.
dist:
    #!/usr/bin/env bash
    set -euo pipefail
    export CARGO_PROFILE_RELEASE_DEBUG=line-tables-only CARGO_PROFILE_RELEASE_STRIP=none
    cargo build --release --locked -p tlsdash
    cd "${CARGO_TARGET_DIR:-target}"
    mkdir -p dist
    objcopy --only-keep-debug release/tlsdash dist/tlsdash.debug
    objcopy --strip-debug --add-gnu-debuglink=dist/tlsdash.debug release/tlsdash dist/tlsdash

# A .deb, an .rpm, a tarball and the debug file, in target/package; `.ci/package` then tries them in a clean root.
package:
    #!/usr/bin/env bash
    set -euo pipefail
    for tool in cargo-deb cargo-generate-rpm; do
        command -v "$tool" >/dev/null || cargo install --locked "$tool"
    done
    # The same build as CI's.
    export CARGO_PROFILE_RELEASE_DEBUG=line-tables-only CARGO_PROFILE_RELEASE_STRIP=none
    cargo build --release --locked -p tlsdash
    packaging/build "${CARGO_TARGET_DIR:-target}/release/tlsdash"

# All tests; installs the outside programs they compare with.
test *ARGS:
    .ci/test {{ARGS}}

# Formatting and lints, warnings denied.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Format everything.
fmt:
    cargo fmt --all

# The documentation, warnings denied.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --document-private-items

# Licences, sources and banned crates; advisories where their database can be reached.
deny:
    cargo deny --locked --log-level error check --hide-inclusion-graph bans licenses sources
    if cargo deny fetch db >/dev/null 2>&1; then cargo deny --locked --log-level error check advisories; \
    else echo "advisories NOT checked: their database cannot be reached from here"; fi

# Write docs/options.md and the tables of docs/journal-schema.md, docs/figures.md and docs/metrics.md anew.
schema:
    UPDATE_DOCS=1 cargo test --locked -p tlsdash-telemetry --test schema --test figures
    UPDATE_DOCS=1 cargo test --locked -p tlsdash --lib the_document_lists_every_option
    UPDATE_DOCS=1 cargo test --locked -p tlsdash --test metrics the_document_lists_every_metric

# Draw docs/examples/dashboard.svg anew from the running demo, in a minute and a half.
screenshot:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --release --locked -p tlsdash
    cargo build --locked -p tlsdash-tui --example screenshot
    target=$(realpath "${CARGO_TARGET_DIR:-target}") picture=$PWD/docs/examples/dashboard.svg folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    cd "$folder"
    "$target/debug/examples/screenshot" "$picture" "$target/release/tlsdash" demo --theme dark --journal file:demo.journal

# Make everything in docs/examples anew, in six minutes; needs chromium for the pictures of pages.
examples: screenshot
    #!/usr/bin/env bash
    set -euo pipefail
    tlsdash=$(realpath "${CARGO_TARGET_DIR:-target}/release/tlsdash") examples=$PWD/docs/examples folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    cd "$folder"
    record() { "$tlsdash" demo --headless --journal off --record "$@" >/dev/null; }
    record demo.journal --duration 60s
    record one.journal --duration 75s --workers 1 --load rate=300
    record two.journal --duration 75s --workers 2 --load rate=300
    # A page names the command that made it.
    "$tlsdash" report demo.journal --html report.html
    "$tlsdash" compare one.journal two.journal --html compared.html
    cp report.html compared.html "$examples"
    for page in report compared; do
        chromium --headless --no-sandbox --user-data-dir="$folder" --hide-scrollbars --window-size=1200,1350 \
            --screenshot="$examples/$page.png" "file://$examples/$page.html"
    done

# Benchmarks: figures to compare, never a test.
bench:
    cargo run --release --locked -p tlsdash-journal --example append_rate

# What a request costs the generator, compared with wrk, oha, h2load, s_time and bare rustls: just bench-load --only HTTPS
bench-load *ARGS:
    cargo build --release --locked -p tlsdash
    cargo build --release --locked -p tlsdash-loadgen --example bare_handshakes
    cargo bench --locked -p benchmarks --bench generators -- \
        --program "$(realpath "${CARGO_TARGET_DIR:-target}/release/tlsdash")" \
        --bare "$(realpath "${CARGO_TARGET_DIR:-target}/release/examples/bare_handshakes")" {{ARGS}}

# Time of the parts of watching, each alone, such as: just bench-parts encode
bench-parts *ARGS:
    cargo bench --locked -p benchmarks --bench parts -- {{ARGS}}

# What watching costs the proxy, in ten minutes, such as: just bench-watching --pairs 20 --seconds 4
bench-watching *ARGS:
    # Line tables tell the code that counts from the rest.
    CARGO_PROFILE_RELEASE_DEBUG=line-tables-only CARGO_PROFILE_RELEASE_STRIP=none \
        cargo build --release --locked -p tlsdash
    cargo bench --locked -p benchmarks --bench watching -- \
        --program "$(realpath "${CARGO_TARGET_DIR:-target}/release/tlsdash")" {{ARGS}}

# Work per CPU-second beside the terminators that are installed, such as: just bench-peers --only handshake --rounds 7
bench-peers *ARGS:
    cargo build --release --locked -p tlsdash
    cargo bench --locked -p benchmarks --bench peers -- \
        --program "$(realpath "${CARGO_TARGET_DIR:-target}/release/tlsdash")" {{ARGS}}

# Latency of established connections while many others shake hands, beside HAProxy and nginx, in seven minutes, such as: just bench-burst --rounds 4 --seconds 1
bench-burst *ARGS:
    cargo build --release --locked -p tlsdash
    cargo bench --locked -p benchmarks --bench burst -- \
        --program "$(realpath "${CARGO_TARGET_DIR:-target}/release/tlsdash")" {{ARGS}}

# CPU of a frame of the dashboard, and with --count its instructions.
bench-frame *ARGS:
    cargo bench --locked -p tlsdash-tui --bench frame -- {{ARGS}}

# How soon a key shows in a terminal, and CPU of the dashboard's threads at four frames a second with 10,000 clients.
bench-terminal:
    cargo build --release --locked -p tlsdash
    cargo bench --locked -p tlsdash-tui --bench terminal -- "$(realpath "${CARGO_TARGET_DIR:-target}")/release/tlsdash" demo \
        --interval 250ms --load rate=1000,connections=64,sources=10000,keepalive=1,resume=80%

# Instructions of each path against its budget; with a revision, the proxy's against that: just bench-instructions main
bench-instructions REVISION="":
    .ci/instructions check {{REVISION}}

# Write the instruction budgets anew, after a change that is worth its price.
budgets:
    .ci/instructions write

# A GiB each way over both versions of TLS and both kinds of upstream, compared byte by byte.
soak MIB="1024":
    cargo run --release --locked -p tlsdash-proxy-core --example soak {{MIB}}

# Ten minutes of HTTP/1.1 and HTTP/2 before an upstream that restarts every 20 s: only requests in flight that may not be
# sent twice fail, and each is counted. Shorter: just soak-http 120
soak-http SECONDS="600":
    cargo run --release --locked -p tlsdash-proxy-http --example soak_http {{SECONDS}}

# Estimates of what a change saves beside what it saves, over so many rounds: just savings 100
savings ROUNDS="40":
    cargo run --release --locked -p tlsdash-proxy-core --example savings {{ROUNDS}}

# Connections lost in 100 drains at 1,000 new ones a second, also as another user: just drains --user nobody
drains *ARGS:
    cargo build --release --locked -p tlsdash
    cargo run --release --locked -p tlsdash-proxy-core --example drains -- \
        --program "$(realpath "${CARGO_TARGET_DIR:-target}/release/tlsdash")" {{ARGS}}

# Ten seconds of the demo without a screen, checked against itself.
smoke:
    .ci/smoke

# All cases of h2spec against HTTP mode; fetches h2spec with Go once.
h2spec:
    .ci/h2spec

# Look at a report and a comparison with axe-core in Chromium; fetches axe-core from npm once.
axe *ARGS:
    .ci/axe {{ARGS}}

# Feed the readers of journals and records what nobody writes, for so long each, or one of them: just fuzz 600 decode
fuzz SECONDS="20" TARGET="":
    .ci/fuzz {{SECONDS}} {{TARGET}}

# What CI runs.
ci: test lint doc deny smoke h2spec axe bench-instructions fuzz
