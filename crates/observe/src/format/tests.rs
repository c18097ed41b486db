//! Lines of real terminators, and what they say.

use std::time::Duration;

use records::kinds::ConnectionOutcome;
use records::metrics::RequestFailure;
use records::values::LogFigure;

use super::{BadLine, LogKind};
use crate::event::LogEvent;

/// Reads a line and passes what it says to `then`.
fn said<T>(kind: LogKind, line: &str, then: impl FnOnce(&LogEvent<'_>) -> T) -> T {
    kind.parser().parse(line.as_bytes(), |event| then(&event.expect("the line counts"))).expect(line)
}

const HAPROXY_HTTP: &str = r#"{"kind":"http","time":"1795440001.091","log":"web","line":"2","client":"127.0.0.1","number":"1","version":"TLSv1.2","cipher":"ECDHE-ECDSA-AES256-GCM-SHA384","resumed":"0","name":"localhost","alpn":"-","handshake":"2","method":"GET","path":"\/a\"b","protocol":"HTTP/1.1","upstream":"up/a","status":"200","state":"--","in":"92","out":"185","idle":"30","took":"12","response":"0"}"#;

#[test]
fn the_first_request_of_a_connection_counts_it() {
    said(LogKind::Haproxy, HAPROXY_HTTP, |event| {
        let handshake = event.connection.as_ref().unwrap().handshake.as_ref().unwrap();
        assert_eq!((&*handshake.version, handshake.is_resumed), ("TLSv1.2", false));
        assert_eq!(handshake.took, Some(Duration::from_millis(2)));
        assert_eq!(handshake.alpn.as_deref(), Some(""), "the client offered none");
        let request = event.request.as_ref().unwrap();
        assert_eq!((&*request.path, request.status, request.body_out), ("/a\"b", Some(200), None));
        assert_eq!(
            event.time_us,
            Some(1_795_440_001_135_000),
            "when it ended: after handshake and idle time"
        );
        assert_eq!((event.bytes_in, event.bytes_out), (92, 185));
    });
    let over_http2 = HAPROXY_HTTP.replace(r"\/a", r"https:\/\/localhost\/a");
    said(LogKind::Haproxy, &over_http2, |event| assert_eq!(event.request.as_ref().unwrap().path, "/a\"b"));
    let of_unix_socket = HAPROXY_HTTP.replace("127.0.0.1", "unix");
    said(LogKind::Haproxy, &of_unix_socket, |event| assert_eq!(event.client, records::ids::ClientId::Other));
    let later = HAPROXY_HTTP.replace(r#""number":"1""#, r#""number":"2""#);
    said(LogKind::Haproxy, &later, |event| assert!(event.connection.is_none() && event.request.is_some()));
}

#[test]
fn lines_that_cannot_count_handshakes_say_so() {
    let unnumbered = HAPROXY_HTTP.replace(r#""number":"1""#, r#""number":"-""#);
    let denied = unnumbered.replace(r#""state":"--""#, r#""state":"PR""#);
    let text = r#"10.0.1.2:1 [06/Feb/2026:12:14:14.655] in be/s1 1/0/3/6/9 200 1 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1""#;
    let combined = r#"10.0.0.7 - - [10/Oct/2026:13:55:36 -0700] "GET / HTTP/1.1" 200 1"#;
    for (kind, line, counts) in [
        (LogKind::Haproxy, HAPROXY_HTTP, true),
        (LogKind::Haproxy, &unnumbered, false),
        (LogKind::Haproxy, &denied, true),
        (LogKind::Haproxy, text, false),
        (LogKind::Nginx, combined, false),
    ] {
        let lacks = |event: &LogEvent<'_>| event.lacks.iter().any(|it| it.figure == LogFigure::Handshakes);
        assert_eq!(said(kind, line, lacks), !counts, "{line}");
    }
}

#[test]
fn failed_handshakes_of_haproxy_have_their_cause() {
    let line = |code: &str, error: &str| {
        format!(
            r#"{{"kind":"error","time":"1.000","log":"web","line":"4","client":"::1","version":"TLSv1.3","resumed":"0","code":"{code}","error":"{error}"}}"#
        )
    };
    let failed = line("7", "SSL handshake failure: error:0A000102:SSL routines::unsupported protocol");
    said(LogKind::Haproxy, &failed, |event| {
        let connection = event.connection.as_ref().unwrap();
        assert_eq!(connection.failure.as_ref().unwrap().outcome, ConnectionOutcome::Incompatible);
        assert_eq!(connection.handshake, None);
    });
    said(LogKind::Haproxy, &line("0", "Success: -"), |event| {
        let connection = event.connection.as_ref().unwrap();
        assert!(connection.failure.is_none() && connection.handshake.is_some(), "it left without a request");
    });
}

#[test]
fn a_request_of_haproxy_that_never_became_whole_is_a_request_with_its_cause() {
    let line = |number: &str, status: &str, state: &str| {
        format!(
            r#"{{"kind":"error","time":"1.000","log":"web","line":"4","client":"::1","version":"TLSv1.3","resumed":"0","number":"{number}","status":"{status}","state":"{state}","took":"500","code":"0","error":"Success: -"}}"#
        )
    };
    let counts = |line: &str| {
        said(LogKind::Haproxy, line, |event| {
            (
                event.connection.is_some(),
                event.request.as_ref().map(|request| (request.status, request.failure)),
            )
        })
    };
    let request = |status, failure| Some((Some(status), Some(failure)));
    assert_eq!(counts(&line("-", "400", "PR")), (true, request(400, RequestFailure::Malformed)));
    assert_eq!(counts(&line("3", "408", "cR")), (false, request(408, RequestFailure::HeadTimeout)));
    assert_eq!(counts(&line("-", "0", "PR")), (true, None), "a client of HTTP/2 left");
    assert_eq!(counts(&line("-", "400", "CR")), (true, None), "a client left");
}

#[test]
fn own_formats_of_haproxy_are_read_with_fewer_figures() {
    let line = r#"<134>Feb  6 12:14:14 haproxy[14389]: 10.0.1.2:33317 [06/Feb/2026:12:14:14.655] http-in static/srv1 10/0/30/69/109 502 2750 - - SH-- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html?q HTTP/1.1""#;
    said(LogKind::Haproxy, line, |event| {
        let request = event.request.as_ref().unwrap();
        assert_eq!(
            (&*request.path, request.query.as_deref(), request.status),
            ("/index.html", Some("q"), Some(502))
        );
        assert_eq!(event.time_us.unwrap() % 60_000_000, 14_764_000, "when it ended");
        assert_eq!(request.failure, Some(RequestFailure::UpstreamClosed));
        assert_eq!(request.took, Some(Duration::from_millis(109)));
        assert!(event.connection.is_none() && event.bytes_out == 2_750);
    });
    let https = r#"unix:1 [25/Nov/2025:17:59:01.906] https~ be/s1 0/0/1/3/4 200 52 - - ---- 1/1/0/0/0 0/0 {a #22b#22|c} "GET https://localhost/s1?q HTTP/2.0" 0/0000000000000000/0/0/0 localhost/TLSv1.3/TLS_AES_256_GCM_SHA384"#;
    said(LogKind::Haproxy, https, |event| {
        let request = event.request.as_ref().unwrap();
        let [method, path, protocol] = [&request.method, &request.path, &request.protocol];
        assert_eq!([&**method, path, protocol], ["GET", "/s1", "HTTP/2.0"]);
        assert_eq!((event.client, event.connection.as_ref()), (records::ids::ClientId::Other, None));
    });
    let tcp = "10.0.1.2:33313 [06/Feb/2026:12:12:51.443] fnt bck/srv1 0/0/5007 212 cD 0/0/0/0/3 0/0";
    said(LogKind::Haproxy, tcp, |event| {
        let connection = event.connection.as_ref().unwrap();
        assert_eq!(connection.failure.as_ref().unwrap().outcome, ConnectionOutcome::IdleTimeout);
        assert_eq!(connection.lifetime, Some(Duration::from_millis(5_007)));
        assert_eq!(event.time_us.unwrap() % 60_000_000, 56_450_000);
    });
    let failed = "127.0.0.1:56059 [03/Dec/2026:17:35:10.380] frt/1: Connection closed during SSL handshake";
    said(LogKind::Haproxy, failed, |event| {
        let failure = event.connection.as_ref().unwrap().failure.as_ref().unwrap();
        assert_eq!(failure.outcome, ConnectionOutcome::HandshakeEof);
    });
}

const NGINX: &str = r#"<190>Nov 23 13:00:00 nginx: {"time":"1795440001.091","client":"10.0.0.7","connection":"5","number":"1","version":"TLSv1.3","cipher":"TLS_AES_256_GCM_SHA384","group":"X25519","reused":"r","name":"a.example","alpn":"h2","method":"GET","path":"/","protocol":"HTTP/2.0","status":"504","in":"80","out":"500","body":"300","took":"60.001","upstream":"10.0.0.1:80, 10.0.0.2:80","connect":"0.001, 0.002","header":"0.500, -"}"#;

#[test]
fn a_request_of_nginx_has_the_cause_that_its_times_show() {
    said(LogKind::Nginx, NGINX, |event| {
        let request = event.request.as_ref().unwrap();
        assert_eq!(request.failure, Some(RequestFailure::UpstreamTimeout));
        assert_eq!((request.upstream_time, request.body_out), (None, Some(300)));
        assert_eq!(request.took, Some(Duration::from_millis(60_001)));
        let handshake = event.connection.as_ref().unwrap().handshake.as_ref().unwrap();
        assert!(handshake.is_resumed && handshake.took.is_none());
    });
    let gone = NGINX.replace(r#""504""#, r#""499""#);
    said(LogKind::Nginx, &gone, |event| {
        let request = event.request.as_ref().unwrap();
        assert_eq!((request.status, request.failure), (None, Some(RequestFailure::ClientGone)));
    });
}

#[test]
fn failed_handshakes_of_nginx_come_from_its_error_log() {
    let line = "2026/11/23 13:00:00 [info] 12#12: *5 peer closed connection in SSL handshake (104: Connection reset by peer) while SSL handshaking, client: 10.0.0.9, server: 0.0.0.0:443";
    said(LogKind::Nginx, line, |event| {
        let failure = event.connection.as_ref().unwrap().failure.as_ref().unwrap();
        assert_eq!(failure.outcome, ConnectionOutcome::HandshakeEof);
        assert!(event.time_us.is_some(), "its own, so that the error log alone is enough");
        assert_eq!(
            event.client,
            records::ids::ClientId::from("10.0.0.9".parse::<std::net::IpAddr>().unwrap())
        );
    });
    let other = "2026/11/23 13:00:00 [notice] 12#12: using the \"epoll\" event method";
    assert_eq!(LogKind::Nginx.parser().parse(other.as_bytes(), |event| event.is_none()), Ok(true));
}

#[test]
fn the_combined_format_gives_requests_alone() {
    let line = r#"10.0.0.7 - anna [10/Oct/2026:13:55:36 -0700] "POST /a?b HTTP/2.0" 201 2326 "-" "curl""#;
    said(LogKind::Nginx, line, |event| {
        let request = event.request.as_ref().unwrap();
        assert_eq!((&*request.method, &*request.path, request.status), ("POST", "/a", Some(201)));
        assert_eq!(request.query.as_deref(), Some("b"));
        assert_eq!((request.took, request.body_out, event.bytes_out), (None, Some(2_326), 2_326));
        assert_eq!((event.time_us, event.connection.as_ref()), (Some(1_791_665_736_000_000), None));
    });
}

#[test]
fn failures_that_a_status_names_are_the_same_in_the_combined_format() {
    for (request, sent, status, failure) in [
        ("GET /slow HTTP/1.1", 499, None, RequestFailure::ClientGone),
        ("-", 408, Some(408), RequestFailure::HeadTimeout),
        (r"\x16\x03\x01", 400, Some(400), RequestFailure::Malformed),
    ] {
        let line = format!(r#"10.0.0.7 - - [10/Oct/2026:13:55:36 -0700] "{request}" {sent} 0 "-" "-""#);
        said(LogKind::Nginx, &line, |event| {
            let request = event.request.as_ref().unwrap();
            assert_eq!((request.status, request.failure), (status, Some(failure)), "{line}");
        });
    }
}

#[test]
fn a_connection_of_the_stream_module_is_one_line() {
    let line = |status, reused, connect| {
        format!(
            r#"{{"time":"1.5","client":"10.0.0.7","version":"TLSv1.2","cipher":"ECDHE-RSA-AES128-GCM-SHA256","group":"","reused":"{reused}","name":"","alpn":"","status":"{status}","in":"10","out":"20","took":"1.250","connect":"{connect}"}}"#
        )
    };
    said(LogKind::NginxStream, &line(200, ".", "0.003"), |event| {
        let connection = event.connection.as_ref().unwrap();
        assert!(connection.handshake.is_some() && connection.failure.is_none());
        assert_eq!(connection.connect, Some(Duration::from_millis(3)));
        assert_eq!(connection.lifetime, Some(Duration::from_millis(1_250)));
    });
    let failed = line(500, ".", "").replace("ECDHE-RSA-AES128-GCM-SHA256", "(NONE)");
    said(LogKind::NginxStream, &failed, |event| {
        let connection = event.connection.as_ref().unwrap();
        assert_eq!(connection.failure.as_ref().unwrap().outcome, ConnectionOutcome::HandshakeOther);
        assert_eq!(connection.handshake, None);
    });
    let of_tls13 = |session| {
        line(500, ".", "")
            .replace("TLSv1.2", "TLSv1.3")
            .replace(r#""group":"""#, &format!(r#""session":"{session}""#))
    };
    for (session, is_complete) in [("", false), ("ffae85607643b6ac", true)] {
        said(LogKind::NginxStream, &of_tls13(session), |event| {
            let connection = event.connection.as_ref().unwrap();
            assert_eq!(
                (connection.handshake.is_some(), connection.failure.is_none()),
                (is_complete, is_complete)
            );
        });
    }
    said(LogKind::NginxStream, &line(502, ".", "-"), |event| {
        let failure = event.connection.as_ref().unwrap().failure.as_ref().unwrap();
        assert_eq!(failure.outcome, ConnectionOutcome::UpstreamConnect);
    });
}

#[test]
fn cut_foreign_and_binary_lines_are_refused_and_no_more() {
    let mut parser = LogKind::Haproxy.parser();
    let cut = &HAPROXY_HTTP.as_bytes()[..100];
    assert!(matches!(parser.parse(cut, |_| ()), Err(BadLine::Json(_))));
    assert_eq!(parser.parse(b"hello", |_| ()), Err(BadLine::Unknown));
    let own = b"Proxy clients stopped (cumulated conns: FE: 23, BE: 0).";
    assert_eq!(parser.parse(own, |event| event.is_none()), Ok(true), "HAProxy says that of itself");
    let hostile = HAPROXY_HTTP.replace("127.0.0.1", "\u{1b}[2J");
    assert!(parser.parse(hostile.as_bytes(), |_| ()).is_err());
    let forged = HAPROXY_HTTP.replace(r#""took":"12""#, r#""took":"77000000000000""#);
    assert_eq!(
        parser.parse(forged.as_bytes(), |_| ()),
        Err(BadLine::Implausible("took")),
        "no request takes so long"
    );
    let binary =
        HAPROXY_HTTP.as_bytes().iter().map(|&b| if b == b'b' { 0xff } else { b }).collect::<Vec<_>>();
    assert_eq!(parser.parse(&binary, |event| event.unwrap().bytes_in), Ok(92), "a path need not be UTF-8");
    assert_eq!(parser.parse(b"\n", |event| event.is_none()), Ok(true));
}

/// What the connections of a log of stunnel are counted as. Its times are of syslog.
fn stunnel_counts(lines: &[&str]) -> Vec<String> {
    let mut parser = LogKind::Stunnel.parser();
    let mut counts = Vec::new();
    for line in lines {
        let outcome = parser.parse(line.as_bytes(), |event| {
            let connection = event?.connection.unwrap();
            let handshake =
                connection.handshake.map(|it| format!("{} {} {}", it.version, it.cipher, it.is_resumed));
            let failure = connection.failure.map(|it| it.outcome.to_string());
            let upstream = connection.has_upstream.then(|| "connected".to_owned());
            Some([handshake, failure, upstream].into_iter().flatten().collect::<Vec<_>>().join(", "))
        });
        counts.extend(outcome.unwrap_or_else(|why| Some(why.to_string())));
    }
    counts
}

const ACCEPTED: &str = "LOG5[0]: Service [web] accepted connection from 127.0.0.1:46722";
const TLS: &str = "LOG6[0]: TLS accepted: new session negotiated";
const SUITE: &str = "LOG6[0]: TLSv1.3 ciphersuite: TLS_AES_256_GCM_SHA384 (256-bit encryption)";
const REFUSED: &str = "LOG3[0]: s_connect: connect ::1:80: Connection refused (111)";
const CONNECTED: &str = "LOG5[0]: s_connect: connected 127.0.0.1:80";
const CLOSED: &str = "LOG5[0]: Connection closed: 0 byte(s) sent to TLS, 0 byte(s) sent to socket";

#[test]
fn a_connection_of_stunnel_counts_by_what_its_lines_say() {
    let done = "TLSv1.3 TLS_AES_256_GCM_SHA384 false";
    for (middle, counts) in [
        (&[TLS, SUITE, CONNECTED][..], format!("{done}, connected")),
        (&[TLS, SUITE, REFUSED], format!("{done}, {}", ConnectionOutcome::UpstreamConnect)),
        (&[TLS, SUITE, REFUSED, CONNECTED], format!("{done}, connected")),
        (
            &["LOG6[0]: ssl_start: s_poll_wait: TIMEOUTbusy exceeded: sending reset"],
            ConnectionOutcome::HandshakeTimeout.to_string(),
        ),
        (&["LOG3[0]: SSL_accept: Peer suddenly disconnected"], ConnectionOutcome::HandshakeEof.to_string()),
        (&[CONNECTED], "its version, which needs debug = info cannot be read".to_owned()),
        (
            &[
                "LOG6[0]: SSL accepted: previous session reused",
                "LOG6[0]: Negotiated TLSv1.2 ciphersuite ECDHE-RSA-AES256-GCM-SHA384 (256-bit encryption)",
            ],
            "TLSv1.2 ECDHE-RSA-AES256-GCM-SHA384 true, connected".to_owned(),
        ),
    ] {
        let lines = [&[ACCEPTED], middle, &[CLOSED]].concat();
        assert_eq!(stunnel_counts(&lines), [counts], "{middle:?}");
    }
}

#[test]
fn services_that_are_clients_count_nothing_and_servers_that_connect_first_do() {
    let connecting = "LOG6[0]: s_connect: connecting 127.0.0.1:80";
    for client in [
        "LOG6[0]: TLS connected: new session negotiated",
        "LOG6[0]: SNI: sending servername: a.example",
        "LOG3[0]: SSL_connect: error:0A000086:SSL routines::certificate verify failed",
        REFUSED,
    ] {
        assert_eq!(stunnel_counts(&[ACCEPTED, connecting, client, SUITE, CLOSED]), [""; 0], "{client}");
    }
    // A server of a protocol that begins without TLS, then one whose upstream is gone.
    let served = [ACCEPTED, connecting, CONNECTED, TLS, SUITE, CLOSED];
    let refused = [ACCEPTED, connecting, REFUSED, CLOSED];
    let counts = stunnel_counts(&[&served[..], &refused].concat());
    assert_eq!((counts.len(), &*counts[1]), (2, &*ConnectionOutcome::UpstreamConnect.to_string()));
}

#[test]
fn connections_of_stunnel_are_told_apart_by_their_ids() {
    let of = |id: &str| [ACCEPTED, TLS, SUITE, CLOSED].map(|line| line.replace("[0]", &format!("[{id}]")));
    let [a, b] = ["QZY8dGM0oEIWEm4n0XyiKv", "0aeOlFpuF0gmydzmdTXu0y"].map(of);
    let mixed: Vec<&str> = a.iter().zip(&b).flat_map(|(a, b)| [&**a, b]).collect();
    assert_eq!(stunnel_counts(&mixed).len(), 2, "logId = unique");
    let process = of("4711");
    let counts = stunnel_counts(&[&*process[0], &process[0], &process[1], &process[2], &process[3]]);
    assert!(counts.len() == 1 && counts[0].contains("logId = unique"), "logId = process: {counts:?}");
    let cut = of("1");
    let counts = stunnel_counts(&[&*cut[0], ACCEPTED, &cut[0], TLS, SUITE, CLOSED]);
    assert!(counts.len() == 1 && counts[0].starts_with("TLSv1.3"), "restarted: {counts:?}");
    // Threads write, so that the first connection may come behind the second; the one before the restart is cut.
    let begun = "LOG5[ui]: stunnel 5.68 on x86_64-pc-linux-gnu platform";
    let former = of("2");
    let second: Vec<_> = cut[1..].iter().map(|line| &**line).collect();
    let lines = [&former[0], begun, &cut[0], ACCEPTED, TLS, SUITE, CLOSED];
    let counts = stunnel_counts(&[&lines[..], &second, &[&former[3]]].concat());
    assert!(counts.len() == 2 && counts.iter().all(|count| count.starts_with("TLSv1.3")), "{counts:?}");
}

#[test]
fn lines_of_a_connection_of_stunnel_are_put_together() {
    let mut parser = LogKind::Stunnel.parser();
    let mut count = |line: &str| {
        parser
            .parse(line.as_bytes(), |event| {
                event.map(|event| {
                    let connection = event.connection.unwrap();
                    let handshake = connection
                        .handshake
                        .map(|it| format!("{} {} {} {}", it.version, it.cipher, it.group, it.is_resumed));
                    (
                        event.client.to_string(),
                        event.bytes_in,
                        event.bytes_out,
                        handshake,
                        connection.failure.map(|it| it.outcome),
                    )
                })
            })
            .expect(line)
    };
    for line in [
        "2026.11.23 22:02:41 LOG6[ui]: Accepting new connections",
        "2026.11.23 22:02:42 LOG5[0]: Service [web] accepted connection from 127.0.0.1:46722",
        "2026.11.23 22:02:42 LOG5[1]: Service [web] accepted connection from 127.0.0.9:46736",
        "2026.11.23 22:02:43 LOG6[0]: TLS accepted: previous session reused",
        "2026.11.23 22:02:43 LOG6[0]: TLSv1.3 ciphersuite: TLS_AES_256_GCM_SHA384 (256-bit encryption)",
        "2026.11.23 22:02:43 LOG6[0]: Peer temporary key: X25519, 253 bits",
        "2026.11.23 22:02:43 LOG3[1]: SSL_accept: ../ssl/record/ssl3_record.c:341: error:0A00009C:SSL routines::http request",
    ] {
        assert_eq!(count(line), None);
    }
    let closed =
        "2026.11.23 22:02:43 LOG5[0]: Connection closed: 43 byte(s) sent to TLS, 35 byte(s) sent to socket";
    let handshake = "TLSv1.3 TLS_AES_256_GCM_SHA384 X25519 true".to_owned();
    assert_eq!(count(closed), Some(("127.0.0.1".to_owned(), 35, 43, Some(handshake), None)));
    assert_eq!(count(closed), None, "it is over");
    // The form that journald has: its time is the journal's.
    let reset = "LOG5[1]: Connection reset: 0 byte(s) sent to TLS, 0 byte(s) sent to socket";
    let (client, .., handshake, failure) = count(reset).unwrap();
    assert_eq!((&*client, handshake, failure), ("127.0.0.9", None, Some(ConnectionOutcome::NotTls)));
}

#[test]
fn terminators_whose_logs_do_not_suffice_are_refused_with_the_reason() {
    let reason = |word: &str| word.parse::<LogKind>().unwrap_err().to_string();
    assert!(reason("hitch").contains("does not log versions"));
    assert!(reason("tlsdash").contains("tlsdash watch"));
}
