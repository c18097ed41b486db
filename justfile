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

# Count what the program runs, for `just dist` to optimise by: target/tlsdash.profdata, in ten minutes.
profile:
    packaging/profile

# The program as packages hold it, with debug tables, for glibc 2.28 and later, in a quarter of an hour: target/dist/tlsdash.
dist *TARGET:
    packaging/dist {{TARGET}}

# A .deb, an .rpm, a tarball and the debug file, in target/package.
package: dist
    packaging/build "${CARGO_TARGET_DIR:-target}/dist/tlsdash"

# The same of the program as the tests have it: what would break `just package`, in half a minute.
package-as-tested:
    .ci/go-programs nfpm
    if [ -x "${CARGO_TARGET_DIR:-target}/go/nfpm" ]; then packaging/build "$(.ci/as-tested)"; \
    else echo "packages NOT made, without nfpm" >&2; fi

# Make the packages, and try each in a clean root; needs root or sudo.
try-package: package
    .ci/package

# Run the .deb where systemd is process 1, in namespaces over a clean root, in a minute; needs root or sudo, and `just package`.
try-systemd:
    .ci/systemd

# All of a release but to sign and to push it, in an hour, such as: just release-check 1.2.0; needs root.
release-check VERSION:
    packaging/release {{quote(VERSION)}}

# All tests; installs the outside programs they compare with.
test *ARGS:
    .ci/test {{ARGS}}

