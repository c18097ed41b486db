//! A new process takes over from a running proxy: `tlsdash ctl upgrade` and SIGUSR2.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use crate::common::pebble::Pebble;
use crate::common::{
    TlsdashProcess, journal, journalctl, make_certificate, outside, run, stderr, told, until, upstream,
};
use rustix::process::Signal;
use serde_json::Value;

const BODY: &[u8] = b"hello";

/// A process that has taken over; killed with the test.
struct NextProcess(u32);

impl Drop for NextProcess {
    fn drop(&mut self) {
        if is_running(self.0) {
            crate::common::send(Signal::KILL, self.0);
        }
    }
}

fn is_running(pid: u32) -> bool {
    // The last part is the state: a zombie has ended.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

/// The process that waits for the end of another.
fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

fn process_group(pid: u32) -> rustix::process::Pid {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::getpgid(Some(pid)).unwrap()
}

/// A proxy that was started by a path which may lead elsewhere later.
struct Service {
    folder: PathBuf,
    first: TlsdashProcess,
    address: SocketAddr,
    others: Vec<NextProcess>,
}

impl Service {
    fn start(folder: &Path, config: &str, args: &[&str]) -> Self {
        Self::start_with(folder, config, args, |_| {})
    }

    fn start_with(folder: &Path, config: &str, args: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let app = upstream(folder, BODY);
        let at = |name: &str| folder.join(name).display().to_string();
        certificate(folder);
        symlink(env!("CARGO_BIN_EXE_tlsdash"), folder.join("tlsdash")).unwrap();
        let upstream = format!("upstream = \"unix:{}\"\n", app.display());
        fs::write(folder.join("tlsdash.toml"), format!("{upstream}{config}")).unwrap();
        let mut command = Command::new(folder.join("tlsdash"));
        command.env("STATE_DIRECTORY", folder).stdin(Stdio::null());
        command.args(["--headless", "--listen", "127.0.0.1:0", "--format", "json"]);
        command.args(["--config", &at("tlsdash.toml"), "--control", &at("control.sock")]);
        command.args(["--cert", &at("cert.pem"), "--key", &at("key.pem")]);
        command.args(["--journal", &format!("file:{}", journal(folder).display())]).args(args);
        change(&mut command);
        let mut first = TlsdashProcess::start(command);
        let address = first.address();
        first.line_with("control socket ");
        Self { folder: folder.to_owned(), first, address, others: Vec::new() }
    }

    fn ctl(&self, args: &[&str]) -> Result<String, String> {
        let socket = self.folder.join("control.sock");
        let output = run(&self.folder, &[&["ctl", "--control", socket.to_str().unwrap()], args].concat());
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() { Ok(printed) } else { Err(stderr(&output)) }
    }

    fn data(&self, args: &[&str]) -> Value {
        let answer = self.ctl(&[args, &["--format", "json"]].concat()).unwrap();
        serde_json::from_str::<Value>(&answer).unwrap()["data"].clone()
    }

    /// Upgrades it; the id of the new process.
    fn upgrade(&mut self) -> u32 {
        let pid = self.data(&["upgrade"])["pid"].as_u64().unwrap() as u32;
        self.others.push(NextProcess(pid));
        until("the new process serves the control socket", || {
            self.ctl(&["status", "--format", "json"]).is_ok_and(|text| {
                serde_json::from_str::<Value>(&text).unwrap()["data"]["pid"] == u64::from(pid)
            })
        });
        pid
    }

    /// Lets the path lead to a script.
    fn replace(&self, script: &str) {
        let new = self.folder.join("new");
        fs::write(&new, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(new, self.folder.join("tlsdash")).unwrap();
    }

    /// Lets the path lead to the program again.
    fn restore(&self) {
        let _ = fs::remove_file(self.folder.join("tlsdash"));
        symlink(env!("CARGO_BIN_EXE_tlsdash"), self.folder.join("tlsdash")).unwrap();
    }

    /// Ends the last process; what all have said.
    fn end(mut self) -> String {
        let last = self.others.pop();
        for NextProcess(pid) in &self.others {
            until("the process in between has ended", || !is_running(*pid));
        }
        if let Some(NextProcess(pid)) = &last {
            until("the first process has ended", || !is_running(self.first.pid()));
            crate::common::send(Signal::TERM, *pid);
            until("the last process has ended", || !is_running(*pid));
        } else {
            self.first.signal(Signal::TERM);
        }
        let (code, _, said) = self.first.wait_and_tell();
        assert_eq!(code, 0, "{said}");
        said
    }

    /// A client of the proxy: `s_client`, given what it shall do with its session.
    fn s_client(&self, args: &[&str]) -> String {
        let mut client = outside("openssl", "openssl")
            .args(["s_client", "-connect", &self.address.to_string(), "-servername", "localhost"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The end of its input makes it leave, so it stays open until the answer, behind the tickets, has come.
        let mut stdin = client.stdin.take().unwrap();
        stdin.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        client.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        client.wait().unwrap();
        text
    }

    /// Starts a load of so many connections, each with one request, that resume wherever they can.
    fn load(&self, connections: u32, args: &[&str]) -> JoinHandle<Value> {
        let (folder, url) = (self.folder.clone(), format!("https://localhost:{}/", self.address.port()));
        let ca = folder.join("cert.pem").display().to_string();
        let n = connections.to_string();
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        std::thread::spawn(move || {
            let output = crate::common::tlsdash(&folder)
                .args(["load", &url, "--headless", "--ca", &ca, "-n", &n, "--resume", "100%"])
                .args(["--format", "json", "--journal"])
                .arg(format!("file:{}", folder.join("load.journal").display()))
                .args(args)
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
            serde_json::from_slice::<Value>(&output.stdout).unwrap()["load"].clone()
        })
    }

    fn accepted(&self) -> u64 {
        // None before the first records of the run were read.
        let answer = self.ctl(&["status", "--format", "json"]).unwrap_or_default();
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        answer["data"]["connections"]["accepted"].as_u64().unwrap_or(0)
    }
}

/// Makes `cert.pem` and `key.pem` for localhost.
fn certificate(folder: &Path) {
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| folder.join(name));
    make_certificate(&cert, &key, "localhost", 2, &["-addext", "basicConstraints=critical,CA:FALSE"]);
}

/// The last record of the run in a file.
fn stop_of(file: &Path) -> Value {
    journalctl(file, &["TLSDASH_KIND=run", "TLSDASH_PHASE=stop"]).pop().unwrap()
}

/// Two upgrades while clients come and go: each is served, and each that has been there resumes.
fn upgrades_under_load(config: &str, args: &[&str]) {
    const CONNECTIONS: u32 = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::start(folder.path(), config, &[]);
    let load = service.load(CONNECTIONS, args);
    for _ in 0..2 {
        until("clients come", || service.accepted() > 200);
        service.upgrade();
    }
    until("clients come to the last process too", || service.accepted() > 50);
    assert!(!load.is_finished(), "all of it happened under load");
    let load = load.join().unwrap();
    assert_eq!(load["requests"]["ok"], CONNECTIONS, "{load}");
    assert_eq!(load["connections"], CONNECTIONS, "{load}");
    service.end();
    // The third process may have archived the first one's file.
    let runs = journalctl(&folder.path().join("x*.journal"), &["TLSDASH_KIND=run", "TLSDASH_PHASE=stop"]);
    assert_eq!(runs.len(), 3, "{runs:?}");
    let count = |run: &Value, field: &str| crate::common::number(run, field);
    let full: Vec<u64> = runs.iter().map(|run| count(run, "TLSDASH_HANDSHAKES_FULL_TOTAL")).collect();
    let resumed: Vec<u64> = runs.iter().map(|run| count(run, "TLSDASH_HANDSHAKES_RESUMED_TOTAL")).collect();
    // A client that was answered before it had read its next ticket has none to offer.
    let resumptions = &load["resumptions"];
    assert_eq!(
        resumptions["offered"], resumptions["observed"],
        "each ticket is good, whichever process gave it out"
    );
    assert!(resumed.iter().all(|&resumed| resumed > 0), "{resumed:?}");
    let of_load = |kind: &str| load["handshakes"][kind].as_u64().unwrap();
    assert_eq!(of_load("resumed"), resumed.iter().sum::<u64>());
    // The generator looks at the server once before it begins.
    assert_eq!((of_load("full") + 1, of_load("failed")), (full.iter().sum(), 0));
    assert_eq!(of_load("full") + of_load("resumed"), u64::from(CONNECTIONS));
}

#[test]
fn no_client_is_lost_by_two_upgrades_under_load_with_tls13() {
    upgrades_under_load("tls-min = \"1.3\"\n", &["-c", "8", "-r", "250", "-k", "off"]);
}

#[test]
fn no_client_is_lost_by_two_upgrades_under_load_with_tls12() {
    upgrades_under_load("tls-max = \"1.2\"\n", &["-c", "8", "-r", "250", "-k", "off"]);
}

#[test]
fn no_client_is_lost_by_two_upgrades_under_load_in_http_mode() {
    upgrades_under_load("mode = \"http\"\nworkers = 3\n", &["-c", "8", "-r", "250", "-k", "off"]);
}

/// Every ticket from before the upgrade resumes behind it, whatever key sealed it.
fn tickets_survive(version: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::start(folder.path(), "", &[]);
    let ticket = |n: u32| folder.path().join(format!("{n}.pem")).display().to_string();
    for n in 0..6 {
        if n % 2 == 1 {
            service.ctl(&["rotate-tickets"]).unwrap();
        }
        let text = service.s_client(&[version, "-sess_out", &ticket(n)]);
        assert!(text.contains("\nNew, "), "{text}");
    }
    service.upgrade();
    for n in 0..6 {
        let text = service.s_client(&[version, "-sess_in", &ticket(n)]);
        assert!(text.contains("\nReused, "), "ticket {n}: {text}");
    }
    until("the handshakes are counted", || {
        let handshakes = service.data(&["status"])["handshakes"].clone();
        (&handshakes["full"], &handshakes["resumed"]) == (&0.into(), &6.into())
    });
    service.end();
}

#[test]
fn tickets_of_all_keys_resume_after_an_upgrade_with_tls13() {
    tickets_survive("-tls1_3");
}

#[test]
fn tickets_of_all_keys_resume_after_an_upgrade_with_tls12() {
    tickets_survive("-tls1_2");
}

#[test]
fn a_program_that_does_not_start_leaves_the_old_process_serving() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::start(folder.path(), "", &[]);
    let config = folder.path().join("tlsdash.toml");
    let good = fs::read_to_string(&config).unwrap();
    let old = service.first.pid();
    let expect = |service: &Service, reason: &str| {
        let told = service.ctl(&["upgrade"]).unwrap_err();
        assert!(told.contains(reason) && told.contains("this process goes on: "), "{reason}: {told}");
        assert_eq!(service.data(&["status"])["pid"], old);
        assert!(service.s_client(&[]).contains("hello"), "{reason}");
    };
    fs::remove_file(folder.path().join("tlsdash")).unwrap();
    expect(&service, "cannot start ");
    service.replace("sleep 300 & echo $! > \"$(dirname \"$0\")/descendant\"; exit 3");
    expect(&service, "has ended before it was ready: exit status: 3");
    let descendant = fs::read_to_string(folder.path().join("descendant")).unwrap().trim().parse().unwrap();
    until("what the new program has started ends too", || !is_running(descendant));
    service.replace("kill -SEGV $$");
    expect(&service, "has ended before it was ready: signal: 11");
    service.replace("echo no message >&0; exec sleep 60");
    expect(&service, "sends something else than it should");
    service.replace("exec sleep 60");
    expect(&service, "was not ready within 10 s");
    service.restore();
    fs::write(&config, format!("{good}shout = true\n")).unwrap();
    expect(&service, "tlsdash.toml line 2: ");
    let key = fs::read(folder.path().join("key.pem")).unwrap();
    fs::write(folder.path().join("key.pem"), "no key").unwrap();
    fs::write(&config, &good).unwrap();
    expect(&service, "key.pem");
    fs::write(folder.path().join("key.pem"), key).unwrap();
    service.first.line_with("upgrade: this process goes on: the new process was not ready within 10 s");
    service.upgrade();
    assert!(service.s_client(&[]).contains("hello"));
    service.end();
}

#[test]
fn connections_from_before_go_on_and_the_records_name_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--metrics", "127.0.0.1:0"];
    let mut service = Service::start(folder.path(), "", &args);
    let line = service.first.line_with("metrics on http://");
    let metrics: SocketAddr =
        line.split("http://").nth(1).unwrap().split('/').next().unwrap().parse().unwrap();
    // It is accepted by the first process, and says nothing yet.
    let mut client = outside("openssl", "openssl")
        .args(["s_client", "-quiet", "-connect", &service.address.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = client.stdin.take().unwrap();
    stdin.write_all(b"GET / HTTP/1.0\r\n").unwrap();
    until("bytes of the client are forwarded", || {
        let data = service.data(&["clients"]);
        data[0]["bytes_in"].as_u64().unwrap_or(0) == 16
    });
    let first = service.data(&["status"]);
    service.ctl(&["set", "proxy.idle-timeout", "77s"]).unwrap();
    service.ctl(&["set", "proxy.tickets", "2", "--for", "1h"]).unwrap();
    let pid = service.upgrade();
    let second = service.data(&["status"]);
    assert_eq!(second["pid"], pid);
    assert!(is_running(service.first.pid()), "it has a client");
    assert_eq!(process_group(pid), process_group(service.first.pid()), "what stops one stops both");
    stdin.write_all(b"\r\n").unwrap();
    let mut answer = String::new();
    client.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("hello"), "{answer}");
    client.wait().unwrap();
    until("the first process has ended", || !is_running(service.first.pid()));

    let settings = service.data(&["settings"]);
    let value = |name: &str| {
        let found = settings.as_array().unwrap().iter().find(|setting| setting["name"] == name);
        (found.unwrap()["value"].clone(), found.unwrap()["origin"].clone())
    };
    assert_eq!(value("proxy.idle-timeout"), (77.0.into(), "live".into()));
    assert_eq!(value("proxy.tickets"), (2.0.into(), "live".into()));
    let mut scrape = TcpStream::connect(metrics).unwrap();
    scrape.write_all(b"GET /readyz HTTP/1.1\r\n\r\n").unwrap();
    let mut ready = String::new();
    scrape.read_to_string(&mut ready).unwrap();
    assert!(ready.starts_with("HTTP/1.1 200 "), "{ready}");

    let stop = stop_of(&journal(folder.path()));
    assert_eq!((&stop["TLSDASH_RUN"], &stop["TLSDASH_NEXT_RUN"]), (&first["run"], &second["run"]));
    let verified = outside("journalctl", "systemd")
        .arg(format!("--file={}", journal(folder.path()).display()))
        .arg("--verify")
        .output()
        .unwrap();
    assert!(verified.status.success(), "{}", stderr(&verified));
    if rustix::process::geteuid().is_root() {
        assert_has_only_its_own_file(pid);
    } else {
        crate::common::not_run::say_not_run(
            "connections_from_before_go_on_and_the_records_name_the_next_run",
            "only root sees the descriptors of the new process, the rest of it has run",
        );
    }
    assert!(folder.path().join("control.sock").exists(), "the first process has left it");
    let said = service.end();
    assert!(said.contains("upgrade: took over from run "), "{said}");
    assert!(!folder.path().join("control.sock").exists());
    assert_eq!(stop_of(&folder.path().join("x-2.journal"))["TLSDASH_NEXT_RUN"], Value::Null);
}

/// The new process has nothing open of the old one.
fn assert_has_only_its_own_file(pid: u32) {
    let open: Vec<_> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|fd| fs::read_link(fd.unwrap().path()).ok())
        .map(|path| path.display().to_string())
        .collect();
    let has = |name: &str| open.iter().any(|path| path.contains(name));
    assert!(has("x-2.journal") && !has("x.journal") && !has("memfd"), "{open:?}");
}

#[test]
fn the_socket_that_redirects_to_https_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::start(folder.path(), "redirect-http = \"127.0.0.1:0\"\n", &[]);
    let line = service.first.line_with("redirecting http://");
    let address = line.split_once("http://").unwrap().1.split_once(' ').unwrap().0;
    let redirected = || {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost: app.test\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer.starts_with("HTTP/1.1 308")
    };
    assert!(redirected());
    let waiting = TcpStream::connect(address).unwrap();
    service.upgrade();
    assert!(redirected(), "at the port that the kernel chose for the first process");
    drop(waiting);
    until("the first process has ended", || !is_running(service.first.pid()));
    assert!(redirected());
    service.end();
}

