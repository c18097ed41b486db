//! Control of a running service: `--control` and `tlsdash ctl`.

use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{
    PATIENCE, TlsdashProcess, journal, journalctl, outside, proxy, run, send, stderr, tlsdash, until,
    upstream,
};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::Signal;
use serde_json::Value;

/// A service with a load and a control socket, ready for requests.
fn service(folder: &Path, args: &[&str]) -> (TlsdashProcess, PathBuf) {
    let (app, socket) = (upstream(folder, b"hello"), folder.join("made/control.sock"));
    let place = socket.to_str().unwrap().to_owned();
    let mut running =
        proxy(folder, &app, &[&["--control", &place, "--load", "rate=50,connections=2"], args].concat());
    running.line_with("control socket ");
    // Without waiting: the service answers once it has read the first record of the run.
    done(&ctl(folder, &socket, &["status"]));
    (running, socket)
}

fn ctl(folder: &Path, socket: &Path, args: &[&str]) -> Output {
    run(folder, &[&["ctl", "--control", socket.to_str().unwrap()], args].concat())
}

/// What it printed, if it succeeded.
fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Why it was refused.
fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", stderr(output));
    stderr(output)
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&done(output)).unwrap()
}

fn setting(folder: &Path, socket: &Path, name: &str) -> Value {
    let settings = json(&ctl(folder, socket, &["settings", "--format", "json"]));
    let settings = settings["data"].as_array().unwrap().clone();
    settings.into_iter().find(|setting| setting["name"] == name).unwrap()["value"].clone()
}

#[test]
fn a_service_tells_which_client_used_most_and_how_fast() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (running, socket) = service(folder, &[]);
    let asked = ["clients", "--limit", "1", "--last", "5m", "--format", "json"];
    let first = || json(&ctl(folder, &socket, &asked))["data"][0].clone();
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    until("the load has a record", || number(&first()["bytes_out"]) > 0.0);
    let client = first();
    let last = &client["last"];
    let counted = number(&last["bytes_out_per_s"]) * number(&last["span_s"]);
    assert!((counted - number(&client["bytes_out"])).abs() < 1.0, "all of it was in this time: {client}");
    let told = done(&ctl(folder, &socket, &["clients", "--last", "1m"]));
    assert!(
        told.contains(", by their last bytes\nrates of the last ") && told.contains("127.0.0."),
        "{told}"
    );
    let too_long = ctl(folder, &socket, &["clients", "--last", "1h"]);
    assert_eq!(too_long.status.code(), Some(2));
    assert!(stderr(&too_long).contains("--last 1h: expected a time up to 5m"), "{}", stderr(&too_long));
    assert_eq!(running.end().0, 0);
}

