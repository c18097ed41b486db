use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::notices::NoticeLog;
use crate::upstream::balance::UpstreamChange;
use crate::upstream::names::resolver::Resolver;
use crate::upstream::target::Upstream;

/// Upstreams of these weights that begin slowly, in 10 s.
fn weighted(weights: &[u16]) -> Upstreams {
    let upstream = |(at, weight): (usize, &u16)| -> Upstream {
        format!("127.0.0.1:{},weight={weight}", at + 1).parse().unwrap()
    };
    let members: Vec<_> = weights.iter().enumerate().map(upstream).collect();
    let upstreams = Upstreams::resolve(&members, &Resolver::default(), Arc::new(NoticeLog::default()));
    upstreams.unwrap().balanced(Balance::default(), Duration::from_secs(10))
}

/// How many of `n` connections that stay each upstream gets.
fn spread<const N: usize>(upstreams: &Upstreams, n: usize, now: Instant) -> [usize; N] {
    let mut counts = [0; N];
    for turn in 0..n {
        counts
            [upstreams.choose(Candidates::new(upstreams.upstreams_of(0), None), turn, now).unwrap().index] +=
            1;
    }
    counts
}

/// The upstream of each of 10,000 keys.
fn owners(upstreams: &Upstreams, tried: u64, now: Instant) -> Vec<usize> {
    let choose = |key: u64| {
        let key = Some(FixedState::default().hash_one(key));
        upstreams
            .choose(Candidates { tried, ..Candidates::new(upstreams.upstreams_of(0), key) }, 0, now)
            .unwrap()
            .index
    };
    (0..10_000).map(choose).collect()
}

fn owned(owners: &[usize], index: usize) -> usize {
    owners.iter().filter(|&&owner| owner == index).count()
}

#[test]
fn connections_are_spread_by_weight() {
    let now = Instant::now();
    assert_eq!(spread(&weighted(&[3, 1]), 400, now), [300, 100]);
    assert_eq!(spread(&weighted(&[256, 1, 1]), 258, now), [256, 1, 1]);
    assert_eq!(spread(&weighted(&[5, 5]), 100, now), [50, 50]);
}

/// How many of 200 connections each of two upstreams gets, while `held` are open at a time.
fn passing(upstreams: &Upstreams, held: usize, now: Instant) -> [usize; 2] {
    let (mut counts, mut open) = ([0; 2], std::collections::VecDeque::new());
    for turn in 0..200 {
        if open.len() == held {
            upstreams.leave(open.pop_front().unwrap());
        }
        let choice = upstreams.choose(Candidates::new(0b11, None), turn, now).unwrap();
        counts[choice.index] += 1;
        open.push_back(choice);
    }
    for choice in open {
        upstreams.leave(choice);
    }
    counts
}

#[test]
fn a_few_connections_at_a_time_are_spread_by_weight_too() {
    let now = Instant::now();
    for held in 1..=6 {
        for (weights, expected) in [([3, 1], 150), ([1, 2], 67), ([7, 7], 100), ([199, 1], 199)] {
            let [count, _] = passing(&weighted(&weights), held, now);
            assert!(count.abs_diff(expected) <= 3, "{weights:?}, {held} at a time: {count}");
        }
    }
}

#[test]
fn an_upstream_that_is_back_makes_up_for_nothing() {
    let upstreams = weighted(&[1, 1]);
    let now = Instant::now();
    upstreams.change("127.0.0.1:2", UpstreamChange::Drain).unwrap();
    upstreams.member(0).connections.given.store(1 << 40, Ordering::Relaxed);
    assert_eq!(passing(&upstreams, 1, now), [200, 0]);
    upstreams.change("127.0.0.1:2", UpstreamChange::Return).unwrap();
    upstreams.member(1).share.slow_until_ms.store(0, Ordering::Relaxed);
    let [count, _] = passing(&upstreams, 1, now);
    assert!((99..=101).contains(&count), "{count}");
}