#[test]
fn a_new_process_renews_the_certificate_that_the_old_one_ordered() {
    let test = "a_new_process_renews_the_certificate_that_the_old_one_ordered";
    let Some(pebble) = Pebble::start(test, 0) else { return };
    let (folder, ca) = (tempfile::tempdir().unwrap(), pebble.ca().display().to_string());
    let from = format!("127.0.0.1:{}", pebble.http_port);
    let args = ["--acme-domain", "a.test", "--acme-contact", "admin@example.test", "--acme-ca", &ca];
    let more =
        ["--acme-directory", &pebble.directory, "--acme-challenge", "http-01", "--redirect-http", &from];
    let mut service = Service::start(folder.path(), "", &[&args[..], &more].concat());
    service.first.line_with("ACME: got a certificate");
    let order = |service: &Service| {
        let all = service.ctl(&["certificates"]).unwrap();
        all.lines().find(|line| line.contains("ordered by ACME after ")).map(str::to_owned)
    };
    until("the first process tells when it renews", || order(&service).is_some());
    let mut served = String::new();
    until("it serves the certificate", || {
        served = crate::acme::served(service.address.port());
        served.contains("Pebble Intermediate CA")
    });
    service.upgrade();
    until("the new process tells when it renews", || order(&service).is_some());
    let certificate = |text: &str| text.split("-----").nth(2).unwrap().to_owned();
    assert_eq!(certificate(&crate::acme::served(service.address.port())), certificate(&served));
    service.end();
}

