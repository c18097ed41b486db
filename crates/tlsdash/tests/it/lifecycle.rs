//! Beginning, watching and ending, as an operator does them.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use crate::common::{
    TlsdashProcess, connects, journal, on_small_disk, outside, proxy, run, stderr, tlsdash, until, upstream,
};
use crate::terminal::{NOTHING, TestTerminal};
use rustix::process::Signal;

#[test]
fn a_recording_is_begun_and_ended_by_a_key_and_is_a_run_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let place = format!("file:{}", journal(folder.path()).display());
    let mut terminal =
        TestTerminal::start(folder.path(), &["demo", "--interval", "200ms", "--journal", &place]);
    terminal.shows("LIVE");
    terminal.press("R");
    terminal.shows("record into: tlsdash-");
    terminal.press("\r");
    let recorded = || terminal.contents();
    until("a second is recorded", || recorded().contains("[REC 00:") && !recorded().contains("[REC 00:00]"));
    terminal.press("q");
    terminal.shows("quit again");
    terminal.press("R");
    until("the recording ends", || !terminal.contents().contains("[REC"));
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let is_recording = |name: &str| name.starts_with("tlsdash-") && name.ends_with("Z.journal");
    let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let file = files.into_iter().find(|path| is_recording(&path.file_name().unwrap().to_string_lossy()));
    let watched =
        run(folder.path(), &["watch", file.unwrap().to_str().unwrap(), "--headless", "--format", "json"]);
    assert!(watched.status.success(), "{}", stderr(&watched));
    let summary: serde_json::Value = serde_json::from_slice(&watched.stdout).unwrap();
    assert_eq!((&summary["ended"], &summary["journal"]["lost"]), (&true.into(), &0.into()), "{summary}");
    assert_eq!(summary["journal"]["before"], 0, "it begins with itself");
    assert!(summary["proxy"]["latency_us"]["exchange"]["n"].as_u64().unwrap() > 0, "{summary}");
}

#[test]
fn the_demo_shows_live_figures_and_leaves_the_terminal_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = TestTerminal::start(folder.path(), &["demo"]);
    for text in ["LIVE", "full", "resumed", "127.0.0.", "CO-corrected"] {
        terminal.shows(text);
    }
    assert!(terminal.screen.lock().unwrap().screen().alternate_screen());
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    terminal.shows("0 lost");
    let screen = terminal.screen.lock().unwrap();
    assert!(!screen.screen().alternate_screen());
    assert!(!screen.screen().hide_cursor());
}

#[test]
fn keys_change_the_load_and_the_change_is_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let at = format!("file:{}", journal(folder.path()).display());
    let mut terminal = TestTerminal::start(folder.path(), &["demo", "--journal", &at]);
    terminal.shows("1,000/s");
    terminal.press("]");
    terminal.shows("load.rate changed from 1000 to 1100");
    terminal.press("}");
    terminal.shows("load.resume changed from 80 to 90");
    terminal.press("l");
    terminal.shows("load.running changed from on to off");
    terminal.press("m");
    terminal.shows("mark 1");
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let changes = crate::common::journalctl(&journal(folder.path()), &["TLSDASH_KIND=setting"]);
    let names: Vec<_> = changes.iter().map(|entry| entry["TLSDASH_SETTING"].as_str().unwrap()).collect();
    assert_eq!(names, ["load.rate", "load.resume", "load.running"]);
}

#[test]
fn sigterm_ends_the_dashboard_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = TestTerminal::start(folder.path(), &["demo"]);
    terminal.shows("LIVE");
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.ended(), 0);
    terminal.shows("0 lost");
    assert!(!terminal.screen.lock().unwrap().screen().alternate_screen());
}

#[test]
fn a_terminal_that_goes_away_ends_the_program_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let at = format!("file:{}", journal(folder.path()).display());
    let mut terminal = TestTerminal::start(folder.path(), &["demo", "--journal", &at]);
    terminal.shows("LIVE");
    terminal.vanish();
    assert_eq!(terminal.ended(), 0);
    let stop =
        crate::common::journalctl(&journal(folder.path()), &["TLSDASH_KIND=run", "TLSDASH_PHASE=stop"]);
    assert_eq!(stop.len(), 1, "the run was closed");
}

