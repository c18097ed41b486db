use proptest::prelude::*;

use super::*;

fn plan(text: &str) -> Plan {
    text.parse().unwrap()
}

fn rate(per_second: f64) -> Option<Profile> {
    Rate::per_second(per_second).map(Profile::constant)
}

#[test]
fn every_key_of_a_plan_is_parsed() {
    let all = "rate=500,arrivals=poisson,connections=64,http2=on,streams=32,resume=80%,early-data=on,keep-alive=10,lifetime=3s,source-addresses=16,duration=10s,warmup=1s,requests=1000,threads=2";
    let expected = Plan {
        rate: rate(500.0),
        arrivals: Arrivals::Poisson,
        protocol: Protocol::Http2 { streams: 32 },
        connections: 64,
        resume: Share::percent(80.0).unwrap(),
        early_data: true,
        keepalive: KeepAlive::Requests(10),
        lifetime: Some(Duration::from_secs(3)),
        sources: Some(16),
        duration: Some(Duration::from_secs(10)),
        warmup: Some(Duration::from_secs(1)),
        requests: Some(1_000),
        threads: 2,
    };
    assert_eq!(plan(all), expected);
    assert_eq!(
        plan(
            " rate = 500 ,arrivals=poisson, connections=64,streams=32,http2=on,resume=80,early-data=on,keep-alive=10,lifetime=3s,source-addresses=16,duration=10000ms,warmup=1000ms,requests=1000,threads=2,"
        ),
        expected
    );
}

#[test]
fn omitted_keys_keep_their_defaults() {
    assert_eq!(plan(""), Plan::default());
    assert_eq!(plan("").rate, None, "no rate is a closed loop");
}

#[test]
fn values_have_several_spellings() {
    assert_eq!(plan("keep-alive=off").keepalive, KeepAlive::Requests(1));
    assert_eq!(plan("keep-alive=1").keepalive, KeepAlive::Requests(1));
    assert_eq!(plan("keep-alive=unlimited").keepalive, KeepAlive::Unlimited);
    assert_eq!(plan("duration=1.5m").duration, Some(Duration::from_secs(90)));
    assert_eq!(plan("duration=2").duration, Some(Duration::from_secs(2)));
    assert_eq!((plan("rate=0.5").rate, plan("rate=5/s").rate), (rate(0.5), rate(5.0)));
    assert_eq!(plan("rate=10/s..20/s/5+7/s").rate, plan("rate=10..20/5s+7").rate);
    assert_eq!(plan("rate=10..20/5s").length(), Some(Duration::from_secs(5)));
}

#[test]
fn unknown_keys_are_refused_with_the_known_ones() {
    for (text, name) in [
        ("rate=0", "rate"),
        ("rate=-5", "rate"),
        ("rate=1e9", "rate"),
        ("rate=inf", "rate"),
        ("rate=99999999999", "rate"),
        ("rate=0.0001", "rate"),
        ("rate=10..20", "rate"),
        ("rate=/s", "rate"),
        ("rate=10/5/s", "rate"),
        ("rate=10+20/5s", "rate"),
        ("arrivals=odd", "arrivals"),
        ("warmup=0", "warmup"),
        ("lifetime=soon", "lifetime"),
        ("connections=0", "connections"),
        ("connections=1.5", "connections"),
        ("connections=100001", "connections"),
        ("resume=101%", "resume"),
        ("resume=0.8", "resume"),
        ("resume=1", "resume"),
        ("resume=-1%", "resume"),
        ("resume=some", "resume"),
        ("early-data=yes", "early-data"),
        ("keep-alive=0", "keep-alive"),
        ("keep-alive=maybe", "keep-alive"),
        ("http2=yes", "http2"),
        ("streams=0", "streams"),
        ("streams=10001", "streams"),
        ("source-addresses=0", "source-addresses"),
        ("source-addresses=65534", "source-addresses"),
        ("duration=0", "duration"),
        ("duration=0s", "duration"),
        ("duration=10x", "duration"),
        ("duration=s", "duration"),
        ("duration=9999999h", "duration"),
        ("duration=99999999999999999999h", "duration"),
        ("requests=0", "requests"),
        ("requests=many", "requests"),
        ("threads=0", "threads"),
        ("threads=257", "threads"),
    ] {
        let error = text.parse::<Plan>().unwrap_err();
        assert!(matches!(&error, PlanError::Value { name: found, .. } if *found == name), "{text}: {error}");
        assert!(
            error.to_string().starts_with(&format!("{text} in the load plan: {name} must be ")),
            "{error}"
        );
    }
}