#[test]
fn an_upstream_that_is_back_gets_its_share_by_and_by() {
    let upstreams = weighted(&[1, 1]);
    let now = upstreams.epoch;
    let at = |s| now + Duration::from_secs(s);
    upstreams.failed(1, &std::io::ErrorKind::ConnectionRefused.into(), now);
    assert_eq!(spread(&upstreams, 80, now), [80, 0]);
    upstreams.succeeded(1, at(1));
    let filled_at = |s| {
        let added: [usize; 2] = spread(&upstreams, 40, at(s));
        added[1]
    };
    assert_eq!(filled_at(1), 1, "a hundredth");
    assert_eq!(filled_at(6), 40);
    assert_eq!(filled_at(6), 25, "it has 66 of 200 then: half as many as the other");
    assert_eq!(filled_at(11), 40, "its whole share");
    assert_eq!(upstreams.member(1).share.slow_until_ms.load(Ordering::Relaxed), 0);
}

#[test]
fn a_returned_upstream_and_one_whose_checks_pass_again_begin_slowly_too() {
    let upstreams = weighted(&[1, 1]);
    let now = Instant::now();
    upstreams.change("127.0.0.1:1", UpstreamChange::Drain).unwrap();
    upstreams.change("127.0.0.1:1", UpstreamChange::Return).unwrap();
    upstreams.failed_checks(1, &std::io::ErrorKind::TimedOut.into(), now);
    upstreams.passed_checks(1, now);
    let is_slow = |index: usize| upstreams.member(index).share.slow_until_ms.load(Ordering::Relaxed) > 0;
    assert!(is_slow(0) && is_slow(1));
    assert!(upstreams.choose(Candidates::new(0b10, None), 0, now).unwrap().is_up, "if there is no other");
}

#[test]
fn keys_are_spread_by_weight_and_only_those_of_a_lost_upstream_move() {
    let upstreams = weighted(&[2, 1, 1]);
    let now = Instant::now();
    let before = owners(&upstreams, 0, now);
    assert!((4_800..5_200).contains(&owned(&before, 0)), "{}", owned(&before, 0));
    assert!((2_350..2_650).contains(&owned(&before, 1)), "{}", owned(&before, 1));
    assert_eq!(owners(&upstreams, 0, now), before, "connections do not matter");
    for index in 0..3 {
        let after = owners(&upstreams, 1 << index, now);
        let moved = before.iter().zip(&after).filter(|(before, after)| before != after);
        assert_eq!(moved.count(), owned(&before, index));
        assert_eq!(owned(&after, index), 0);
    }
    upstreams.failed(1, &std::io::ErrorKind::ConnectionRefused.into(), now);
    assert_eq!(owned(&owners(&upstreams, 0, now), 1), 0);
}

#[test]
fn a_key_is_that_of_a_subscriber_or_of_a_field() {
    let ip = |text: &str| ClientId::from(text.parse::<IpAddr>().unwrap());
    let by_client = |client| Balance::HashClient.key(client, |_| None);
    assert_eq!(by_client(ip("2001:db8::1")), by_client(ip("2001:db8::2")));
    assert_ne!(by_client(ip("10.0.0.1")), by_client(ip("10.0.0.2")));
    assert_eq!(by_client(ClientId::Other), None);
    let client = ClientId::from(IpAddr::from(Ipv4Addr::LOCALHOST));
    assert_eq!(Balance::LeastConnections.key(client, |_| Some(b"x")), None);
    let by_field = |value| {
        "hash-header:X-User".parse::<Balance>().unwrap().key(client, |name| {
            assert_eq!(name, "x-user");
            value
        })
    };
    assert_eq!(by_field(Some(b"a".as_slice())), by_field(Some(b"a")));
    assert_ne!(by_field(Some(b"a".as_slice())), by_field(Some(b"b")));
    assert_eq!(by_field(None), None, "the fewest connections");
}

#[test]
fn a_way_to_balance_reads_back_and_a_malformed_one_is_refused() {
    for text in ["least-connections", "hash-client", "hash-header:x-user"] {
        assert_eq!(text.parse::<Balance>().unwrap().to_string(), text);
    }
    for text in [
        "",
        "hash-header",
        "hash-header:",
        "hash-header:a b",
        "hash-header:Host",
        "hash-header:cookie",
        "leastconn",
    ] {
        let error = text.parse::<Balance>().unwrap_err().to_string();
        assert!(error.contains("expected least-connections, hash-client or hash-header:NAME"), "{error}");
    }
}