#[test]
fn a_service_is_tuned_marked_and_drained() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (running, socket) = service(folder, &[]);
    assert!(done(&ctl(folder, &socket, &["status"])).contains(&format!("pid {}", running.pid())));

    let told = done(&ctl(folder, &socket, &["set", "load.rate", "80"]));
    assert_eq!(told, "load.rate changed from 50/s to 80/s\n");
    until("the change is read back", || setting(folder, &socket, "load.rate") == 80.0);
    assert_eq!(done(&ctl(folder, &socket, &["set", "load.rate", "80"])), "load.rate is 80/s already\n");
    let told = done(&ctl(folder, &socket, &["set", "idle-timeout", "3", "--for", "1"]));
    assert!(told.ends_with("to 3s, for 1s\n"), "{told}");
    until("it is put back", || {
        let changes = journalctl(&journal(folder), &["TLSDASH_SETTING=proxy.idle-timeout"]);
        changes.len() == 2
    });
    let [there, back] = &journalctl(&journal(folder), &["TLSDASH_SETTING=proxy.idle-timeout"])[..] else {
        panic!()
    };
    let by = there["TLSDASH_SETTING_BY"].as_str().unwrap();
    assert!(by.contains("uid ") && by.contains("pid "), "{by}");
    assert!(there["MESSAGE"].as_str().unwrap().ends_with(&format!(" by {by}")), "{there}");
    assert_eq!(back["TLSDASH_SETTING_BY"], format!("the timer of {by}"));

    for (args, reason) in [
        (&["set", "load.speed", "80"][..], "there is no setting load.speed"),
        (&["set", "speed", "80"], "there is no setting speed"),
        (&["set", "worker", "2"], "there is no setting worker; did you mean workers?"),
        (&["set", "load.rate", "fast"], "expected "),
        (&["set", "proxy.listen", "x"], "proxy.listen changes only at a restart"),
        (&["upstream", "app:80", "drain"], "there is no upstream app:80; expected one of unix:"),
        (&["ab", "end"], "no experiment is under way"),
        (&["ab", "load.rate=1"], "load.rate=1"),
    ] {
        let told = refused(&ctl(folder, &socket, args));
        assert!(told.contains(reason), "{args:?}: {told}");
    }

    assert_eq!(done(&ctl(folder, &socket, &["mark", "kernel", "update"])), "marked kernel update\n");
    done(&ctl(folder, &socket, &["load", "stop"]));
    done(&ctl(folder, &socket, &["reload"]));
    done(&ctl(folder, &socket, &["forget-sessions"]));
    assert!(done(&ctl(folder, &socket, &["rotate-tickets"])).contains("new key"));
    let app = format!("unix:{}", folder.join("app.sock").display());
    for (action, state) in [("drain", "drained: it gets no new connections"), ("return", "in service")] {
        let told = done(&ctl(folder, &socket, &["upstream", &app, action]));
        assert_eq!(told, format!("the upstream {app} is {state}\n"));
    }
    let started = done(&ctl(folder, &socket, &["ab", "load.rate=50..60,pairs=6,aa=0,block=5s"]));
    assert!(started.contains("6 pairs"), "{started}");
    until("the experiment runs", || {
        ctl(folder, &socket, &["set", "load.rate", "70"]).status.code() == Some(1)
    });
    let told = refused(&ctl(folder, &socket, &["set", "load.rate", "70"]));
    assert!(told.contains("load.rate is locked: an experiment compares it"), "{told}");
    done(&ctl(folder, &socket, &["ab", "end"]));

    let certificates = json(&ctl(folder, &socket, &["certificates", "--format", "json"]));
    let certificate = &certificates["data"][0];
    assert_eq!((&certificate["default"], &certificate["replaced"]), (&true.into(), &false.into()));
    assert!(certificate["days_left"].as_i64().unwrap() > 0 && certificate["chain"] == 1, "{certificates}");
    done(&ctl(folder, &socket, &["drain"]));
    assert_eq!(running.wait().0, 0);
    assert!(!socket.exists(), "the socket goes with the service");
    let marks = journalctl(&journal(folder), &["TLSDASH_KIND=mark"]);
    let texts: Vec<&str> = marks.iter().map(|mark| mark["TLSDASH_MARK_TEXT"].as_str().unwrap()).collect();
    assert!(texts[..2] == ["kernel update", "draining"], "{texts:?}");
    for what in ["reload", "forget sessions", "rotate tickets"] {
        let notices = journalctl(&journal(folder), &["TLSDASH_NOTICE_TOPIC=control"]);
        let is_there = |notice: &Value| {
            notice["MESSAGE"].as_str().unwrap().starts_with(&format!("{what}: asked for by "))
        };
        assert!(notices.iter().any(is_there), "{what}: {notices:?}");
    }
}

/// What a process of another user is told.
fn told_as_nobody(socket: &Path, request: &str) -> Output {
    let script = "use IO::Socket::UNIX; $SIG{PIPE} = 'IGNORE'; my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die \"cannot connect: $!\\n\"; \
                  print $s \"$ARGV[1]\\n\"; $s->flush; print scalar <$s>;";
    as_nobody(script, socket).arg(request).output().unwrap()
}

/// A Perl script that another user runs, with a socket as its first argument.
fn as_nobody(script: &str, socket: &Path) -> Command {
    let mut command = outside("setpriv", "util-linux");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "perl", "-e", script]).arg(socket);
    command
}