#[test]
fn with_keep_running_a_lost_terminal_ends_only_the_dashboard() {
    let folder = tempfile::tempdir().unwrap();
    let file = journal(folder.path());
    let at = format!("file:{}", file.display());
    let mut terminal = TestTerminal::start(folder.path(), &["demo", "--keep-running", "--journal", &at]);
    terminal.shows("LIVE");
    terminal.vanish();
    let records = |matches: &[&str]| crate::common::journalctl(&file, matches);
    until("the loss is on record", || {
        records(&["TLSDASH_KIND=notice"])
            .iter()
            .any(|it| it["MESSAGE"].to_string().contains("terminal is gone"))
    });
    let sent = || {
        let last = records(&["TLSDASH_KIND=load"]).pop().unwrap();
        last["TLSDASH_LOAD_SENT_TOTAL"].as_str().unwrap().parse::<u64>().unwrap()
    };
    let before = sent();
    until("the load goes on", || sent() > before + 1_000);
    // What a program without a terminal does at a hang-up: it reads its files again.
    terminal.signal(Signal::HUP);
    let before = sent();
    until("the load still goes on", || sent() > before);
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.ended(), 0);
    assert_eq!(records(&["TLSDASH_KIND=run", "TLSDASH_PHASE=stop"]).len(), 1, "the run was closed");
}

#[test]
fn ctrl_z_does_not_stop_the_proxy_under_its_clients() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = format!("unix:{}", upstream(folder.path(), b"x").display());
    let mut terminal =
        TestTerminal::start(folder.path(), &["--listen", "127.0.0.1:0", "--upstream", &upstream]);
    terminal.shows("LIVE");
    terminal.press("\x1a");
    terminal.shows("Ctrl-Z would stop the proxy: use --headless and `tlsdash watch`");
    let screen = terminal.contents();
    let url = format!("https://{}/", screen.split_whitespace().nth(1).unwrap());
    let served = outside("curl", "curl").args(["-sk", "--max-time", "20", &url]).output().unwrap();
    assert_eq!(served.stdout, b"x", "{}", stderr(&served));
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

/// Starts the program, reads a line of what it says on standard output, and closes that.
fn read_no_further(mut program: std::process::Child) -> std::process::Output {
    use std::io::{BufRead, BufReader};
    let mut said = BufReader::new(program.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(!line.is_empty());
    drop(said);
    program.wait_with_output().unwrap()
}

#[test]
fn a_closed_reader_of_sentences_ends_the_run_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = journal(folder.path());
    let at = format!("file:{}", file.display());
    let mut demo = tlsdash(folder.path());
    let demo = demo.args(["demo", "--plain", "--journal", &at]);
    let demo =
        demo.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let ended = read_no_further(demo);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert!(!said.contains("roken pipe") && !said.contains("panicked"), "{said}");
    assert_eq!(
        crate::common::journalctl(&file, &["TLSDASH_KIND=run", "TLSDASH_PHASE=stop"]).len(),
        1,
        "the run was closed"
    );
}

#[test]
fn a_closed_standard_output_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["text", "json"] {
        let mut demo = tlsdash(folder.path());
        let demo = demo.args(["demo", "--headless", "--duration", "1s", "--format", format]);
        let mut demo =
            demo.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
        drop(demo.stdout.take());
        let ended = demo.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{said}");
        assert!(!said.contains("roken pipe") && !said.contains("panicked"), "{said}");
    }
}

#[test]
fn another_terminal_watches_a_running_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let socket = upstream(folder.path(), b"x");
    let mut running = proxy(
        folder.path(),
        &socket,
        &["--load", "rate=100,connections=4,source-addresses=2,keep-alive=off"],
    );
    running.address();
    let file = journal(folder.path());
    until("the journal holds clients", || {
        !crate::common::journalctl(&file, &["TLSDASH_KIND=client"]).is_empty()
    });
    let mut terminal = TestTerminal::start(folder.path(), &["watch", file.to_str().unwrap()]);
    terminal.shows("LIVE");
    terminal.shows("127.0.0.2");
    terminal.press("l");
    terminal.shows("no control");
    assert_eq!(running.end().0, 0);
    terminal.shows("ENDED");
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn a_summary_can_be_had_from_the_journal_of_a_running_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let socket = upstream(folder.path(), b"x");
    let mut running = proxy(
        folder.path(),
        &socket,
        &["--load", "rate=100,connections=4,keep-alive=off", "--interval", "200ms"],
    );
    running.address();
    let file = journal(folder.path());
    let watched = || {
        let output = run(folder.path(), &["watch", "--headless", "--format", "json", file.to_str().unwrap()]);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    until("the journal holds a record", || {
        !crate::common::journalctl(&file, &["TLSDASH_KIND=run"]).is_empty()
    });
    until("requests are in the journal", || watched()["load"]["requests"]["ok"].as_u64().unwrap_or(0) > 0);
    let (code, printed) = running.end();
    assert_eq!(code, 0);
    let mut own: serde_json::Value = serde_json::from_str(&printed).unwrap();
    // Only the run itself read its records as they were written.
    assert!(own["journal"]["lag_us"]["n"].as_u64().unwrap() > 0, "{own}");
    own["journal"]["lag_us"] = watched()["journal"]["lag_us"].clone();
    assert_eq!(own["journal"]["lag_us"]["n"], 0);
    assert_eq!(watched(), own, "the same figures from the journal as from the run itself");
    let prefix = &own["run"].as_str().unwrap()[..8];
    let named = run(folder.path(), &["watch", "--headless", "--run", prefix, file.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&named.stdout).contains(prefix), "{}", stderr(&named));
    let other =
        run(folder.path(), &["watch", "--headless", "--run", "0123456789abcdef", file.to_str().unwrap()]);
    assert_eq!(other.status.code(), Some(1), "{}", stderr(&other));
}

