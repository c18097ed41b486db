//! Scripts: each request at its time, over the connection of its client.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use loadgen::{ClientProfile, Lane, LaneKind, LoadConfig, Script, ScriptClient, ScriptRequest, Template};
use records::metrics::LoadCounter as C;
use records::setting::Value;

use crate::support::{ServerAction, TestServer, TlsVersion, config, run};

fn connection(client: u32, resumes: Option<bool>) -> Lane {
    Lane { client, kind: LaneKind::Connection { resumes } }
}

/// Requests of a millisecond, a template and a lane each.
fn script(lanes: &[Lane], requests: &[(u64, u32, u32)]) -> Script {
    let request =
        |&(ms, template, lane): &(u64, u32, u32)| ScriptRequest { after_us: ms * 1_000, template, lane };
    Script {
        name: "access.log".to_owned(),
        requests: requests.iter().map(request).collect(),
        lanes: lanes.to_vec(),
        clients: (0..=lanes.iter().map(|lane| lane.client).max().unwrap())
            .map(|client| ScriptClient { source: client, profile: 0 })
            .collect(),
        profiles: vec![ClientProfile::default()],
        period: Duration::from_millis(400),
    }
}

fn scripted(server: &TestServer, plan: &str, script: Script) -> LoadConfig {
    let requests = ["/a", "/b", "/slow"].map(Template::get).into();
    LoadConfig { requests, script: Some(Arc::new(script)), ..config(server, plan) }
}

#[test]
fn each_request_goes_at_its_time_over_the_connection_of_its_lane() {
    // The second connection of the first client resumes, its third does not; the other client needs two at a time.
    let lanes = [
        connection(0, Some(true)),
        connection(0, Some(true)),
        connection(0, Some(false)),
        Lane { client: 1, kind: LaneKind::Pool },
    ];
    let requests =
        [(0, 0, 0), (10, 2, 3), (50, 1, 3), (100, 1, 0), (200, 0, 1), (250, 1, 2), (300, 1, 3), (300, 0, 2)];
    for threads in [1, 2] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let arrivals = Arc::clone(&seen);
        let server = TestServer::tls(TlsVersion::V13, move |exchange| {
            arrivals.lock().unwrap().push((exchange.path.clone(), Instant::now()));
            match &*exchange.path {
                "/slow" => ServerAction::AnswerSlowly(
                    b"HTTP/1.1 200 OK\r\nContent-Le".into(),
                    Duration::from_millis(120),
                    b"ngth: 0\r\n\r\n".into(),
                ),
                _ => ServerAction::ok(1),
            }
        });
        let plan =
            format!("rate=20,requests=16,connections=4,resume=0%,source-addresses=2,threads={threads}");
        let begin = Instant::now();
        let (all, load) = run(scripted(&server, &plan, script(&lanes, &requests)));
        let counts = &all.counters;
        assert_eq!((counts[C::Scheduled], counts[C::Ok], counts[C::NeverSent]), (16, 16, 0), "{counts:?}");
        let by_address = server.seen_by_address();
        let of = |last: u8| by_address[&[127, 0, 0, last].into()];
        // The first connection of the first round finds no session yet.
        assert_eq!((of(2).requests, of(2).full, of(2).resumed), (10, 3, 3));
        assert_eq!((of(3).requests, of(3).connections), (6, 2), "two connections are kept for both rounds");
        let seen = seen.lock().unwrap();
        let places = [0_u64, 1].into_iter().flat_map(|round| requests.map(|(ms, ..)| round * 400 + ms));
        let mut times: Vec<_> =
            seen.iter().map(|(_, at)| at.duration_since(begin).as_millis() as u64).collect();
        times.sort_unstable();
        let early = times.iter().zip(places).find(|(at, place)| **at + 1 < *place);
        assert_eq!(early, None, "{times:?}");
        assert_eq!(load.measured().scheduled, Duration::from_millis(800));
    }
}

#[test]
fn a_status_that_is_expected_is_no_failure() {
    let server =
        TestServer::plain(|_| ServerAction::Answer(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n".into()));
    let base =
        scripted(&server, "rate=10,requests=2", script(&[connection(0, None)], &[(0, 0, 0), (1, 1, 0)]));
    let mut requests = base.requests.clone();
    requests[0].expect_status = Some(404);
    let (all, _) = run(LoadConfig { requests, ..base });
    let counts = &all.counters;
    assert_eq!((counts[C::Ok], counts[C::FailedStatus], counts[C::Status4xx]), (1, 1, 2), "{counts:?}");
}

#[test]
fn a_script_that_contradicts_itself_is_refused() {
    let server = TestServer::plain(|_| ServerAction::ok(1));
    let lane = connection(0, None);
    let good = script(&[lane], &[(0, 0, 0)]);
    let cases: [(&str, Script); 7] = [
        ("no request", Script { requests: Vec::new(), ..good.clone() }),
        ("order", script(&[lane], &[(1, 0, 0), (0, 0, 0)])),
        ("template", script(&[lane], &[(0, 9, 0)])),
        ("lane", script(&[lane], &[(0, 0, 1)])),
        ("client", Script { clients: Vec::new(), ..good.clone() }),
        ("profile", Script { profiles: Vec::new(), ..good.clone() }),
        ("too long", script(&[lane], &[(401, 0, 0)])),
    ];
    for (reason, script) in cases {
        let error = loadgen::Load::start(scripted(&server, "rate=1,requests=1", script)).unwrap_err();
        assert!(error.is_wrong_option() && error.to_string().contains(reason), "{reason}: {error}");
    }
    let load =
        loadgen::Load::start(LoadConfig { paused: true, ..scripted(&server, "rate=1,requests=1", good) })
            .unwrap();
    for name in ["load.rate", "load.connections"] {
        let refused = load.set(name, &Value::Number(7.0)).unwrap_err().to_string();
        assert!(refused.contains("--speed"), "{refused}");
    }
}