#[test]
fn only_those_who_may_reach_and_change_a_service() {
    if !rustix::process::geteuid().is_root() {
        return crate::common::not_run::say_not_run(
            "only_those_who_may_reach_and_change_a_service",
            "it needs root",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let (status, set) = (r#"{"request":"status"}"#, r#"{"request":"set","name":"load.rate","value":"1"}"#);

    let (running, socket) = service(folder, &[]);
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let output = told_as_nobody(&socket, status);
    assert!(stderr(&output).contains("cannot connect: Permission denied"), "{}", stderr(&output));
    running.end();
    fs::remove_file(folder.join("app.sock")).unwrap();

    let (running, socket) = service(folder, &["--control-readers", "nogroup"]);
    let answer: Value = serde_json::from_slice(&told_as_nobody(&socket, status).stdout).unwrap();
    assert_eq!(answer["ok"], true, "{answer}");
    let answer: Value = serde_json::from_slice(&told_as_nobody(&socket, set).stdout).unwrap();
    assert!(
        answer["ok"] == false
            && answer["text"].as_str().unwrap().contains("may read and not change anything"),
        "{answer}"
    );
    assert_eq!(setting(folder, &socket, "load.rate"), 50.0);
    let crowd = "use IO::Socket::UNIX; my @s = map { IO::Socket::UNIX->new(Peer => $ARGV[0]) } 1..40; \
                 $| = 1; print \"there\\n\"; <STDIN>;";
    let mut crowd = as_nobody(crowd, &socket);
    let mut crowd = crowd.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(crowd.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
    until("readers take no more than their places", || {
        String::from_utf8_lossy(&told_as_nobody(&socket, status).stdout).contains("too many clients")
    });
    done(&ctl(folder, &socket, &["set", "load.rate", "50"]));
    drop(crowd.stdin.take());
    crowd.wait().unwrap();
    running.end();
    fs::remove_file(folder.join("app.sock")).unwrap();

    let (running, socket) = service(folder, &["--control-group", "nogroup"]);
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o660);
    let answer: Value = serde_json::from_slice(&told_as_nobody(&socket, set).stdout).unwrap();
    assert!(answer["ok"] == true, "{answer}");
    running.end();
    fs::remove_file(folder.join("app.sock")).unwrap();

    let (running, socket) = service(folder, &["--control-readers", "daemon"]);
    let answer: Value = serde_json::from_slice(&told_as_nobody(&socket, status).stdout).unwrap();
    assert!(
        answer["ok"] == false && answer["text"].as_str().unwrap().contains("nobody (uid 65534, pid "),
        "{answer}"
    );
    running.end();
}

#[test]
fn hostile_clients_change_nothing_and_keep_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (running, socket) = service(folder, &[]);
    let mut long = vec![b'x'; 100_000];
    long.push(b'\n');
    for (line, reason) in [
        (&b"\x00\xff\x1b[2J\n"[..], "this is not a request: "),
        (b"{}\n", "this is not a request: "),
        (
            b"{\"request\":\"set\",\"name\":\"load.rate\",\"value\":\"1\",\"for_s\":-1}\n",
            "for -1 s: expected ",
        ),
        (&long, "a request has at most 65536 bytes"),
    ] {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(line).unwrap();
        let mut answer = String::new();
        BufReader::new(&stream).read_line(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(answer["ok"] == false && answer["text"].as_str().unwrap().starts_with(reason), "{answer}");
    }
    let mut silent = Vec::new();
    until("further clients are told", || {
        // Those before may still be taking their leave.
        silent.extend((0..20).map(|_| UnixStream::connect(&socket).unwrap()));
        let output = ctl(folder, &socket, &["status"]);
        output.status.code() == Some(1) && stderr(&output).contains("too many clients")
    });
    drop(silent);
    until("there is room again", || ctl(folder, &socket, &["status"]).status.success());
    assert_eq!(setting(folder, &socket, "load.rate"), 50.0);
    assert_eq!(running.end().0, 0);
}

#[test]
fn a_socket_that_is_served_or_no_socket_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let app = upstream(folder, b"hello");
    let target = format!("unix:{}", app.display());
    let start = |path: &Path| {
        let args = [
            "--headless",
            "--journal",
            "off",
            "--listen",
            "127.0.0.1:0",
            "--upstream",
            &target,
            "--duration",
            "1s",
        ];
        run(folder, &[&args[..], &["--control", path.to_str().unwrap()]].concat())
    };
    let file = folder.join("notes");
    fs::write(&file, "keep me").unwrap();
    assert!(refused(&start(&file)).contains("there is a file that is no socket"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "keep me");
    let served = folder.join("served.sock");
    let _listener = UnixListener::bind(&served).unwrap();
    assert!(refused(&start(&served)).contains("another process serves this socket"));
    let stale = folder.join("stale.sock");
    drop(UnixListener::bind(&stale).unwrap());
    assert!(stale.exists());
    assert!(start(&stale).status.success() && !stale.exists());
    assert!(refused(&ctl(folder, &stale, &["status"])).contains("there is no control socket"));
    let output = run(folder, &["ctl", "status"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--control PATH"), "{}", stderr(&output));
}

/// A socket whose service answers each client with this, and nothing more.
fn answering(folder: &Path, name: &str, answer: &'static str) -> PathBuf {
    let socket = folder.join(name);
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            // The request comes in one line; the client may be gone.
            let _ = BufReader::new(&stream).read_line(&mut String::new());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    socket
}

#[test]
fn what_is_no_service_of_this_version_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let older = concat!(r#"{"version":0,"ok":false,"text":"this is not a request: unknown variant"}"#, "\n");
    let newer = concat!(r#"{"version":9,"ok":true,"text":"done","more":[1]}"#, "\n");
    for (name, answer, reason) in [
        ("older", older, "the service speaks version 0 of the protocol, this program 1: restart the service"),
        ("silent", "", "the service closed the connection"),
        ("cut", r#"{"version":1,"o"#, "ended early: the service has gone"),
        ("web", "HTTP/1.1 400 Bad Request\n", "does not answer as a control socket of tlsdash"),
        ("control", "{\"version\":1,\"ok\":false,\"text\":\"\\u001b[2J no\"}\n", " no\n"),
    ] {
        let told = refused(&ctl(folder, &answering(folder, name, answer), &["status"]));
        assert!(told.contains(reason) && !told.contains('\x1b'), "{name}: {told}");
    }
    assert_eq!(done(&ctl(folder, &answering(folder, "newer", newer), &["reload"])), "done\n");
    let gone = folder.join("gone.sock");
    assert!(refused(&ctl(folder, &gone, &["status"])).contains("there is no control socket"));
    drop(UnixListener::bind(&gone).unwrap());
    assert!(refused(&ctl(folder, &gone, &["status"])).contains("nobody serves the control socket"));
    let file = folder.join("file");
    fs::write(&file, "").unwrap();
    assert!(refused(&ctl(folder, &file, &["status"])).contains("is not a socket"));
}

#[test]
fn every_command_answers_in_json() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (running, socket) = service(folder, &[]);
    let answer = |args: &[&str]| {
        let output = ctl(folder, &socket, &[args, &["--format", "json"]].concat());
        (output.status.code(), serde_json::from_slice::<Value>(&output.stdout).unwrap())
    };
    for (args, has_data) in [
        (&["status"][..], true),
        (&["settings"], true),
        (&["clients"], true),
        (&["certificates"], true),
        (&["set", "load.rate", "40", "--for", "10s"], false),
        (&["mark", "here"], false),
        (&["load", "stop"], false),
        (&["load", "start"], false),
        (&["reload"], false),
        (&["forget-sessions"], false),
        (&["rotate-tickets"], false),
        (&["calibrate"], false),
        (&["ab", "load.resume=50..60,pairs=6,aa=0,block=5s"], false),
    ] {
        let (code, answer) = answer(args);
        assert_eq!((code, &answer["ok"], &answer["version"]), (Some(0), &true.into(), &1.into()), "{answer}");
        assert!(!answer["text"].as_str().unwrap().is_empty(), "{args:?}");
        assert_eq!(answer.get("data").is_some(), has_data, "{args:?}: {answer}");
    }
    until("the experiment can be ended", || answer(&["ab", "end"]).0 == Some(0));
    let (code, refusal) = answer(&["set", "load.speed", "1"]);
    assert_eq!((code, &refusal["ok"]), (Some(1), &false.into()));
    assert_eq!(answer(&["drain"]).1["ok"], true);
    assert_eq!(running.wait().0, 0);
}

#[test]
fn a_client_that_never_reads_keeps_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (running, socket) = service(folder, &[]);
    // Each asks for far more than the kernel keeps for it, and reads nothing.
    let request = "{\"request\":\"settings\"}\n".repeat(1_000);
    let deaf: Vec<UnixStream> = (0..16)
        .map(|_| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            stream.set_nonblocking(true).unwrap();
            let _ = stream.write(request.as_bytes());
            stream
        })
        .collect();
    until("they are given up", || ctl(folder, &socket, &["status"]).status.success());
    assert_eq!(setting(folder, &socket, "load.rate"), 50.0);
    drop(deaf);
    assert_eq!(running.end().0, 0);
}

#[test]
fn a_standard_error_that_nobody_reads_holds_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let app = upstream(folder, b"x");
    let socket = folder.join("control.sock");
    let (mut said, mut full) = std::io::pipe().unwrap();
    fcntl_setfl(&full, OFlags::NONBLOCK).unwrap();
    let mut before = 0;
    while let Ok(n) = full.write(&[b'.'; 1024]) {
        before += n;
    }
    fcntl_setfl(&full, OFlags::empty()).unwrap();
    let mut command = tlsdash(folder);
    let upstream = format!("unix:{}", app.display());
    command.args(["--headless", "--listen", "127.0.0.1:0", "--upstream", &upstream, "--journal", "off"]);
    command.args(["--control", socket.to_str().unwrap()]).stdout(Stdio::null()).stderr(full);
    let mut child = command.spawn().unwrap();
    drop(command);
    until("it is controlled", || ctl(folder, &socket, &["status"]).status.success());
    done(&ctl(folder, &socket, &["reload"]));
    // Log rotation sends SIGUSR1.
    send(Signal::USR1, child.id());
    said.read_exact(&mut vec![0; before]).unwrap();
    done(&ctl(folder, &socket, &["reload"]));
    send(Signal::TERM, child.id());
    until("it ends", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("missing: standard error was not read"), "{rest}");
}
