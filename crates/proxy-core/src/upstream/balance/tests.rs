use super::*;
use crate::upstream::balance::choice::Candidates;
use crate::upstream::balance::health::{BACK_OFF_MAX, back_off};
use crate::upstream::names::resolver::Resolver;
use rustix::io::Errno;
use std::time::Duration;

fn upstreams(n: u16) -> (Upstreams, Arc<NoticeLog>) {
    let notices = Arc::new(NoticeLog::default());
    let members: Vec<Upstream> = (1..=n).map(|port| format!("127.0.0.1:{port}").parse().unwrap()).collect();
    (Upstreams::resolve(&members, &Resolver::default(), Arc::clone(&notices)).unwrap(), notices)
}

fn refused() -> io::Error {
    Errno::CONNREFUSED.into()
}

fn untried(upstreams: &Upstreams, tried: u64) -> Candidates {
    Candidates { upstreams: upstreams.upstreams_of(0), tried, key: None }
}

fn chosen(upstreams: &Upstreams, tried: u64, turn: usize, now: Instant) -> (usize, bool) {
    let choice = upstreams.choose(untried(upstreams, tried), turn, now).unwrap();
    (choice.index, choice.is_up)
}

#[test]
fn the_upstream_with_the_fewest_connections_is_chosen_in_turns() {
    let (upstreams, _) = upstreams(3);
    let now = Instant::now();
    let turns = [0, 1, 2, 3, 4, 5].map(|turn| upstreams.choose(untried(&upstreams, 0), turn, now).unwrap());
    assert_eq!(turns.map(|choice| choice.index), [0, 1, 2, 0, 1, 2]);
    upstreams.leave(turns[2]);
    assert_eq!(chosen(&upstreams, 0, 0, now), (2, true));
    assert_eq!(chosen(&upstreams, 0b101, 0, now), (1, true));
    assert_eq!(upstreams.choose(untried(&upstreams, 0b111), 0, now), None);
}

#[test]
fn a_failed_upstream_rests_ever_longer_and_one_connection_tries_it() {
    let (upstreams, notices) = upstreams(2);
    let mut now = Instant::now();
    for expected_ms in [100, 200, 400, 800] {
        upstreams.failed(0, &refused(), now);
        now += Duration::from_millis(expected_ms - 1);
        assert_eq!(chosen(&upstreams, 0, 0, now), (1, true), "{expected_ms} ms");
        now += Duration::from_millis(1);
        let due = upstreams.choose(untried(&upstreams, 0), 0, now).unwrap();
        assert_eq!((due.index, due.is_up), (0, true), "{expected_ms} ms");
        assert_eq!(chosen(&upstreams, 0, 0, now), (1, true), "a second one does not try it");
        upstreams.leave(due);
    }
    assert_eq!(back_off(3000), BACK_OFF_MAX);
    upstreams.succeeded(0, now);
    assert_eq!(chosen(&upstreams, 0, 0, now), (0, true));
    let said: Vec<_> = notices.take(now).into_iter().map(|notice| notice.text).collect();
    assert_eq!(said.len(), 2, "once an episode: {said:?}");
    assert!(said[0].contains("127.0.0.1:1 cannot be reached") && said[1].contains("again"), "{said:?}");
}

#[test]
fn the_state_of_an_upstream_is_reported_with_its_age_and_its_reason() {
    let (upstreams, _) = upstreams(2);
    let status = |now| {
        let mut deltas = UpstreamDeltas::default();
        upstreams.report(&mut deltas, now);
        deltas.all().iter().map(|delta| delta.status.clone().unwrap()).collect::<Vec<_>>()
    };
    let epoch = upstreams.member(0).changed().at;
    let at = |s| epoch + Duration::from_secs(s);
    upstreams.failed(1, &refused(), at(2));
    upstreams.failed(1, &Errno::HOSTUNREACH.into(), at(4));
    let [up, down] = &status(at(5))[..] else { panic!() };
    assert_eq!((up.state, up.age, &*up.reason), (UpstreamState::Up, Duration::from_secs(5), ""));
    assert_eq!((down.state, down.age), (UpstreamState::Down, Duration::from_secs(3)));
    assert!(down.reason.contains("refused"), "the failure that it began with: {}", down.reason);
    upstreams.succeeded(1, at(6));
    let back = &status(at(7))[1];
    assert_eq!((back.state, back.age, &*back.reason), (UpstreamState::Up, Duration::from_secs(1), ""));
}

