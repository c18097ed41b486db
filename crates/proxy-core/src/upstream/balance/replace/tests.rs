use std::io;
use std::sync::Arc;
use std::time::Duration;

use records::delta::UpstreamDeltas;
use records::kinds::UpstreamState::{self, Down, Gone, Up};

use super::*;
use crate::notices::NoticeLog;
use crate::upstream::balance::UpstreamChange;
use crate::upstream::balance::choice::{Balance, Candidates};

const SLOW_START: Duration = Duration::from_secs(10);

fn list(ports: &[&str]) -> Vec<Upstream> {
    ports.iter().map(|port| format!("127.0.0.1:{port}").parse().unwrap()).collect()
}

fn upstreams(ports: &[&str]) -> Upstreams {
    let all = Upstreams::new(1, Arc::new(NoticeLog::default())).balanced(Balance::default(), SLOW_START);
    replace(&all, &list(ports)).unwrap();
    all
}

fn replace(all: &Upstreams, list: &[Upstream]) -> Result<(), String> {
    let own = "127.0.0.1:443".parse().unwrap();
    let replaced = all.replace(&[list.to_vec()], &Resolver::default(), &[own], Instant::now());
    replaced.map_err(|error| error.to_string())
}

fn states(all: &Upstreams, now: Instant) -> Vec<(UpstreamState, Duration)> {
    let mut deltas = UpstreamDeltas::default();
    all.report(&mut deltas, now);
    let status = |delta: &records::delta::UpstreamDelta| delta.status.clone().unwrap();
    deltas.all().iter().map(status).map(|status| (status.state, status.age)).collect()
}

/// The upstreams of `n` connections that stay.
fn chosen(all: &Upstreams, n: usize, now: Instant) -> Vec<usize> {
    let candidates = Candidates::new(all.upstreams_of(0), None);
    (0..n).map(|turn| all.choose(candidates, turn, now).unwrap().index).collect()
}

#[test]
fn those_that_stay_keep_their_state_and_the_others_come_and_go() {
    let all = upstreams(&["1", "2"]);
    let now = Instant::now();
    all.failed(1, &io::ErrorKind::ConnectionRefused.into(), now);
    assert_eq!(chosen(&all, 2, now), [0, 0]);
    replace(&all, &list(&["2,weight=4", "3"])).unwrap();
    let later = now + Duration::from_secs(60);
    let [(a, gone_for), b, (c, _)] = states(&all, later)[..] else { panic!("three rows") };
    assert_eq!((a, b, c), (Gone, (Down, Duration::from_secs(60)), Up));
    assert!((59..61).contains(&gone_for.as_secs()), "{gone_for:?}");
    assert_eq!(chosen(&all, 3, now), [2, 2, 2], "what was down is down");
    all.succeeded(1, now);
    all.change("127.0.0.1:2", UpstreamChange::Drain).unwrap();
    let error = all.change("127.0.0.1:1", UpstreamChange::Drain).unwrap_err().to_string();
    assert_eq!(error, "there is no upstream 127.0.0.1:1; expected one of 127.0.0.1:2, 127.0.0.1:3");

    // It returns at its place, as a new one, and what is drained stays so.
    replace(&all, &list(&["3", "1", "2"])).unwrap();
    let [(a, returned_for), (b, _), (c, _)] = states(&all, Instant::now())[..] else { panic!("three rows") };
    assert_eq!((a, b, c), (Up, UpstreamState::Drained, Up));
    assert!(returned_for < Duration::from_secs(30));
    assert_eq!(all.len(), 3);
}

#[test]
fn new_weights_act_and_new_upstreams_begin_slowly() {
    let all = upstreams(&["1", "2"]);
    let share = |chosen: &[usize], index| chosen.iter().filter(|&&other| other == index).count();
    replace(&all, &list(&["1,weight=3", "2"])).unwrap();
    let now = Instant::now();
    assert_eq!(share(&chosen(&all, 40, now), 0), 30);
    replace(&all, &list(&["2", "3"])).unwrap();
    let begun = Instant::now();
    assert!(
        share(&chosen(&all, 20, begun), 2) <= 2,
        "a hundredth of its share, and the connections of the other"
    );
    let filled = chosen(&all, 200, begun + SLOW_START);
    assert!((95..=120).contains(&share(&filled, 2)), "{}", share(&filled, 2));
}