/// The first connection is the program looking at its start whether the upstream is there.
fn accept_client(listener: &UnixListener) -> UnixStream {
    listener.accept().unwrap();
    listener.accept().unwrap().0
}

#[test]
fn sigterm_lets_a_transfer_finish() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slow.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut running = proxy(folder.path(), &path, &[]);
    let url = format!("https://{}/", running.address());
    let address = running.address();
    let client = std::thread::spawn(move || outside("curl", "curl").args(["-sk", &url]).output().unwrap());
    let mut stream = accept_client(&listener);
    let mut head = [0; 16];
    let _ = stream.read(&mut head).unwrap();
    stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 10\r\n\r\nfirst").unwrap();
    // `timeout` sends two signals, to the program and to its group.
    running.signal(Signal::TERM);
    running.signal(Signal::INT);
    until("the proxy accepts no more", || !connects(address));
    stream.write_all(b" last").unwrap();
    drop(stream);
    assert_eq!(client.join().unwrap().stdout, b"first last");
    assert_eq!(running.wait().0, 0);
}

#[test]
fn a_second_signal_cuts_connections_and_the_summary_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hung.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut running = proxy(folder.path(), &path, &["--drain-timeout", "10m"]);
    let url = format!("https://{}/", running.address());
    let address = running.address();
    let client = std::thread::spawn(move || outside("curl", "curl").args(["-sk", &url]).output().unwrap());
    let hung = accept_client(&listener);
    running.signal(Signal::TERM);
    until("the proxy accepts no more", || !connects(address));
    // The first signal may be some milliseconds old only.
    std::thread::sleep(Duration::from_millis(200));
    running.signal(Signal::TERM);
    running.line_with("second signal");
    let (code, printed) = running.wait();
    let summary: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert!(code == 0 && summary["proxy"]["connections"]["accepted"].as_u64() >= Some(1), "{summary}");
    drop(hung);
    client.join().unwrap();
}

#[test]
fn a_second_signal_ends_at_once_what_has_no_connections_to_cut() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut command = tlsdash(folder.path());
    command.args(["load", &url, "-c", "1", "-d", "1m", "--headless", "--journal", "off"]);
    let mut running = TlsdashProcess::start(command);
    // Whether there is a server is tried before, without a request.
    let mut connections = listener.incoming().map(Result::unwrap);
    let hung = connections.find(|mut stream| stream.read(&mut [0; 100]).unwrap() > 0);
    running.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(200));
    running.signal(Signal::TERM);
    running.line_with("ending at once");
    assert_eq!(running.wait().0, 1);
    drop(hung);
}

#[test]
fn a_run_of_given_length_ends_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let socket = upstream(folder.path(), b"x");
    let running = proxy(folder.path(), &socket, &["--duration", "1s"]);
    let (code, printed) = running.wait();
    assert_eq!(code, 0);
    let summary: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let seconds = summary["duration_s"].as_f64().unwrap();
    assert!((1.0..10.0).contains(&seconds), "{seconds}");
}

#[test]
fn the_auto_journal_is_where_watch_looks() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = tlsdash(folder.path());
    command.args(["demo", "--headless", "--duration", "2s"]);
    let (code, _) = TlsdashProcess::start(command).wait();
    assert_eq!(code, 0);
    assert!(folder.path().join("tlsdash.journal").exists());
    let output = run(folder.path(), &["watch", "--headless"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("tlsdash.journal"), "{}", stderr(&output));
}

#[test]
fn a_full_disk_is_said_and_serving_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let socket = upstream(folder.path(), b"x");
    let disk = folder.path().join("disk");
    let mut command = on_small_disk(&disk, 2_600, 0);
    command
        .args(["--headless", "--listen", "127.0.0.1:0", "--interval", "100ms", "--format", "json"])
        .arg("--upstream")
        .arg(format!("unix:{}", socket.display()))
        .arg("--journal")
        .arg(format!("file:{}", journal(&disk).display()))
        .args(["--load", "rate=300,source-addresses=20,connections=20,keep-alive=off"]);
    let mut running = TlsdashProcess::start(command);
    let url = format!("https://{}/", running.address());
    assert!(running.line_with("the journal takes no records").contains("No space left"));
    for _ in 0..5 {
        let served = outside("curl", "curl").args(["-sk", &url]).output().unwrap();
        assert_eq!(served.stdout, b"x", "{}", stderr(&served));
    }
    let (code, printed) = running.end();
    assert_eq!(code, 1, "the record of the run is not whole");
    let summary: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert!(summary["journal"]["lost"].as_u64().unwrap() > 0, "{summary}");
    assert_eq!(summary["ended"], false);
}