#[test]
fn upstreams_are_tried_even_if_all_are_down() {
    let (upstreams, _) = upstreams(2);
    let now = Instant::now();
    upstreams.failed(1, &refused(), now);
    upstreams.failed(0, &refused(), now + Duration::from_millis(50));
    assert_eq!(upstreams.up(untried(&upstreams, 0), now), 0);
    assert_eq!(chosen(&upstreams, 0, 0, now), (1, false), "the one that is due first");
    assert_eq!(chosen(&upstreams, 0b10, 0, now), (0, false));
}

#[test]
fn a_drained_upstream_gets_no_connection_until_it_returns() {
    let (upstreams, _) = upstreams(2);
    let now = Instant::now();
    assert_eq!(upstreams.change("127.0.0.1:1", UpstreamChange::Drain), Ok(true));
    assert_eq!(upstreams.change("127.0.0.1:1", UpstreamChange::Drain), Ok(false));
    assert_eq!([0, 1, 2].map(|turn| chosen(&upstreams, 0, turn, now).0), [1, 1, 1]);
    assert_eq!(upstreams.up(untried(&upstreams, 0), now), 1);
    // Not even if all others are down.
    upstreams.failed(1, &refused(), now);
    assert_eq!(chosen(&upstreams, 0, 0, now), (1, false));
    assert_eq!(upstreams.choose(untried(&upstreams, 0b10), 0, now), None);
    assert_eq!(upstreams.change("127.0.0.1:1", UpstreamChange::Return), Ok(true));
    assert_eq!(chosen(&upstreams, 0, 0, now), (0, true));
    let error = upstreams.change("app", UpstreamChange::Drain).unwrap_err().to_string();
    assert_eq!(error, "there is no upstream app; expected one of 127.0.0.1:1, 127.0.0.1:2");
}

#[test]
fn a_local_shortage_is_not_a_failure_of_the_upstream() {
    let (upstreams, notices) = upstreams(2);
    let now = Instant::now();
    for errno in [Errno::MFILE, Errno::ADDRNOTAVAIL, Errno::AGAIN] {
        upstreams.failed(0, &errno.into(), now);
    }
    assert_eq!(upstreams.up(untried(&upstreams, 0), now), 2);
    let said = notices.take(now);
    assert!(said.len() == 1 && said[0].topic == "descriptors", "{said:?}");
}

#[test]
fn checks_count_while_at_least_half_of_a_destination_is_up() {
    let (upstreams, notices) = upstreams(4);
    let now = Instant::now();
    let late = io::Error::from(io::ErrorKind::TimedOut);
    let chosen_of = |among: u64| -> Vec<_> {
        let choose = |turn| upstreams.choose(Candidates::new(among, None), turn, now).unwrap();
        let chosen: Vec<_> = (0..8).map(choose).collect();
        for choice in &chosen {
            upstreams.leave(*choice);
        }
        assert!(chosen.iter().all(|choice| choice.is_up));
        let mut indices: Vec<_> = chosen.into_iter().map(|choice| choice.index).collect();
        indices.sort_unstable();
        indices.dedup();
        indices
    };
    upstreams.failed_checks(0, &late, now);
    upstreams.failed_checks(1, &late, now);
    assert_eq!(chosen_of(0b1111), [2, 3]);
    notices.take(now);
    // One of three is up, and none of two.
    assert_eq!(chosen_of(0b111), [0, 1, 2]);
    assert_eq!(chosen_of(0b11), [0, 1]);
    assert_eq!(chosen_of(0b1), [0], "the only one");
    let texts = |at| notices.take(at).into_iter().map(|notice| notice.text).collect::<Vec<_>>();
    let expected = "1 of the upstreams 127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3 are up, fewer than half: \
                    the checks of the others are ignored";
    assert_eq!(texts(now), [expected]);
    assert_eq!(texts(now + Duration::from_secs(10)), ["connections find enough upstreams up again"]);
    // A drained one is none of them.
    upstreams.change("127.0.0.1:2", UpstreamChange::Drain).unwrap();
    assert_eq!(chosen_of(0b111), [2]);
}

#[test]
fn it_is_said_once_that_all_upstreams_are_down() {
    let (upstreams, notices) = upstreams(2);
    let now = Instant::now();
    upstreams.failed(0, &refused(), now);
    upstreams.failed(1, &refused(), now);
    notices.take(now);
    for _ in 0..9 {
        assert!(!chosen(&upstreams, 0, 0, now).1);
    }
    let said: Vec<_> = notices.take(now).into_iter().map(|notice| notice.text).collect();
    assert_eq!(said, ["all upstreams are down: 127.0.0.1:1, 127.0.0.1:2; connections try them nevertheless"]);
}
