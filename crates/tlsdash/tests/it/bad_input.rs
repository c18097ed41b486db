//! Whatever is wrong: one clear line, the right exit code, nothing half started.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::common::{
    TlsdashProcess, connects, journal, make_certificate, outside, proxy, run, stderr, tlsdash, upstream,
};

/// Runs with `args` and expects exit code `code` and one line with all of `parts`.
fn refused(folder: &Path, args: &[&str], code: i32, parts: &[&str]) {
    let output = run(folder, args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{args:?}: {part:?} is not in {said:?}");
    }
    assert!(!said.contains("panicked") && !said.contains("RUST_BACKTRACE"), "{said}");
}

fn certificate(folder: &Path, name: &str) -> (String, String) {
    let path = |end: &str| folder.join(format!("{name}.{end}")).to_str().unwrap().to_owned();
    let (cert, key) = (path("pem"), path("key"));
    make_certificate(Path::new(&cert), Path::new(&key), "localhost", 2, &[]);
    (cert, key)
}

#[test]
fn whatever_is_quoted_on_the_terminal_is_printable() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let hostile = "\u{1b}]0;title\u{7}\u{1b}[2J\u{202e}\nx";
    let file = at.join(format!("{hostile}.toml"));
    fs::write(&file, "upstream = \"unix:/x\"\n\"\\u001b[2J\" = 1\n").unwrap();
    for args in [
        &["--upstream", &format!("unix:/{hostile}"), "--listen", "127.0.0.1:0", "--duration", "1ms"][..],
        &["--upstream", hostile],
        &["--config", file.to_str().unwrap()],
        &["--upstream", "unix:/x", "--cert", hostile, "--key", hostile],
        &["--upstream", "unix:/x", "--client-ca", hostile],
        &["--upstream", "unix:/x", "--user", hostile],
        &["--upstream", "unix:/x", "--alpn", hostile],
        &["--upstream", "unix:/x", "--journal", &format!("file:/{hostile}/x.journal")],
        &[hostile],
        &["watch", hostile],
    ] {
        let output = run(at, args);
        let said = stderr(&output);
        assert!(!said.is_empty(), "{args:?}");
        let is_printable = |c: char| c == '\n' || (!c.is_control() && c != '\u{202e}');
        assert!(said.chars().all(is_printable), "{args:?}: {said:?}");
        assert!(said.lines().all(|line| line.starts_with("tlsdash: ")), "{args:?}: {said:?}");
    }
}

#[test]
fn words_of_tls_to_upstreams_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (args, parts) in [
        (&["--upstream", "tls://h"][..], &["--upstream tls://h", "the port is missing"][..]),
        (
            &["--upstream", "unix:/x", "--upstream-ca", "/x.pem"],
            &["--upstream-ca goes with", "tls://HOST:PORT"],
        ),
        (
            &["--upstream", "tls://h:1", "--upstream-cert", "/x.pem"],
            &["--upstream-cert needs --upstream-key"],
        ),
    ] {
        refused(at, args, 2, parts);
    }
    assert_eq!(fs::read_dir(at).unwrap().count(), 0, "nothing is begun");
}

#[test]
fn wrong_words_end_with_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (args, parts) in [
        (&["--no-such-flag"][..], &["unexpected argument '--no-such-flag'", "--help"][..]),
        (&["load"], &["URL"]),
        (&["man", "nothing"], &["nothing"]),
        (&["--headless"], &["--upstream and --route are missing"]),
        (&["--upstream", "nowhere"], &["--upstream nowhere"]),
        (&["--upstream", "unix:"], &["--upstream unix:"]),
        (&["--upstream", "unix:/x", "--listen", "8443"], &["--listen 8443"]),
        (&["--upstream", "unix:/x", "--listen", "localhost:99999"], &["--listen localhost:99999"]),
        (&["--upstream", "unix:/x", "--headless", "--duration", "0"], &["--duration 0"]),
        (&["--upstream", "unix:/x", "--headless", "--duration", "soon"], &["--duration soon", "10s"]),
        (&["--upstream", "unix:/x", "--interval", "1ms"], &["--interval 1ms", "100ms"]),
        (&["--upstream", "unix:/x", "--journal", "disk"], &["--journal disk"]),
        (&["--upstream", "unix:/x", "--journal", "file:/tmp/x.log"], &[".journal"]),
        (&["--upstream", "unix:/x", "--load", "speed=9"], &["speed"]),
        (&["--upstream", "unix:/x", "--load", "rate=0"], &["rate"]),
        (&["--upstream", "unix:/x", "--proxy-protocol", "v3"], &["--proxy-protocol v3", "v1 or v2"]),
        (
            &["--upstream", "unix:/x", "--accept-proxy", "lb.example"],
            &["--accept-proxy lb.example", "10.0.0.0/8"],
        ),
        (&["--upstream", "unix:/x", "--cpus", "3-1"], &["--cpus 3-1", "0-3,8"]),
        (&["--upstream", "unix:/x", "--handshakes-max", "0"], &["--handshakes-max"]),
        (&["--upstream", "unix:/x", "--cert", "/x.pem"], &["--cert needs --key"]),
        (&["--upstream", "unix:/x", "--config", "/no/such.toml"], &["/no/such.toml"]),
        (&["demo", "--duration", "0s"], &["--duration 0s"]),
        (&["demo", "--load", "streams=4"], &["--load streams=4", "http2=on"]),
        (&["demo", "--load", "http2=on"], &["h2 in ALPN", "--mode http"]),
        (&["load", "nonsense"], &["nonsense"]),
        (&["load", "localhost:80/"], &["\"localhost:80/\"", "no scheme, such as http://"]),
        (&["watch", "--run", "xyz"], &["--run xyz"]),
    ] {
        refused(at, args, 2, parts);
    }
    assert_eq!(fs::read_dir(at).unwrap().count(), 0, "nothing is begun");
}

