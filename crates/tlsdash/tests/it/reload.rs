//! The configuration file of a running proxy is read again: SIGHUP, `tlsdash ctl reload`, `tlsdash config`.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{
    TlsdashProcess, journal, journalctl, make_certificate, outside, run, stderr, tlsdash, until, upstream,
};
use rustix::process::Signal;
use serde_json::Value;

/// A service with a configuration file and a control socket in the folder.
struct ReloadedService {
    folder: PathBuf,
    running: TlsdashProcess,
    address: SocketAddr,
    /// What every file has.
    common: String,
}

impl ReloadedService {
    fn start(folder: &Path, words: &str, args: &[&str]) -> Self {
        let app = upstream(folder, b"hello");
        let common = format!(
            "upstream = \"unix:{}\"\nheadless = true\ncontrol = \"{}\"\n",
            app.display(),
            folder.join("control.sock").display()
        );
        let file = folder.join("tlsdash.toml");
        fs::write(&file, format!("{common}{words}")).unwrap();
        let mut command = tlsdash(folder);
        command
            .args(["--listen", "127.0.0.1:0", "--journal"])
            .arg(format!("file:{}", journal(folder).display()));
        command.arg("--config").arg(file).args(args);
        let mut running = TlsdashProcess::start(command);
        let address = running.address();
        running.line_with("control socket ");
        Self { folder: folder.to_owned(), running, address, common }
    }

    fn write(&self, words: &str) {
        fs::write(self.folder.join("tlsdash.toml"), format!("{}{words}", self.common)).unwrap();
    }

    /// What `ctl` printed, or why it was refused.
    fn ctl(&self, args: &[&str]) -> Result<String, String> {
        let socket = self.folder.join("control.sock");
        let output = run(&self.folder, &[&["ctl", "--control", socket.to_str().unwrap()], args].concat());
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() { Ok(printed) } else { Err(stderr(&output)) }
    }

    /// A setting, with what gave it its value.
    fn setting(&self, name: &str) -> (Value, Value) {
        let answer: Value =
            serde_json::from_str(&self.ctl(&["settings", "--format", "json"]).unwrap()).unwrap();
        let settings = answer["data"].as_array().unwrap();
        let setting = settings.iter().find(|setting| setting["name"] == name).unwrap();
        (setting["value"].clone(), setting["origin"].clone())
    }
}

#[test]
fn a_reload_applies_the_file_and_names_what_needs_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let words = "idle-timeout = \"60s\"\ntls-max = \"1.2\"\nhandshakes-max = 7\nworkers = 1\n";
    let service = ReloadedService::start(folder.path(), words, &["--tickets", "3"]);
    assert_eq!(service.setting("proxy.idle-timeout"), (60.0.into(), "file".into()));
    assert_eq!(service.setting("proxy.tickets"), (3.0.into(), "flag".into()));
    assert_eq!(service.setting("proxy.drain-timeout").1, "default");
    let same = service.ctl(&["reload"]).unwrap();
    assert_eq!(same, "nothing changed; certificates and keys were read again and are the same\n");

    // Both versions at once: neither order of one after the other is without a refusal.
    service
        .write("idle-timeout = \"30s\"\ntls-min = \"1.3\"\ntickets = 4\nworkers = 2\nlog-names = \"off\"\n");
    let told = service.ctl(&["reload"]).unwrap();
    for part in [
        "changed proxy.handshakes-max from 7 to no bound, proxy.idle-timeout from 60s to 30s, ",
        "proxy.tls-max from 1.2 to 1.3, proxy.tls-min from 1.2 to 1.3, proxy.workers from 1 to 2; ",
        "only a restart changes log-names from unset to off; ",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert_eq!(service.setting("proxy.idle-timeout"), (30.0.into(), "file".into()));
    assert_eq!(service.setting("proxy.handshakes-max"), (0.0.into(), "default".into()));
    assert_eq!(service.setting("proxy.tickets"), (3.0.into(), "flag".into()), "a flag wins");
    assert_eq!(service.setting("proxy.workers").0, 2.0);
    assert_eq!(service.setting("proxy.log-names"), ("on".into(), "default".into()), "it waits for a restart");
    let changes = journalctl(&journal(folder.path()), &["TLSDASH_SETTING=proxy.idle-timeout"]);
    assert!(changes[0]["TLSDASH_SETTING_BY"].as_str().unwrap().starts_with("a reload by "), "{changes:?}");
    let again = service.ctl(&["reload"]).unwrap();
    assert!(
        again.starts_with("nothing changed; only a restart changes log-names from unset to off; "),
        "{again}"
    );
    let cores = std::thread::available_parallelism().unwrap().get();
    service.write(&format!("workers = {}\n", cores + 1));
    service.ctl(&["reload"]).unwrap();
    service.write("");
    let told = service.ctl(&["reload"]).unwrap();
    assert!(told.contains(&format!("proxy.workers from {} to {cores}", cores + 1)), "{told}");
    assert_eq!(service.running.end().0, 0);
}