#[test]
fn contradictory_keys_are_refused() {
    assert_eq!("fast".parse::<Plan>(), Err(PlanError::NotAPair("fast".into())));
    assert_eq!("speed=5".parse::<Plan>(), Err(PlanError::UnknownName("speed".into())));
    assert_eq!("rate=5,rate=6".parse::<Plan>(), Err(PlanError::Twice("rate".into())));
    assert_eq!(
        "threads=4,connections=3".parse::<Plan>(),
        Err(PlanError::IdleThreads { threads: 4, connections: 3 })
    );
    for text in ["streams=2", "http2=off,streams=2", "streams=2,http2=off"] {
        assert_eq!(text.parse::<Plan>(), Err(PlanError::StreamsWithoutHttp2("2".into())), "{text}");
    }
    assert_eq!(plan("http2=on").protocol, Protocol::Http2 { streams: 1 });
    assert_eq!(plan("http2=off").protocol, Protocol::Http1);
    assert_eq!("early-data=on".parse::<Plan>(), Err(PlanError::EarlyDataWithoutResumption));
    assert_eq!("arrivals=poisson".parse::<Plan>(), Err(PlanError::ArrivalsWithoutRate));
    let only = "duration=5s,warmup=5s".parse::<Plan>().unwrap_err().to_string();
    assert!(only.contains("warmup=5s") && only.contains("duration is 5s"), "{only}");
    let escape = "\u{1b}[2J=1".parse::<Plan>().unwrap_err().to_string();
    assert!(!escape.contains('\u{1b}'), "{escape:?}");
}

fn plans() -> impl Strategy<Value = Plan> {
    let duration = prop_oneof![
        (1_u64..=31_536_000).prop_map(Duration::from_secs),
        (1_u64..10_000_000).prop_map(Duration::from_millis),
        (1_u64..u64::from(u32::MAX)).prop_map(Duration::from_nanos),
    ];
    (
        proptest::option::of((1_u64..=10_000_000_000, any::<bool>()).prop_map(|(milli, poisson)| {
            let rate = Rate::per_second(milli as f64 / 1e3).unwrap();
            (Profile::constant(rate), if poisson { Arrivals::Poisson } else { Arrivals::Even })
        })),
        (1..=CONNECTIONS_MAX, proptest::option::of(1..=STREAMS_MAX)),
        (0..=Share::WHOLE).prop_map(|parts| Share { parts }),
        prop_oneof![Just(KeepAlive::Unlimited), (1..=u32::MAX).prop_map(KeepAlive::Requests)],
        proptest::option::of(1..=SOURCES_MAX),
        proptest::option::of((duration, any::<bool>())),
        proptest::option::of(1_u64..),
        1..=THREADS_MAX,
    )
        .prop_map(
            |(rate, (connections, streams), resume, keepalive, sources, duration, requests, threads)| Plan {
                arrivals: rate.as_ref().map_or(Arrivals::Even, |(_, arrivals)| *arrivals),
                rate: rate.map(|(rate, _)| rate),
                protocol: streams.map_or(Protocol::Http1, |streams| Protocol::Http2 { streams }),
                connections,
                early_data: resume > Share::percent(50.0).unwrap(),
                resume,
                keepalive,
                lifetime: duration.map(|(duration, _)| duration),
                sources,
                warmup: duration
                    .and_then(|(duration, warm)| warm.then_some(duration / 2))
                    .filter(|w| !w.is_zero()),
                duration: duration.map(|(duration, _)| duration),
                requests,
                threads: threads.min(connections),
            },
        )
}

proptest! {
    #[test]
    fn a_plan_reads_back_as_it_is_written(plan in plans()) {
        prop_assert_eq!(plan.to_string().parse::<Plan>(), Ok(plan));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*") {
        let _ = text.parse::<Plan>();
        let _ = format!("rate={text},duration={text}").parse::<Plan>();
    }
}