#[test]
fn wrong_words_of_a_load_end_with_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    for (args, parts) in [
        (&["load", "https://127.0.0.1:1/", "--rate", "0"][..], &["--rate 0"][..]),
        (&["load", "https://127.0.0.1:1/", "--resume", "120%"], &["--resume 120%"]),
        (&["load", "https://127.0.0.1:1/", "-c", "0"], &["connections"]),
        (&["load", "http://127.0.0.1:1/", "--resume", "50%"], &["--resume needs TLS"]),
        (&["load", "https://127.0.0.1:1/", "--early-data"], &["--resume"]),
        (&["load", "https://127.0.0.1:1/", "-n", "0"], &["--requests 0", "a whole number from 1"]),
        (&["load", "https://127.0.0.1:1/", "-d", "0"], &["--duration 0"]),
        (&["load", "https://127.0.0.1:1/", "-c", "1000000"], &["--connections 1000000", "from 1 to 100000"]),
        (&["load", "https://127.0.0.1:1/", "-r", "5..6"], &["--rate 5..6", "100..1000/30s"]),
        (&["load", "https://127.0.0.1:1/", "-d", "5s", "--warmup", "6s"], &["leaves nothing to measure"]),
        (&["load", "https://127.0.0.1:1/", "--style", "siege"], &["--style siege", "vegeta"]),
        (&["load", "https://127.0.0.1:1/", "--assert", "p99"], &["'response.p99 < 5ms'"]),
        (
            &["load", "https://127.0.0.1:1/", "--assert", "speed < 5"],
            &["there is no figure speed", "rate.achieved"],
        ),
        (&["load", "https://127.0.0.1:1/", "--tls-version", "1.1"], &["--tls-version 1.1"]),
        (&["load", "https://127.0.0.1:1/", "--targets", "/no/such"], &["--targets /no/such"]),
        (&["load", "https://127.0.0.1:1/", "--replay", "/no/such"], &["--replay /no/such: cannot read it"]),
        (&["load", "https://127.0.0.1:1/", "--replay", "/proc/version"], &["no line is of an access log"]),
        (
            &["load", "https://127.0.0.1:1/", "--replay", "x", "--speed", "0"],
            &["--speed 0", "from 0.001 to 1000"],
        ),
        (&["load", "https://127.0.0.1:1/", "--replay", "x", "-r", "5"], &["--rate"]),
        (&["load", "https://127.0.0.1:1/", "--speed", "2"], &["--replay"]),
        (
            &["load", "https://127.0.0.1:1/", "--connect-to", "a:1"],
            &["--connect-to a:1", "HOST:PORT:ADDR:PORT"],
        ),
        (
            &["load", "https://127.0.0.1:1/", "--connect-to", "a::b:"],
            &["no --connect-to is for 127.0.0.1 and port 1"],
        ),
        (&["load", "https://127.0.0.1:1/", "-H", "nonsense"], &["--header nonsense"]),
        (&["load", "http://127.0.0.1:1/", "-X", "G ET"], &["request G ET /: the method"]),
        (&["load", "http://127.0.0.1:1/", "-H", "X-Ü: a"], &["request GET /: the name of a header field"]),
        (&["load", "http://127.0.0.1:1/", "-H", "Connection: close"], &["the generator itself sets"]),
        (&["load", "https://127.0.0.1:1/", "--ciphers", "NONE"], &["no cipher suite NONE"]),
        (&["load", "https://127.0.0.1:1/", "--ca", "/no/such"], &["authorities in /no/such"]),
        (&["load", "https://127.0.0.1:1/", "--sni", "a b"], &["not a name that a TLS server"]),
        (&["load", "http://192.0.2.1:1/", "--source-addresses", "2"], &["source-addresses=2 needs a target"]),
        (&["load", "https://127.0.0.1:1/", "--ramp-up", "5s"], &["--requests"]),
        (&["load", "-k", "https://127.0.0.1:1/"], &["--keep-alive https", "curl's -k is --insecure here"]),
        (&["load", "https://127.0.0.1:1/", "-k"], &["--keep-alive", "curl's -k is --insecure here"]),
    ] {
        refused(folder.path(), args, 2, parts);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is begun");
}

