//! A load that is like recorded traffic, recorded in turn, is like it.

use std::path::{Path, PathBuf};

use loadgen::{DemoUpstream, UpstreamAddr};
use serde_json::Value;

use crate::common::{TlsdashProcess, run, stderr, tlsdash};

/// How long traffic is recorded, in seconds.
fn seconds() -> u64 {
    std::env::var("TLSDASH_LIKE").map_or(6, |text| text.parse().expect("seconds"))
}

/// A proxy in HTTP mode before the demo's upstream, recorded.
struct RecordedSite {
    folder: tempfile::TempDir,
    upstream: DemoUpstream,
}

impl RecordedSite {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let upstream = DemoUpstream::start(UpstreamAddr::Unix(folder.path().join("app.sock"))).unwrap();
        Self { folder, upstream }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Records what the loads do: each is given the proxy's port.
    fn record(&self, name: &str, loads: &[&dyn Fn(u16) -> Vec<String>]) -> PathBuf {
        let recording = self.path(name);
        let mut proxy = tlsdash(self.folder.path());
        let UpstreamAddr::Unix(socket) = self.upstream.address() else { panic!("a unix socket") };
        proxy.args(["--headless", "--journal", "off", "--listen", "127.0.0.1:0", "--mode", "http"]);
        let upstream = format!("unix:{}", socket.display());
        proxy.args(["--upstream", &upstream, "--route", &format!("/api={upstream}"), "--record"]);
        proxy.arg(&recording);
        let mut proxy = TlsdashProcess::start(proxy);
        let port = proxy.address().port();
        let running: Vec<_> = loads
            .iter()
            .map(|load| {
                let mut command = tlsdash(self.folder.path());
                command.args(["load", "--headless", "--journal", "off", "--insecure"]).args(load(port));
                TlsdashProcess::start(command)
            })
            .collect();
        for load in running {
            let (code, _, said) = load.wait_and_tell();
            assert_eq!(code, 0, "{said}");
        }
        let (code, _, said) = proxy.end_and_tell();
        assert_eq!(code, 0, "{said}");
        recording
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_load_like_a_recording_is_like_it_when_it_is_recorded() {
    let site = RecordedSite::new();
    let targets = site.path("targets");
    std::fs::write(&targets, "6 GET /bytes/13\n3 GET /bytes/10000\n1 POST /echo\n@5000\n").unwrap();
    let seconds = seconds();
    let all = format!("-d {seconds}s --targets {}", targets.display());
    let a = site.record(
        "a.journal",
        &[
            &|port| words(&format!("https://localhost:{port}/ {all} -r 60 --arrivals poisson -k 5 --resume 70% -c 8 --source-addresses 6")),
            &|port| words(&format!("https://localhost:{port}/ {all} -r 30..90/{seconds}s --http2 -m 4 -c 4 --lifetime 1s --resume 50% --groups secp256r1 --source-addresses 2")),
        ],
    );
    let b = site.record(
        "b.journal",
        &[&|port| words(&format!("https://localhost:{port}/bytes/{{bytes}} --like {}", a.display()))],
    );

    let compared = run(
        site.folder.path(),
        &["compare", a.to_str().unwrap(), b.to_str().unwrap(), "--as-mix", "--format", "json"],
    );
    assert!([0, 99].contains(&compared.status.code().unwrap()), "{}", stderr(&compared));
    let compared: Value = serde_json::from_slice(&compared.stdout).unwrap();
    let features = compared["features"].as_array().unwrap();
    println!("{compared:#}");
    let of = |name: &str| {
        let is_one = |one: &&Value| one["feature"].as_str().unwrap().starts_with(name);
        features.iter().filter(is_one).cloned().collect::<Vec<_>>()
    };
    // What does not depend on how busy the machine is.
    for name in ["requests a connection", "bytes of", "version", "method"] {
        let found = of(name);
        let is_alike = |one: &Value| one["is_alike"] == true || one["is_alike"].is_null();
        assert!(
            found.iter().any(|one| one["is_alike"] == true) && found.iter().all(is_alike),
            "{name}: {found:?}"
        );
    }
    // Of few connections, the first of each kind is a try of the load and makes a point or two. On a busy machine the last
    // requests come later.
    for (name, most) in [
        ("group", 3.0),
        ("protocol", 3.0),
        ("resumed", 4.0),
        ("requests a second", 10.0),
        ("connections a second", 10.0),
    ] {
        let found = of(name);
        let is_near = |one: &Value| one["difference"].as_f64().unwrap().abs() < most;
        assert!(!found.is_empty() && found.iter().all(is_near), "{name}: {found:?}");
    }
    assert!(of("resumed")[0]["a"].as_f64().unwrap() > 40.0);
    let bursts: Vec<_> =
        features.iter().filter(|one| one["feature"].as_str().unwrap().contains("disp")).collect();
    assert_eq!(bursts.len(), 6);
}

#[test]
fn a_plan_has_no_names_and_can_be_changed() {
    let site = RecordedSite::new();
    let a = site.record(
        "secret-name.journal",
        &[&|port| {
            words(&format!("https://localhost:{port}/api/bytes/77 -r 50 -d 2s -k 4 --source-addresses 3"))
        }],
    );
    let plan_of = |source: &Path, more: &[&str]| {
        let args = ["load", "https://localhost:1/", "--like", source.to_str().unwrap(), "--print-plan"];
        let printed = run(site.folder.path(), &[&args, more].concat());
        assert!(printed.status.success(), "{}", stderr(&printed));
        String::from_utf8(printed.stdout).unwrap()
    };
    let plan = plan_of(&a, &[]);
    assert!(plan.contains("\"TLSv1.3\" = ") && plan.contains("requests = ["), "{plan}");
    let folder = site.folder.path().display().to_string();
    for name in ["secret-name", "localhost", "127.0.0.", "/bytes", "/api", &folder] {
        assert!(!plan.contains(name), "{name}: {plan}");
    }
    assert!(plan_of(&a, &["--with-paths"]).contains("\nroute = { \"/api\" = 100 }\n"));
    let changed = site.path("changed.toml");
    let sizes = plan.lines().find(|line| line.starts_with("response_bytes")).unwrap();
    std::fs::write(&changed, plan.replace(sizes, "response_bytes = \"500:1\"")).unwrap();
    let b = site.record(
        "b.journal",
        &[&|port| {
            words(&format!(
                "https://localhost:{port}/bytes/{{bytes}} --speed 2 --scale 0.5 --plan {}",
                changed.display()
            ))
        }],
    );
    let again = plan_of(&b, &[]);
    let sizes = again.lines().find(|line| line.starts_with("response_bytes")).unwrap();
    // The middle of the class of 500, for half of a hundred requests.
    assert_eq!(sizes, "response_bytes = \"500:50\"");

    // Beside a proxy, round after round.
    let UpstreamAddr::Unix(socket) = site.upstream.address() else { panic!("a unix socket") };
    let beside = run(
        site.folder.path(),
        &[
            &["--listen", "127.0.0.1:0", "--upstream", &format!("unix:{}", socket.display())][..],
            &["--mode", "http", "--headless", "--journal", "off", "--duration", "4s", "--format", "json"],
            &["--route", &format!("/api=unix:{}", socket.display())],
            &["--load", &format!("like={},path=/bytes/{{bytes}},speed=2,with-paths", a.display())],
        ]
        .concat(),
    );
    assert!(beside.status.success(), "{}", stderr(&beside));
    let beside: Value = serde_json::from_slice(&beside.stdout).unwrap();
    let ok = beside["load"]["requests"]["ok"].as_u64().unwrap();
    assert!(ok > 100, "more than a round: {ok}");
    let routes = beside["proxy"]["http"]["routes"].as_array().unwrap();
    assert!(routes.iter().all(|route| route["route"] == "/api" || route["requests"] == 0), "{routes:?}");

    for (args, reason) in [
        (&["--like", "nothing.journal"][..], "nothing.journal"),
        (&["--plan", "/dev/null"], "missing field"),
        (&["--plan", changed.to_str().unwrap(), "--rate", "5"], "cannot be used with"),
        (&["--scale", "2"], "--like"),
    ] {
        let refused =
            run(site.folder.path(), &[&["load", "https://localhost:1/", "--headless"][..], args].concat());
        assert!(
            !refused.status.success() && stderr(&refused).contains(reason),
            "{args:?}: {}",
            stderr(&refused)
        );
    }
}