#[test]
fn a_hang_up_reloads_too_and_says_what_came_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = ReloadedService::start(folder.path(), "", &[]);
    service.write("idle-timeout = \"7s\"\n");
    service.running.signal(Signal::HUP);
    service.running.line_with("reload: changed proxy.idle-timeout from 10m to 7s; ");
    service.write("idle-timeout = \"7 parsecs\"\n");
    service.running.signal(Signal::HUP);
    let line = service.running.line_with("reload: configuration ");
    assert!(line.contains("tlsdash.toml line 4: idle-timeout: 7 parsecs: "), "{line}");
    assert!(line.ends_with("; the configuration stays as it was"), "{line}");
    assert_eq!(service.running.end().0, 0);
}

#[test]
fn a_reload_during_a_drain_can_end_it_sooner() {
    let folder = tempfile::tempdir().unwrap();
    let service = ReloadedService::start(folder.path(), "drain-timeout = \"10m\"\n", &[]);
    let mut client = outside("openssl", "openssl");
    client.args(["s_client", "-quiet", "-connect", &service.address.to_string()]);
    client.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut client = client.spawn().unwrap();
    // Half of a request: the connection is in use for as long as the drain lets it.
    client.stdin.as_mut().unwrap().write_all(b"GET / HTTP/1.1\r\n").unwrap();
    until("the connection is open", || {
        let status: Value =
            serde_json::from_str(&service.ctl(&["status", "--format", "json"]).unwrap()).unwrap();
        status["data"]["connections"]["open"] == 1
    });
    service.ctl(&["drain"]).unwrap();
    service.write("drain-timeout = \"1s\"\n");
    let told = service.ctl(&["reload"]).unwrap();
    assert!(told.starts_with("changed proxy.drain-timeout from 10m to 1s; "), "{told}");
    assert_eq!(service.running.wait().0, 0);
    client.kill().unwrap();
    client.wait().unwrap();
}