#[test]
fn options_that_do_not_fit_the_mode_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (args, parts) in [
        (&["--mode", "http"][..], &["--upstream and --route are missing"][..]),
        (&["--mode", "http", "--route", "api=h:1"], &["--route 1: \"api\"", "expected [HOST]/PATH=UPSTREAM"]),
        (
            &["--mode", "http", "--route", "/a=h:1", "--route", "/a=h:2"],
            &["--route 1 and --route 2", "serve /a"],
        ),
        (
            &["--mode", "http", "--upstream", "h:1", "--route", "/=h:2"],
            &["--route 1 and --upstream", "serve /"],
        ),
        (
            &["--mode", "http", "--upstream", "h:1", "--proxy-protocol", "v2"],
            &["--mode tcp or --pass only", "--tls-headers"],
        ),
        (&["--upstream", "h:1", "--route", "/a=h:2"], &["--route 1: the path /a goes with --mode http only"]),
        (&["--upstream", "h:1", "--queue-max", "5"], &["--queue-max goes with --mode http only"]),
    ] {
        refused(folder.path(), args, 2, parts);
    }
}

#[test]
fn values_that_cannot_be_are_refused_before_anything_begins() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let own = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let many_cpus = format!("{}0", "0,".repeat(300));
    for (args, parts) in [
        (
            &["--upstream", "unix:/x", "--handshakes-max", "1000001"][..],
            &["--handshakes-max 1000001", "1000000"][..],
        ),
        (&["--upstream", "unix:/x", "--connections-per-client", "9999999"], &["--connections-per-client"]),
        (
            &["--upstream", "unix:/x", "--listen", "127.0.0.1:0", "--connections-max", "999999999999"],
            &["999999999999", "descriptors"],
        ),
        (&["--upstream", "unix:/x", "--workers", "257"], &["--workers 257", "256"]),
        (&["--upstream", "unix:/x", "--cpus", &many_cpus], &["--workers 301", "256"]),
        (
            &["--upstream", "unix:/x", "--handshake-timeout", "1us"],
            &["--handshake-timeout 1us", "1ms to 24h"],
        ),
        (&["--upstream", "unix:/x", "--connect-timeout", "2days"], &["--connect-timeout", "1ms to 24h"]),
        (&["--upstream", "unix:/x", "--idle-timeout", "300000000000years"], &["--idle-timeout", "24h"]),
        (&["--upstream", "unix:/x", "--send-timeout", "0s"], &["--send-timeout"]),
        (&["--upstream", "unix:/x", "--pending-max", "512"], &["--pending-max", "512MiB"]),
        (&["--upstream", "unix:/x", "--pending-max", "99999999GiB"], &["--pending-max"]),
        (&["--upstream", "unix:/x", "--memory-max", "63MiB"], &["--memory-max", "64MiB to 1024GiB"]),
        (&["--upstream", "unix:/x", "--drain-timeout", "99999999999999999999s"], &["--drain-timeout"]),
        (&["--upstream", "unix:/x", "--upstream", "unix:/x"], &["--upstream unix:/x", "twice"]),
        (&["--upstream", &own, "--listen", &own], &["where the proxy itself listens"]),
        (&["--upstream", "unix:/x", "--ticket-lifetime", "1s"], &["--ticket-lifetime", "from 60"]),
        (&["--upstream", "unix:/x", "--session-cache", "1000001"], &["--session-cache", "1000000"]),
    ] {
        refused(at, args, 2, parts);
    }
    assert_eq!(fs::read_dir(at).unwrap().count(), 0, "nothing is begun");
}