#[test]
fn an_upgrade_is_refused_when_it_would_lose_something() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::start(folder.path(), "drain-timeout = \"20s\"\n", &[]);
    service.ctl(&["ab", "workers=1..2,pairs=6"]).unwrap();
    // It counts from the moment that it was asked for, though it begins with an interval.
    let told = service.ctl(&["ab", "workers=1..2,pairs=7"]).unwrap_err();
    assert!(told.contains("an experiment is under way; tlsdash ctl ab end ends it"), "{told}");
    let told = service.ctl(&["upgrade"]).unwrap_err();
    assert!(
        told.contains("this process goes on: an experiment is under way; tlsdash ctl ab end ends it"),
        "{told}"
    );
    service.ctl(&["ab", "end"]).unwrap();
    service.upgrade();
    // A client keeps the last process from its end.
    let mut client = outside("openssl", "openssl")
        .args(["s_client", "-quiet", "-connect", &service.address.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    client.stdin.as_mut().unwrap().write_all(b"GET / HTTP/1.0\r\n").unwrap();
    until("bytes of the client are forwarded", || {
        service.data(&["clients"])[0]["bytes_in"].as_u64().unwrap_or(0) == 16
    });
    service.ctl(&["drain"]).unwrap();
    until("it drains", || {
        service
            .ctl(&["upgrade"])
            .is_err_and(|told| told.contains("this process goes on: it is ending by itself"))
    });
    // What cannot end any more does not begin.
    let told = service.ctl(&["ab", "workers=1..2,pairs=6"]).unwrap_err();
    assert!(told.contains("this process is ending"), "{told}");
    drop(client.stdin.take());
    client.wait().unwrap();
    let said = service.end();
    assert!(said.contains("upgrade: this process goes on: it is ending by itself"), "{said}");
}

#[test]
fn sigusr2_upgrades_and_tells_the_service_manager_the_new_main_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify.sock");
    let socket = UnixDatagram::bind(&path).unwrap();
    let mut service = Service::start_with(folder.path(), "", &[], |command| {
        // A watchdog whose process is named would not be fed by the new one.
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "300000");
    });
    told(&socket, "READY=1");
    service.first.signal(Signal::USR2);
    let message = told(&socket, "MAINPID=").pop().unwrap();
    let pid = message.trim().strip_prefix("MAINPID=").unwrap().parse().unwrap();
    service.others.push(NextProcess(pid));
    // A service manager kills a main process at once that is not its own child, instead of letting it drain.
    assert_ne!(parent(pid), Some(service.first.pid()));
    told(&socket, "BARRIER=1");
    until("the first process has ended", || !is_running(service.first.pid()));
    told(&socket, "WATCHDOG=1");
    assert!(service.s_client(&[]).contains("hello"));
    assert_eq!(service.data(&["status"])["pid"], pid);
    let mut between = Vec::new();
    socket.set_nonblocking(true).unwrap();
    let mut bytes = [0; 4096];
    while let Ok(length) = socket.recv(&mut bytes) {
        between.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
    }
    assert!(!between.iter().any(|message| message.contains("STOPPING")), "{between:?}");
    service.end();
}

#[test]
fn only_a_proxy_of_its_own_is_upgraded() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = crate::common::tlsdash(folder.path());
    command.args(["demo", "--headless", "--listen", "127.0.0.1:0", "--journal", "off", "--duration", "60s"]);
    let mut running = TlsdashProcess::start(command);
    running.address();
    running.signal(Signal::USR2);
    running.line_with(
        "upgrade: this process goes on: only a proxy that was started with --headless can be upgraded",
    );
    assert_eq!(running.end().0, 0);
    // Nor does the variable alone make a process a successor.
    let mut command = crate::common::tlsdash(folder.path());
    command.args(["--headless", "--upstream", "unix:/nowhere"]).env("TLSDASH_UPGRADE", "1");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("standard input is no channel"), "{}", stderr(&output));
}