#[test]
fn a_refused_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let service = ReloadedService::start(folder.path(), "idle-timeout = \"60s\"\n", &[]);
    for (words, reason) in [
        ("idle-timeout = \"5s\"\nidle-timeout = \"6s\"\n", "line 5"),
        ("idle-timeout = \"5s\"\ntls-min = \"1.3\"\ntls-max = \"1.2\"\n", "tls-min is later than tls-max"),
        ("idle-timeout = \"5s\"\nstreams-max = 5\n", "streams-max"),
        ("idle-timeout = \"5s\"\nconnections-max = 100000000\n", "proxy.connections-max"),
        ("idle-timeout = \"5s\"\nshout = true\n", "shout"),
    ] {
        service.write(words);
        let told = service.ctl(&["reload"]).unwrap_err();
        assert!(told.contains(reason) && told.contains("; the configuration stays as it was"), "{told}");
        assert_eq!(service.setting("proxy.idle-timeout").0, 60.0, "{told}");
    }
    let file = folder.path().join("tlsdash.toml");
    let socket = folder.path().join("control.sock");
    let diff = || {
        let args = ["config", "diff", file.to_str().unwrap(), "--control", socket.to_str().unwrap()];
        run(folder.path(), &args)
    };
    // A start refuses these too. `diff` opens no files: who may only read might see what is in them.
    for (words, reason, diff_refuses) in [
        ("cert = \"x\"", "--cert needs --key", true),
        ("client-auth = \"optional\"", "--client-auth needs --client-ca", true),
        ("client-crl = \"/nonexistent\"", "--client-crl needs --client-ca", true),
        ("client-ca = \"/nonexistent\"", "/nonexistent", false),
        ("balance = \"hash-header:X\"", "--balance hash-header:x goes with --mode http only", true),
        ("upstream-cert = \"/x\"", "--upstream-cert goes with an upstream that speaks TLS", true),
        ("load = \"rate=1,http2=on\"", "http2=on", true),
        ("deny = \"/nonexistent\"", "/nonexistent", false),
        ("user = \"nosuch\"", "there is no user \"nosuch\"", false),
        ("cpus = \"0-99\"", "does not exist", false),
        ("record = \"/nonexistent/a.journal\"", "cannot use its folder: No such file", false),
    ] {
        service.write(&format!("idle-timeout = \"5s\"\n{words}\n"));
        let told = service.ctl(&["reload"]).unwrap_err();
        assert!(told.contains("tlsdash.toml: ") && told.contains(reason), "{told}");
        assert!(told.contains("; the configuration stays as it was"), "{told}");
        assert_eq!(service.setting("proxy.idle-timeout").0, 60.0, "{told}");
        let compared = diff();
        assert_eq!(compared.status.success(), !diff_refuses, "{words}");
        assert!(!diff_refuses || stderr(&compared).contains(reason), "{}", stderr(&compared));
    }
    fs::write(&file, "headless = true\nidle-timeout = \"7s\"\n").unwrap();
    assert!(service.ctl(&["reload"]).unwrap_err().contains("--upstream and --route are missing"));
    fs::remove_file(&file).unwrap();
    assert!(service.ctl(&["reload"]).unwrap_err().contains("cannot read configuration "));
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    // Nobody writes into the pipe.
    rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let told = service.ctl(&["reload"]).unwrap_err();
    assert!(told.contains("tlsdash.toml: it is not a regular file"), "{told}");
    assert_eq!(service.running.end().0, 0);
}

#[test]
fn what_was_changed_live_stays_until_the_file_says_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let service = ReloadedService::start(folder.path(), "idle-timeout = \"60s\"\n", &[]);
    service.ctl(&["set", "proxy.idle-timeout", "5s"]).unwrap();
    assert_eq!(service.setting("proxy.idle-timeout"), (5.0.into(), "live".into()));
    service.write("idle-timeout = \"60s\"\ntickets = 4\n");
    let told = service.ctl(&["reload"]).unwrap();
    assert!(told.starts_with("changed proxy.tickets from 1 to 4; "), "{told}");
    assert_eq!(service.setting("proxy.idle-timeout"), (5.0.into(), "live".into()));
    service.write("idle-timeout = \"50s\"\n");
    service.ctl(&["reload"]).unwrap();
    assert_eq!(service.setting("proxy.idle-timeout"), (50.0.into(), "file".into()));
    assert_eq!(service.running.end().0, 0);
}