#[test]
fn a_configuration_error_names_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tlsdash.toml");
    fs::write(&file, "upstream = \"unix:/x\"\nworker = 2\n").unwrap();
    refused(folder.path(), &["--config", file.to_str().unwrap()], 2, &["tlsdash.toml", "worker"]);
    fs::write(&file, "upstream = \"unix:/x\"\nworkers = \"two\"\n").unwrap();
    refused(folder.path(), &["--config", file.to_str().unwrap()], 2, &["tlsdash.toml", "line 2"]);
}

#[test]
fn the_configuration_in_force_is_printed_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tlsdash.toml");
    fs::write(&file, "upstream = \"unix:/run/app.sock\"\nidle-timeout = \"1m\"\n").unwrap();
    let output =
        run(folder.path(), &["--config", file.to_str().unwrap(), "--workers", "3", "--print-config"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    for line in
        ["upstream = [\"unix:/run/app.sock\"]", "idle-timeout = \"1m\"", "workers = 3", "interval = \"1s\""]
    {
        assert!(printed.lines().any(|l| l == line), "{line} in {printed}");
    }
    fs::write(&file, &printed).unwrap();
    let again = run(folder.path(), &["--config", file.to_str().unwrap(), "--print-config"]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), printed);
}

#[test]
fn a_certificate_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (cert, key) = certificate(at, "one");
    let (_, other_key) = certificate(at, "two");
    let empty = at.join("empty.pem");
    fs::write(&empty, "").unwrap();
    let empty = empty.to_str().unwrap();
    let with = |cert: &str, key: &str, parts: &[&str]| {
        refused(at, &["--upstream", "unix:/x", "--headless", "--cert", cert, "--key", key], 2, parts);
    };
    with("/no/such.pem", &key, &["/no/such.pem"]);
    with(&cert, "/no/such.key", &["/no/such.key"]);
    with(&cert, &other_key, &["two.key", "one.pem"]);
    with(empty, &key, &["empty.pem"]);
    with(&cert, empty, &["empty.pem"]);
    with(&key, &cert, &[".key"]);
    assert!(!at.join("tlsdash.journal").exists(), "no journal is begun");
}

#[test]
fn a_key_that_others_can_read_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(folder.path(), "one");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let socket = upstream(folder.path(), b"x");
    let mut running = proxy(folder.path(), &socket, &["--cert", &cert, "--key", &key]);
    assert!(running.line_with("warning").contains("one.key"));
    running.address();
    assert_eq!(running.end().0, 0);
}

#[test]
fn descriptors_for_few_connections_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let app = upstream(folder.path(), b"x");
    let start = |args: &str| {
        let mut limited = Command::new("sh");
        let script = format!("ulimit -n 200; exec \"$0\" \"$@\" --workers 1 --journal off --headless {args}");
        limited.args(["-c", &script, env!("CARGO_BIN_EXE_tlsdash"), "--listen", "127.0.0.1:0", "--upstream"]);
        limited.arg(format!("unix:{}", app.display())).env("STATE_DIRECTORY", folder.path());
        let mut running = TlsdashProcess::start(limited);
        running.address();
        let (code, _, said) = running.end_and_tell();
        assert_eq!(code, 0, "{said}");
        said
    };
    let warning = "the limit of 200 descriptors is enough for 33 connections at once; raise it (ulimit -n, ";
    let said = start("");
    assert!(said.contains(warning), "{said}");
    let said = start("--connections-max 20");
    assert!(!said.contains("descriptors"), "{said}");
}

#[test]
fn a_port_in_use_is_refused_also_by_another_tlsdash() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let journal_arg = format!("file:{}", folder.path().join("y.journal").display());
    let args = |address: &'static str| {
        ["--headless", "--upstream", "unix:/x", "--journal", &journal_arg, "--listen", address]
            .map(str::to_owned)
    };
    let refuse = |address: String| {
        let args = args(Box::leak(address.clone().into_boxed_str()));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        refused(folder.path(), &args, 1, &[&address, "in use"]);
        assert!(!folder.path().join("y.journal").exists(), "no journal is begun");
    };
    refuse(address);
    let socket = upstream(folder.path(), b"x");
    let mut first = proxy(folder.path(), &socket, &[]);
    let address = first.address();
    refuse(address.to_string());
    assert!(connects(address), "the first still serves");
    assert_eq!(first.end().0, 0);
}