# Unit tests and `it` of the crates that differ from a commit, in a minute; the program's own `it` is left to `just test`.
quick SINCE="HEAD":
    #!/usr/bin/env bash
    set -euo pipefail
    export RUST_TEST_THREADS=${RUST_TEST_THREADS:-6}
    units=() programs=()
    while read -r crate; do
        package=$(sed -n '0,/^name = /s/^name = "\(.*\)"/\1/p' "crates/$crate/Cargo.toml")
        units+=(-p "$package")
        [ "$crate" = tlsdash ] || [ ! -d "crates/$crate/tests/it" ] || programs+=(-p "$package")
    done < <({ git diff --name-only {{SINCE}} -- crates; git ls-files --others --exclude-standard crates; } |
        cut -d / -f 2 | grep -vx -e benchmarks -e fuzz | sort -u)
    if [ ${#units[@]} -eq 0 ]; then echo "no crate differs from {{SINCE}}"; exit; fi
    cargo test --quiet --locked "${units[@]}" --lib
    [ ${#programs[@]} -eq 0 ] || cargo test --quiet --locked "${programs[@]}" --test it

# Formatting, and lints with warnings denied.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Format everything.
fmt:
    cargo fmt --all

# The interoperability tests of grpc-go through the proxy; needs Go.
grpc-interop *ARGS:
    .ci/grpc-interop {{ARGS}}

# The documentation, warnings denied.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --document-private-items

# The documents as pages in target/site; a link that leads nowhere fails.
site:
    command -v cmark-gfm >/dev/null || .ci/setup cmark-gfm
    packaging/site "${CARGO_TARGET_DIR:-target}/site"

# Licences, sources and banned crates; advisories where their database can be reached.
deny:
    command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
    cargo deny --locked --log-level error check --hide-inclusion-graph bans licenses sources
    if cargo deny fetch db >/dev/null 2>&1; then cargo deny --locked --log-level error check advisories; \
    else echo "advisories NOT checked: their database cannot be reached from here"; fi

# Write docs/options.md and the tables of docs/journal-schema.md, docs/figures.md and docs/metrics.md anew.
schema:
    UPDATE_DOCS=1 cargo test --locked -p tlsdash-records --test schema
    UPDATE_DOCS=1 cargo test --locked -p tlsdash-model --test it figures::
    UPDATE_DOCS=1 cargo test --locked -p tlsdash --lib the_document_lists_every_option
    UPDATE_DOCS=1 cargo test --locked -p tlsdash --test it the_document_lists_every_metric

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

# Draw docs/examples/observe-haproxy.svg anew from `tlsdash observe` over a HAProxy under load, in a minute.
screenshot-observe:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --release --locked -p tlsdash
    cargo build --locked -p tlsdash-tui --example screenshot
    target=$(realpath "${CARGO_TARGET_DIR:-target}") picture=$PWD/docs/examples/observe-haproxy.svg folder=$(mktemp -d)
    tlsdash=$target/release/tlsdash log=udp:127.0.0.1:15514
    trap 'kill $haproxy $load 2>/dev/null || true; rm -rf "$folder"' EXIT
    cd "$folder"
    openssl req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 -days 20 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem 2>/dev/null
    cat cert.pem key.pem > both.pem
    lines=$("$tlsdash" observe setup haproxy --syslog "$log" | sed '/# In each frontend with mode tcp/,$d')
    cat > haproxy.cfg <<END
    defaults
        mode http
        timeout connect 5s
        timeout client 20s
        timeout server 20s
    frontend clients
        bind 127.0.0.1:15443 ssl crt both.pem alpn h2,http/1.1
    $lines
        default_backend application
    backend application
        server application 127.0.0.1:15480
    frontend application
        bind 127.0.0.1:15480
        http-request return status 200 content-type text/plain string hello
    END
    haproxy -db -f haproxy.cfg 2>/dev/null & haproxy=$!
    sleep 1
    "$tlsdash" load https://localhost:15443/ --insecure -r 150 -c 16 -k 5 --resume 70% --source-addresses 12 -d 60s \
        --headless --journal off >/dev/null 2>&1 & load=$!
    "$target/debug/examples/screenshot" "$picture" "$tlsdash" observe haproxy --syslog "$log" --pid "$haproxy" \
        --certificate-of localhost@127.0.0.1:15443 --theme dark --journal file:observe.journal

# Draw docs/examples/wire.svg anew from `tlsdash wire` over nginx, HAProxy and OpenSSL under load, in a minute; needs root.
screenshot-wire:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --release --locked -p tlsdash
    cargo build --locked -p tlsdash-tui --example screenshot
    target=$(realpath "${CARGO_TARGET_DIR:-target}") picture=$PWD/docs/examples/wire.svg folder=$(mktemp -d)
    tlsdash=$target/release/tlsdash
    trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
    cd "$folder"
    openssl req -x509 -nodes -newkey rsa:2048 -days 20 -subj /CN=localhost -keyout key.pem -out cert.pem 2>/dev/null
    cat cert.pem key.pem > both.pem
    cat > nginx.conf <<END
    daemon off; pid $folder/nginx.pid; error_log /dev/null; events {}
    http {
        access_log off;
        server { listen 127.0.0.1:15443 ssl; ssl_certificate $folder/cert.pem; ssl_certificate_key $folder/key.pem;
                 ssl_session_tickets on; location / { return 200 hello; } }
    }
    END
    cat > haproxy.cfg <<END
    defaults
        mode http
        timeout connect 5s
        timeout client 20s
        timeout server 20s
    frontend clients
        bind 127.0.0.1:15444 ssl crt both.pem
        http-request return status 200 content-type text/plain string hello
    END
    nginx -c "$folder/nginx.conf" &
    haproxy -db -f haproxy.cfg 2>/dev/null &
    openssl s_server -accept 127.0.0.1:15445 -cert cert.pem -key key.pem -www -quiet >/dev/null 2>&1 &
    sleep 1
    for load in "15443 150 70%" "15444 80 90%" "15445 20 0%"; do
        read -r port rate resume <<<"$load"
        "$tlsdash" load "https://localhost:$port/" --insecure -r "$rate" -c 8 -k 4 --resume "$resume" --source-addresses 12 \
            -d 60s --headless --journal off >/dev/null 2>&1 &
    done
    "$target/debug/examples/screenshot" "$picture" "$tlsdash" wire --port 15443,15444,15445 --theme dark \
        --journal file:wire.journal

# Recordings of this version with their figures, which later versions must give too; for a release.
golden:
    #!/usr/bin/env bash
    set -euo pipefail
    data=$PWD/crates/tlsdash/tests/data/golden folder=$(mktemp -d) program=$(.ci/as-tested)
    trap 'rm -rf "$folder"' EXIT
    cp "$program" "$folder"
    cd "$folder"
    version=$(./tlsdash --version | cut -d' ' -f2)
    echo 00000000000000000000000000000001 >machine-id
    for mode in tcp http; do
        name=$version-$mode
        # The names of this machine are nobody's business.
        unshare --map-root-user --uts --mount sh -euc 'hostname golden; mount --bind machine-id /etc/machine-id
            exec "$@"' sh ./tlsdash demo --headless --duration 5s --mode $mode --load rate=100,connections=8 \
            --journal off --record "$name.journal" >/dev/null
        # Only figures: sentences may change.
        ./tlsdash report "$name.journal" --json - | jq -c 'del(.environment, .settings, .happened, .headline, .warnings,
            .quality, .summary.findings, .summary.journal.source)' >"$data/$name.json"
        gzip -9n <"$name.journal" >"$data/$name.journal.gz"
    done

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

# A scenario of docs/scenarios with a release build, such as: just bench-scenario lighttpd --save results
bench-scenario NAME *ARGS:
    cargo build --release --locked -p tlsdash
    "${CARGO_TARGET_DIR:-target}/release/tlsdash" bench "docs/scenarios/{{NAME}}.toml" {{ARGS}}

# CPU time per request beside the terminators that are installed, such as: just bench-peers --only tlsdash,nginx --case 'full*'
bench-peers *ARGS: (bench-scenario "peers" ARGS)

# The same with an RSA key.
bench-peers-rsa *ARGS: (bench-scenario "peers-rsa" ARGS)

# Resident memory of an idle connection, in nine minutes, such as: just bench-memory --rounds 8
bench-memory *ARGS: (bench-scenario "memory" ARGS)

# 40 comparisons of a server with itself, in 20 minutes: at most 5 may be called different.
bench-aa *ARGS:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --release --locked -p tlsdash
    folder=$(mktemp -d) different=0
    trap 'rm -rf "$folder"' EXIT
    for number in {1..40}; do
        "${CARGO_TARGET_DIR:-target}/release/tlsdash" bench docs/scenarios/aa.toml --json "$folder/aa.json" {{ARGS}} >/dev/null
        outcome=$(jq -r '.cases[].targets[].verdict | select(. != null) | .outcome' "$folder/aa.json")
        echo "$number: $outcome"
        case $outcome in better|worse) different=$((different + 1));; esac
    done
    echo "$different of 40 called different"
    [ "$different" -le 5 ]

# Whether 5 % more CPU time is found, in four minutes: fails if it is not called worse.
bench-power *ARGS: (bench-scenario "power" ARGS)

# The quick parts of the five seeds, in 15 minutes; results go to a folder if one is named: just bench-seeds results
bench-seeds FOLDER="":
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --release --locked -p tlsdash
    folder={{quote(FOLDER)}}
    for seed in 000 001 002 003 004; do
        save=()
        if [ -n "$folder" ]; then save=(--save "$folder/$seed" --md "$folder/$seed.md"); mkdir -p "$folder"; fi
        "${CARGO_TARGET_DIR:-target}/release/tlsdash" bench "seed:$seed" --quick "${save[@]}"
    done

# Latency of established connections while many others shake hands, beside HAProxy and nginx, in seven minutes, such as: just bench-burst --rounds 4 --seconds 1
bench-burst *ARGS:
    cargo build --release --locked -p tlsdash
    cargo bench --locked -p benchmarks --bench burst -- \
        --program "$(realpath "${CARGO_TARGET_DIR:-target}/release/tlsdash")" {{ARGS}}

# Latency of 100 clients while 10,000 addresses flood, beside HAProxy with a stick table, in ten minutes: just bench-flood --rounds 3
bench-flood *ARGS:
    cargo build --release --locked -p tlsdash
    cargo bench --locked -p benchmarks --bench burst -- --flood yes \
        --program "$(realpath "${CARGO_TARGET_DIR:-target}/release/tlsdash")" {{ARGS}}

# CPU of a frame of the dashboard; `just bench-instructions` has its instructions.
bench-frame:
    cargo bench --locked -p benchmarks --bench frame

# How soon a key shows in a terminal, and CPU of the dashboard's threads at four frames a second with 10,000 clients.
bench-terminal:
    cargo build --release --locked -p tlsdash
    cargo bench --locked -p tlsdash-tui --bench terminal -- "$(realpath "${CARGO_TARGET_DIR:-target}")/release/tlsdash" demo \
        --interval 250ms --load rate=1000,connections=64,source-addresses=10000,keep-alive=1,resume=80%

# Instructions of each path against its budget; with a revision, the proxy's against that: just bench-instructions main
bench-instructions REVISION="":
    .ci/instructions check {{REVISION}}

# Write the instruction budgets anew, after a change that is worth its price.
budgets:
    .ci/instructions write

# A GiB each way over both versions of TLS and both kinds of upstream, compared byte by byte.
soak MIB="1024":
    cargo run --release --locked -p tlsdash-proxy-core --example soak {{MIB}}

# Ten minutes of HTTP/1.1, HTTP/2, gRPC and WebSocket before upstreams that restart every 10 s and names that move every
# 5 s: only requests in flight that may not be sent twice fail, and only when their upstream closes without GOAWAY. Each is
# counted, and memory stays flat (runs of a minute and more). Shorter: just soak-http 120
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

# Counts of `tlsdash wire` beside those of the clients of eight servers, 10,000 connections with each version of TLS, in ten minutes: just wire-truth 2000
wire-truth CONNECTIONS="10000":
    #!/usr/bin/env bash
    set -euo pipefail
    export TLSDASH_WIRE_CONNECTIONS={{CONNECTIONS}}
    timeout 1500 cargo test --locked -p tlsdash --test measured -- alone::wire --nocapture --test-threads 1 2>&1 |
        grep --line-buffered -E '^(error|test |NOT RUN)| TLS 1\.[23] |: p(50|99) |plaintext |panicked|^ +(left|right): '

# Simulated hosts in a log store, read by roll-ups: their totals, percentiles and the time it takes. Smaller: just fleet 100x60; with an interval of a minute: 500x10080x60
fleet SIZE="500x60":
    .ci/go-programs victoria-logs
    TLSDASH_FLEET={{SIZE}} timeout 7200 cargo test --release --locked -p tlsdash --test it many_hosts:: -- --nocapture

# A log of nginx of so many requests, replayed twice as fast: the second log has the same requests, clients and connections.
replay REQUESTS="100000":
    TLSDASH_REPLAY={{REQUESTS}} timeout 1500 cargo test --release --locked -p tlsdash --test measured -- replayed_log --nocapture

# A load like traffic that was recorded for so many seconds: it is recorded in turn, and compared.
like SECONDS="60":
    TLSDASH_LIKE={{SECONDS}} timeout 900 cargo test --release --locked -p tlsdash --test measured -- like_a_recording --nocapture

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
ci: test lint doc site deny smoke h2spec axe bench-instructions fuzz