#[test]
fn client_auth_needs_authorities_and_returns_to_its_default() {
    let folder = tempfile::tempdir().unwrap();
    let [ca, key] = ["ca.pem", "ca.key"].map(|name| folder.path().join(name));
    make_certificate(&ca, &key, "localhost", 2, &[]);
    let words = format!("client-ca = {ca:?}\n");
    let service = ReloadedService::start(folder.path(), &words, &[]);
    let client_auth = || service.setting("proxy.client-auth");
    assert_eq!(client_auth(), ("required".into(), "default".into()));
    service.write(&format!("{words}client-auth = \"optional\"\nalpn = \"http/1.1\"\n"));
    service.ctl(&["reload"]).unwrap();
    assert_eq!(client_auth(), ("optional".into(), "file".into()));
    service.ctl(&["set", "client-auth", "off"]).unwrap();
    service.write(&words);
    let told = service.ctl(&["reload"]).unwrap();
    assert!(told.contains("proxy.client-auth from off to required"), "{told}");
    assert_eq!(client_auth(), ("required".into(), "default".into()));
    assert_eq!(service.setting("proxy.alpn"), ("".into(), "default".into()));
    // The run has its authorities to its end, and what they are asked for.
    service.write("");
    let told = service.ctl(&["reload"]).unwrap();
    assert!(told.starts_with("nothing changed; only a restart changes client-ca from "), "{told}");
    assert_eq!(client_auth().0, "required");
    assert_eq!(service.running.end().0, 0);

    let folder = tempfile::tempdir().unwrap();
    let service = ReloadedService::start(folder.path(), "", &[]);
    let told = service.ctl(&["set", "client-auth", "required"]).unwrap_err();
    let reason = "--client-auth needs --client-ca: the authorities that vouch for clients";
    assert!(told.contains(&format!("proxy.client-auth cannot be required: {reason}")), "{told}");
    let told = service.ctl(&["set", "client-auth", "off"]).unwrap();
    assert_eq!(told, "proxy.client-auth is off already\n");
    // Both wait for the restart that reads the authorities.
    service.write(&format!("{words}client-auth = \"optional\"\n"));
    let told = service.ctl(&["reload"]).unwrap();
    assert!(told.starts_with("nothing changed; only a restart changes client-auth from "), "{told}");
    assert_eq!(service.setting("proxy.client-auth"), ("off".into(), "default".into()));
    assert_eq!(service.running.end().0, 0);
}

#[test]
fn upstreams_follow_the_file() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let service = ReloadedService::start(folder.path(), "", &[]);
    let (_, rest) = service.common.split_once('\n').unwrap();
    let first = format!("unix:{}", folder.path().join("app.sock").display());
    let second = format!("unix:{}", upstream(other.path(), b"second").display());
    let reload = |words: &str| {
        fs::write(folder.path().join("tlsdash.toml"), format!("{words}\n{rest}")).unwrap();
        service.ctl(&["reload"])
    };
    let status = |name: &str| {
        let field = format!("TLSDASH_UPSTREAM_NAME={name}");
        let records = journalctl(&journal(folder.path()), &[&field]);
        records.last().map(|record| record["TLSDASH_UPSTREAM_STATE"].as_str().unwrap().to_owned())
    };
    let both = format!("upstream = [\"{first}\", \"{second},weight=2\"]");
    let alert = format!("alert = ['upstream.\"{second}\".failed.refused > 0 over 1m']");
    let told = reload(&format!("{both}\n{alert}")).unwrap();
    assert!(told.contains(&format!("proxy.upstream from {first} to {first} {second},weight=2; ")), "{told}");
    assert_eq!(
        service.setting("proxy.upstream"),
        (format!("{first} {second},weight=2").into(), "file".into())
    );
    until("it has its record", || status(&second).is_some());
    service.ctl(&["upstream", &second, "drain"]).unwrap();

    for (words, reason) in [
        (format!("upstream = [\"{second}\", \"127.0.0.1\"]"), "tlsdash.toml line 1: upstream: 127.0.0.1: "),
        (format!("upstream = [\"{second}\", \"{second},weight=2\"]"), "given twice, or with two weights"),
        (
            format!("upstream = [\"{second}\", \"tls://app:1\"]"),
            "speaks TLS, and no upstream did at the start",
        ),
        (format!("upstream = [\"{second}\", \"{}\"]", service.address), "where the proxy itself listens"),
        (format!("upstream = \"{second}\"\nconnections-max = 100000000"), "proxy.connections-max"),
    ] {
        let told = reload(&words).unwrap_err();
        assert!(told.contains(reason) && told.contains("; the configuration stays as it was"), "{told}");
        assert_eq!(service.setting("proxy.upstream").0, format!("{first} {second},weight=2"), "{told}");
    }

    let told = reload(&format!("upstream = \"{second}\"")).unwrap();
    assert!(told.contains(&format!("proxy.upstream from {first} {second},weight=2 to {second}; ")), "{told}");
    until("its row is marked", || status(&first).as_deref() == Some("gone"));
    assert_eq!(status(&second).as_deref(), Some("drained"), "it stays so over a reload");
    assert!(service.ctl(&["upstream", &first, "drain"]).unwrap_err().contains("there is no upstream"));
    // Other destinations wait for a restart, and with them their upstreams.
    let routed = format!("upstream = \"{first}\"\n[[route]]\nhost = \"a.test\"\nupstreams = [\"{second}\"]");
    fs::write(folder.path().join("tlsdash.toml"), format!("{rest}{routed}")).unwrap();
    let told = service.ctl(&["reload"]).unwrap();
    assert!(told.starts_with("nothing changed; only a restart changes route, upstream from "), "{told}");
    assert_eq!(service.running.end().0, 0);
}