#[test]
fn a_journal_that_cannot_be_written_prevents_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let args = |journal: &'static str| {
        ["--headless", "--listen", "127.0.0.1:0", "--upstream", "unix:/x", "--journal", journal]
    };
    refused(at, &args("file:/no/such/folder/x.journal"), 1, &["/no/such/folder/x.journal"]);
    refused(at, &args("file:/proc/x.journal"), 1, &["/proc/x.journal"]);
    fs::create_dir(at.join("d.journal")).unwrap();
    let directory = format!("file:{}", at.join("d.journal").display());
    refused(at, &args(Box::leak(directory.into_boxed_str())), 1, &["d.journal"]);
    let socket = upstream(at, b"x");
    let mut first = proxy(at, &socket, &[]);
    first.address();
    let locked = format!("file:{}", journal(at).display());
    refused(at, &args(Box::leak(locked.into_boxed_str())), 1, &["x.journal"]);
    assert_eq!(first.end().0, 0);
}

#[test]
fn a_journal_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    refused(at, &["watch", "--headless", "/no/such.journal"], 1, &["/no/such.journal"]);
    refused(at, &["watch", "--headless"], 1, &["no journal to watch"]);
    let text = at.join("text.journal");
    fs::write(&text, "not a journal, although it is longer than a header needs to be\n".repeat(20)).unwrap();
    refused(at, &["watch", "--headless", text.to_str().unwrap()], 1, &["text.journal"]);
    fs::write(&text, "").unwrap();
    refused(at, &["watch", "--headless", text.to_str().unwrap()], 1, &["text.journal"]);
}

#[test]
fn a_load_checks_that_its_target_listens_before_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    let url = "https://127.0.0.1:1/";
    refused(folder.path(), &["load", url, "-n", "3", "--headless"], 1, &[url, "Connection refused"]);
    let (cert, key) = certificate(folder.path(), "unknown");
    let socket = upstream(folder.path(), b"ok");
    let mut running = proxy(folder.path(), &socket, &["--cert", &cert, "--key", &key]);
    let url = format!("https://{}/", running.address());
    // openssl marks what it signs for itself as an authority's.
    let parts = [&url, "the certificate is an authority's (a CA's)", "--ca FILE", "--insecure"];
    refused(folder.path(), &["load", &url, "-n", "3", "--headless"], 1, &parts);
    // What a server has signed for itself can be named itself, if the name is right.
    let named = |name: &str| {
        let args = ["load", &url, "-n", "3", "-k", "off", "--headless", "--ca", &cert, "--sni", name];
        run(folder.path(), &args)
    };
    assert!(named("localhost").status.success(), "{}", stderr(&named("localhost")));
    assert!(
        stderr(&named("other.test"))
            .contains("the certificate is not for other.test, but for localhost; ask for one of"),
        "{}",
        stderr(&named("other.test"))
    );
    let many = ["load", &url, "--insecure", "-n", "3", "-c", "100000", "--headless"];
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 500; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_tlsdash")]).args(many);
    let output = limited.env("STATE_DIRECTORY", folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("the limit is 500; raise it with ulimit -n"), "{}", stderr(&output));
    running.end();
}

#[test]
fn a_missing_upstream_is_a_warning_and_a_clean_close() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("later.sock");
    let mut running = proxy(folder.path(), &socket, &[]);
    assert!(running.line_with("warning").contains("later.sock"));
    let address = running.address();
    let output = outside("openssl", "openssl")
        .args(["s_client", "-connect", &address.to_string(), "-quiet"])
        .output()
        .unwrap();
    assert!(!stderr(&output).contains("unexpected eof"), "{}", stderr(&output));
    let (code, summary) = running.end();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(code, 0);
    assert_eq!(summary["proxy"]["connections"]["failed"], 1, "{summary}");
}

#[test]
fn a_dashboard_cannot_go_without_a_journal() {
    let folder = tempfile::tempdir().unwrap();
    // A terminal is needed to be asked for a dashboard at all.
    let mut command = Command::new("script");
    command
        .args(["-qec", "\"$PROGRAM\" demo --journal off", "/dev/null"])
        .env("PROGRAM", env!("CARGO_BIN_EXE_tlsdash"));
    command.env("STATE_DIRECTORY", folder.path()).env("TERM", "xterm");
    let output = command.output().expect("script is part of Debian's package bsdutils");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stdout).contains("--headless"));
}

#[test]
fn without_a_terminal_the_program_runs_headless_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = tlsdash(folder.path());
    command.args(["demo", "--duration", "1s"]);
    let mut running = TlsdashProcess::start(command);
    running.line_with("running as with --headless");
    let (code, printed) = running.wait();
    assert_eq!(code, 0);
    assert!(!printed.contains('\u{1b}'));
}