#[test]
fn connections_count_also_if_there_was_a_single_upstream_when_they_began() {
    let all = upstreams(&["1"]);
    let now = Instant::now();
    let candidates = Candidates::new(1, None);
    let alone = all.choose(candidates, 0, now).unwrap();
    replace(&all, &list(&["1", "2"])).unwrap();
    let counted = all.choose(candidates, 0, now).unwrap();
    all.leave(alone);
    all.leave(counted);
    let later = now + SLOW_START * 2;
    let mut chosen = chosen(&all, 4, later);
    chosen.sort_unstable();
    assert_eq!(chosen, [0, 0, 1, 1], "neither has connections");
}

#[test]
fn turns_are_fair_between_gaps() {
    let all = upstreams(&["1", "2", "3", "4", "5"]);
    replace(&all, &list(&["1", "5"])).unwrap();
    let candidates = Candidates::new(all.upstreams_of(0), None);
    let turns = [0, 1, 2, 3].map(|turn| {
        let choice = all.choose(candidates, turn, Instant::now()).unwrap();
        all.leave(choice);
        choice.index
    });
    assert_eq!(turns, [0, 4, 0, 4]);
}

#[test]
fn a_refused_list_changes_nothing() {
    let all = upstreams(&["1", "2"]);
    let now = Instant::now();
    let before = (all.upstreams_of(0), states(&all, now));
    let many: Vec<Upstream> = (1..=65).map(|port| format!("127.0.0.1:{port}").parse().unwrap()).collect();
    for (list, reason) in [
        (Vec::new(), "0 upstreams were given; expected 1 to 64"),
        (many[..].to_vec(), "65 upstreams were given"),
        (list(&["3", "3,weight=2"]), "127.0.0.1:3: it is given twice, or with two weights"),
        (list(&["3", "443"]), "the upstream 127.0.0.1:443 is where the proxy itself listens"),
        (
            vec!["no-such-host.invalid:80".parse().unwrap()],
            "cannot resolve the upstream no-such-host.invalid:80",
        ),
    ] {
        let error = replace(&all, &list).unwrap_err();
        assert!(error.contains(reason), "{error}");
        assert_eq!((all.upstreams_of(0), states(&all, now)), before, "{reason}");
    }
}

#[test]
fn ten_thousand_lists_have_as_many_rows_as_names() {
    let all = upstreams(&["1", "2"]);
    for n in 0..10_000 {
        let ports = [["2", "3"], ["1", "2"], ["3", "4"]][n % 3];
        replace(&all, &list(&ports)).unwrap();
    }
    assert_eq!(all.len(), 4);
    for port in 5..=64 {
        replace(&all, &list(&[&port.to_string()])).unwrap();
    }
    let error = replace(&all, &list(&["65"])).unwrap_err();
    assert!(error.contains("a run has at most 64 upstreams, and has had 64 already"), "{error}");
    assert_eq!(states(&all, Instant::now()).len(), 64);
    replace(&all, &list(&["1", "64"])).unwrap();
    assert_eq!(all.upstreams_of(0), 1 | 1 << 63);
}

#[test]
fn what_was_looked_up_is_answered_from_memory() {
    let calls = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let resolver = Resolver::new(move |_, port| {
        counted.fetch_add(1, Ordering::Relaxed);
        if port == 1 {
            Ok(vec![([127, 0, 0, 9], port).into()])
        } else {
            Err(io::Error::other("no such host"))
        }
    });
    let names: Vec<Upstream> = ["app:1", "app:2", "127.0.0.1:3"].map(|text| text.parse().unwrap()).to_vec();
    let known = resolver.looked_up(names.iter().filter_map(Upstream::name));
    assert_eq!(calls.load(Ordering::Relaxed), 2, "an address is none");
    assert_eq!(known.resolve("app", 1).unwrap(), ["127.0.0.9:1".parse().unwrap()]);
    assert_eq!(known.resolve("app", 2).unwrap_err().to_string(), "no such host");
    assert_eq!(known.resolve("127.0.0.1", 3).unwrap(), ["127.0.0.1:3".parse().unwrap()]);
    assert_eq!(known.resolve("other", 4).unwrap_err().to_string(), "it has not been looked up");
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}