#[test]
fn upstreams_of_a_route_follow_the_file_in_http_mode() {
    let folder = tempfile::tempdir().unwrap();
    let route = |upstreams: &str, timeout: &str| {
        format!("mode = \"http\"\n[[route]]\npath = \"/api\"\nupstreams = {upstreams}\n{timeout}")
    };
    let service = ReloadedService::start(folder.path(), &route("[\"127.0.0.1:1\"]", ""), &[]);
    service.write(&route("[\"127.0.0.1:2\", \"127.0.0.1:1\"]", ""));
    let told = service.ctl(&["reload"]).unwrap();
    let rest = format!("/=unix:{}", folder.path().join("app.sock").display());
    let changed =
        format!("changed proxy.route from /api=127.0.0.1:1 {rest} to /api=127.0.0.1:2,127.0.0.1:1 {rest}; ");
    assert!(told.starts_with(&changed), "{told}");
    service.write(&route("[\"127.0.0.1:2\"]", "response-timeout = \"3s\""));
    let told = service.ctl(&["reload"]).unwrap();
    assert!(told.starts_with("nothing changed; only a restart changes route; "), "{told}");
    service.write(&route("[\"h2c://127.0.0.1:2\"]", ""));
    let told = service.ctl(&["reload"]).unwrap_err();
    assert!(told.contains("speaks another version of HTTP"), "{told}");
    assert_eq!(service.running.end().0, 0);
}

#[test]
fn alerts_follow_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let service = ReloadedService::start(folder.path(), "alert = [\"exchange.p99 > 5s\"]\n", &[]);
    service.write("alert = [\"exchange.p99 > 6s\", \"exchange.p50 > 1s\"]\n");
    let told = service.ctl(&["reload"]).unwrap();
    assert!(
        told.contains("alert.1 from exchange.p99 > 5s to exchange.p99 > 6s, alert.2 from off to "),
        "{told}"
    );
    assert_eq!(service.setting("alert.2").0, "exchange.p50 > 1s");
    service.write("");
    service.ctl(&["reload"]).unwrap();
    assert_eq!(service.setting("alert.1").0, "off");
    assert_eq!(service.running.end().0, 0);
}

#[test]
fn a_setting_in_an_experiment_keeps_a_reload_away() {
    let folder = tempfile::tempdir().unwrap();
    let load = ["--load", "rate=50,connections=2"];
    let service = ReloadedService::start(folder.path(), "idle-timeout = \"60s\"\n", &load);
    service.ctl(&["ab", "proxy.idle-timeout=20s..30s,pairs=6,aa=0,block=5s"]).unwrap();
    until("the experiment runs", || service.ctl(&["set", "proxy.idle-timeout", "70s"]).is_err());
    service.write("idle-timeout = \"40s\"\ntickets = 4\n");
    let told = service.ctl(&["reload"]).unwrap_err();
    assert!(told.contains("proxy.idle-timeout is locked: an experiment compares it"), "{told}");
    assert_eq!(service.setting("proxy.tickets").0, 1.0);
    assert_eq!(service.running.end().0, 0);
}