/// A summary without what depends on who read the journal, and when.
fn without_its_reader(mut summary: serde_json::Value) -> serde_json::Value {
    summary["journal"]["source"] = "elsewhere".into();
    summary["journal"]["lag_us"] = "its own".into();
    summary
}

#[test]
fn a_folder_of_journals_can_be_watched_and_a_run_in_it_named() {
    let folder = tempfile::tempdir().unwrap();
    let demo = |name: &str| {
        let at = format!("file:{}", folder.path().join(name).display());
        let args = ["demo", "--headless", "--duration", "1s", "--format", "json", "--journal", &at];
        let output = run(folder.path(), &args);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    // The second archives the first beside it; the third has a file of its own.
    let runs = [demo("a.journal"), demo("a.journal"), demo("b.journal")];
    let watch = |more: &[&str]| {
        let mut args = vec!["watch", "--headless", "--format", "json", folder.path().to_str().unwrap()];
        args.extend(more);
        let output = run(folder.path(), &args);
        assert!(output.status.success(), "{}", stderr(&output));
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(summary["journal"]["source"], folder.path().to_str().unwrap());
        without_its_reader(summary)
    };
    for expected in runs.iter().rev() {
        let expected = without_its_reader(expected.clone());
        assert_eq!(watch(&["--run", &expected["run"].as_str().unwrap()[..10]]), expected);
    }
    assert_eq!(watch(&[])["run"], runs[2]["run"], "the newest, unless one is named");
}

#[test]
fn completions_and_the_manual_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = run(folder.path(), &["completions", shell]);
        assert!(String::from_utf8(output.stdout).unwrap().contains("upstream"), "{shell}");
    }
    let page = String::from_utf8(run(folder.path(), &["man", "load"]).stdout).unwrap();
    assert!(page.contains(".TH tlsdash-load") && page.contains("insecure"), "{page}");
    let manual = String::from_utf8(run(folder.path(), &["man"]).stdout).unwrap();
    assert!(manual.contains(".TH") && manual.contains("resumed handshakes"), "{manual}");
    assert!(manual.contains(".SH EXAMPLES\n.nf\n\\&tlsdash demo"), "{manual}");
    let nested = String::from_utf8(run(folder.path(), &["man", "ctl", "set"]).stdout).unwrap();
    assert!(nested.contains("\\fBtlsdash ctl set\\fR [OPTIONS] <NAME> <VALUE>"), "{nested}");
}

#[test]
fn a_terminal_shows_the_manual_with_man_or_else_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let shown_with = |path: &Path, expected: &str| {
        let mut command = std::process::Command::new("env");
        command.args(["-u", "PAGER"]).arg(format!("PATH={}", path.display()));
        command.args([env!("CARGO_BIN_EXE_tlsdash"), "man", "completions"]);
        let mut terminal = TestTerminal::of(NOTHING, folder.path(), &command);
        terminal.shows(expected);
        assert_eq!(terminal.ended(), 0);
    };
    shown_with(Path::new("/nowhere"), "Usage: tlsdash completions");
    let man = folder.path().join("man");
    std::fs::write(&man, "#!/bin/sh\nread line\necho \"man $1 $2 got ${line%% *}\"\n").unwrap();
    std::fs::set_permissions(&man, std::fs::Permissions::from_mode(0o755)).unwrap();
    shown_with(folder.path(), "man -l - got .ie");
}

#[test]
fn a_hang_up_without_a_lost_terminal_does_not_end_the_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let socket = upstream(folder.path(), b"x");
    let plain = tlsdash(folder.path());
    // It starts the program with the signal ignored.
    let mut nohup = outside("nohup", "coreutils");
    nohup.arg(plain.get_program()).env("STATE_DIRECTORY", folder.path());
    for mut command in [plain, nohup] {
        command.args(["--headless", "--listen", "127.0.0.1:0", "--journal", "off", "--upstream"]);
        command.arg(format!("unix:{}", socket.display()));
        let mut running = TlsdashProcess::start(command);
        let address = running.address();
        running.signal(Signal::HUP);
        running.line_with("are the same");
        assert!(connects(address));
        assert_eq!(running.end().0, 0);
    }
}
