use super::*;

const COMBINED: &str = r#"10.0.0.1 - - [28/Nov/2026:12:00:00 +0000] "GET /a?x=1 HTTP/1.1" 200 5 "-" "curl"
10.0.0.2 - - [28/Nov/2026:12:00:00 +0000] "POST /b HTTP/1.1" 404 5 "-" "curl"
10.0.0.1 - - [28/Nov/2026:12:00:02 +0000] "GET /a?x=1 HTTP/1.1" 200 5 "-" "curl"
10.0.0.1 - - [28/Nov/2026:12:00:02 +0000] "\x16\x03" 400 5 "-" "-"
10.0.0.1 - - [28/Nov/2026:12:00:02 +0000] "CONNECT a:443 HTTP/1.1" 400 5 "-" "-"
nonsense
"#;

fn replay(text: &str, speed: f64) -> Result<Replay, String> {
    let target: Target = "https://localhost/".parse().unwrap();
    let options = ReplayOptions { target: &target, headers: &[], speed, protocol: Protocol::Http1 };
    let mut log = ReplayReader::new(&options);
    log.read(&mut text.as_bytes()).unwrap();
    log.finish("access.log")
}

fn times(replay: &Replay) -> Vec<u64> {
    replay.script.requests.iter().map(|request| request.after_us).collect()
}

#[test]
fn a_combined_log_has_clients_targets_and_whole_seconds() {
    let all = replay(COMBINED, 1.0).unwrap();
    assert_eq!(times(&all), [0, 500_000, 2_000_000], "the lines of a second are spread over it");
    let sent: Vec<_> =
        all.templates.iter().map(|one| (&*one.method, &*one.path, one.expect_status)).collect();
    assert_eq!(sent, [("GET", "/a?x=1", Some(200)), ("POST", "/b", Some(404))]);
    let lanes = [0, 1].map(|client| Lane { client, kind: LaneKind::Pool });
    assert_eq!((&all.script.lanes[..], all.script.clients.len()), (&lanes[..], 2));
    assert_eq!(
        all.script.requests.iter().map(|one| (one.template, one.lane)).collect::<Vec<_>>(),
        [(0, 0), (1, 1), (0, 0)]
    );
    assert_eq!(all.script.period, Duration::from_secs(3));
    let [what, assumed] = &all.notes[..] else { panic!("{:?}", all.notes) };
    assert_eq!(
        what,
        "access.log is a log of nginx with 3 requests of 2 clients in 00:02; 3 lines are not sent: 1 unreadable, \
         1 without a request, 1 with a method or path that cannot be sent"
    );
    assert!(assumed.contains("spread evenly") && assumed.contains("empty bodies"), "{assumed}");
    assert!(!assumed.contains("queries"), "{assumed}");
    assert_eq!(times(&replay(COMBINED, 4.0).unwrap()), [0, 125_000, 500_000]);
}

/// A line of nginx in the format of `observe setup`.
fn nginx(end: &str, connection: u32, number: u32, reused: &str, more: &str) -> String {
    format!(
        r#"{{"time":"{end}","client":"10.0.0.1","connection":"{connection}","number":"{number}","version":"TLSv1.3","reused":"{reused}","status":"200","in":"1000","out":"9","protocol":"HTTP/2.0"{more}}}"#
    ) + "\n"
}

#[test]
fn numbered_connections_are_those_of_the_log() {
    let get = r#","method":"GET","path":"/a b","took":"0.250""#;
    let put = r#","method":"PUT","path":"/up","took":"0.000""#;
    let log = nginx("100.500", 7, 1, ".", get)
        + &nginx("100.300", 8, 1, "r", put)
        + &nginx("100.900", 7, 2, ".", put)
        + &nginx("101.000", 3, 5, ".", get)
        + &nginx("102.000", 7, 1, "r", get);
    let all = replay(&log, 1.0).unwrap();
    assert_eq!(times(&all), [0, 50_000, 500_000, 650_000, 1_500_000], "when they began");
    let kinds = all.script.lanes.iter().map(|lane| lane.kind);
    let resumes = [Some(false), Some(true), None, Some(true)];
    assert!(kinds.eq(resumes.map(|resumes| LaneKind::Connection { resumes })), "{:?}", all.script.lanes);
    assert_eq!(all.script.requests.iter().map(|one| one.lane).collect::<Vec<_>>(), [0, 1, 2, 0, 3]);
    assert_eq!(all.script.connections_max(), 2);
    assert_eq!(all.templates[0].path, "/a%20b", "nginx logs it decoded");
    // A request in all as long as that of the log.
    let RequestBody::Bytes(body) = all.templates[1].body else { panic!() };
    let head = format!(
        "PUT /up HTTP/1.1\r\nHost: localhost\r\nUser-Agent: tlsdash/{}\r\nContent-Length: {body}\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(head.len() + body, 1_000);
    assert!(all.notes.last().unwrap().contains("add --http2"), "{:?}", all.notes);
}

#[test]
fn a_list_has_times_bodies_and_clients() {
    let all = replay("# seconds\n1.5 GET /a\n\n0.25 POST /b 10 10.0.0.7\n2 GET /a 0 10.0.0.7\n3 GET\n", 1.0)
        .unwrap();
    assert_eq!(times(&all), [0, 1_250_000, 1_750_000]);
    assert_eq!(all.templates[0].body, RequestBody::Bytes(0));
    assert_eq!((all.script.clients.len(), all.script.lanes.len()), (2, 2));
    assert!(all.notes[0].contains("a list with 3 requests"), "{:?}", all.notes);
}

#[test]
fn what_is_no_log_or_has_nothing_to_send_is_refused() {
    for (text, reason) in [
        ("", "no line is of"),
        ("nonsense\nmore of it\n", "no line is of"),
        (COMBINED.lines().nth(3).unwrap(), "no line is of"),
    ] {
        let refused = replay(text, 1.0).unwrap_err();
        assert!(refused.contains(reason), "{text}: {refused}");
    }
    let many: Vec<_> = (0..=TEMPLATES_MAX).map(|at| format!("{at} GET /{at}")).collect();
    assert!(replay(&many.join("\n"), 1.0).unwrap_err().contains("different requests"));
    let large = [1, 2, 3].map(|at| format!("{at} POST / {}", 30_000_000 + at));
    let long: Vec<_> = (0..1_100).map(|at| format!("{at} GET /{at}{}", "x".repeat(64_000))).collect();
    for text in [&large[..], &long] {
        assert!(replay(&text.join("\n"), 1.0).unwrap_err().contains("64 MiB"));
    }
}