#[test]
fn a_file_is_checked_and_compared_before_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let service = ReloadedService::start(at, "idle-timeout = \"60s\"\n", &[]);
    let config = |args: &[&str]| {
        let output = run(at, &[&["config"], args].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output))
    };
    let next = at.join("next.toml");
    let (name, socket) = (next.to_str().unwrap(), at.join("control.sock"));
    let socket = socket.to_str().unwrap();
    fs::write(&next, format!("{}idle-timeout = \"5s\"\nuser = \"nobody\"\n", service.common)).unwrap();
    assert_eq!(config(&["check", name]), (Some(0), format!("{name} can be used\n")));
    let told = "a reload changes proxy.idle-timeout from 60s to 5s; only a restart changes user from unset to nobody\n";
    assert_eq!(config(&["diff", name, "--control", socket]), (Some(0), told.to_owned()));
    assert_eq!(service.setting("proxy.idle-timeout").0, 60.0, "it is only compared");
    for (words, reason) in [
        ("tickets = \"x\"", "line 4: tickets: x: expected a whole number"),
        ("cert = \"none.pem\"\nkey = \"none.key\"", "none.pem"),
        ("load = \"rate=1,http2=on\"", "http2=on"),
        ("user = \"nosuch\"", "--user nosuch: there is no user \"nosuch\""),
        ("user = \"nobody:nosuch\"", "there is no group \"nosuch\""),
        ("cpus = \"0-999\"", "does not exist"),
        ("connections-max = 999999999", "need more descriptors than the limit of "),
        ("control-group = \"nosuch\"", "--control-group nosuch: there is no such group"),
        ("control-readers = \"nosuch\"", "--control-readers nosuch: there is no such group"),
        ("record = \"/nonexistent/a.journal\"", "--record /nonexistent/a.journal: cannot use its folder: "),
        ("metrics-clients = 5", "--metrics-clients goes with --metrics"),
    ] {
        fs::write(&next, format!("{}{words}\n", service.common)).unwrap();
        let (code, told) = config(&["check", name]);
        assert!(code == Some(2) && told.contains(reason) && told.contains("next.toml"), "{told}");
    }
    fs::write(&next, "tickets = \"x\"").unwrap();
    let (code, told) = config(&["diff", name, "--control", socket]);
    assert!(
        code == Some(1) && told.contains("configuration line 1: tickets: x: expected a whole number"),
        "{told}"
    );
    assert_eq!(config(&["check", "nowhere.toml"]).0, Some(2));
    fs::write(&next, "upstream = \"unix:gone.sock\"").unwrap();
    let (code, told) = config(&["check", name]);
    assert!(code == Some(0) && told.contains("warning: ") && told.contains("gone.sock"), "{told}");
    assert_eq!(service.running.end().0, 0);
}

#[test]
fn a_reload_reads_address_lists_and_a_bad_one_leaves_the_former() {
    let folder = tempfile::tempdir().unwrap();
    let deny = folder.path().join("deny");
    fs::write(&deny, "192.0.2.0/24\n").unwrap();
    let words = format!("deny = {deny:?}\n");
    let mut service = ReloadedService::start(folder.path(), &words, &[]);
    let address = service.address;
    // A refused connection is reset. To others the proxy says, by an alert, that this is not TLS.
    let is_admitted = || {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.write_all(b"not TLS").is_ok() && socket.read(&mut [0]).is_ok_and(|n| n == 1)
    };
    assert!(is_admitted());
    fs::write(&deny, "127.0.0.1\n").unwrap();
    assert!(is_admitted(), "nothing is read before a reload");
    let told = service.ctl(&["reload"]).unwrap();
    assert!(told.ends_with("; address lists were read again: 1 network denied\n"), "{told}");
    until("the list is in use", || !is_admitted());
    fs::write(&deny, "192.0.2.0/24\nlocalhost\n").unwrap();
    let refused = service.ctl(&["reload"]).unwrap_err();
    let reason = "line 2: \"localhost\" is neither";
    assert!(refused.contains(deny.to_str().unwrap()) && refused.contains(reason), "{refused}");
    assert!(service.running.line_with("address list ").contains(reason));
    assert!(!is_admitted());
}
