//! Several hosts in one table.

use std::sync::Arc;

use insta::assert_snapshot;
use model::history::{Batch, Update};
use records::codec::{Origin, Writer};
use records::ids::RunId;
use records::kinds::{Body, CertificateRecord, Record, RunRecord};

use crate::app::action::Action;
use crate::app::testing::{TestDashboard, watching};
use crate::input::intent::{Intent, PaneAction, Preset};
use crate::options::Options;
use crate::panes::PaneId;
use crate::panes::tables::hosts::model::HostRow;
use crate::state::screen::Screen;
use crate::synthetic::SyntheticLoad;

fn id(number: u128) -> RunId {
    RunId::from_bits(number << 96)
}

/// Reads records as those of a host whose clock is so many seconds ahead.
fn read(stage: &mut TestDashboard, number: u128, ahead_s: i64, mut records: Vec<Record>) {
    for record in &mut records {
        record.stamp.run = id(number);
        record.stamp.realtime_us = record.stamp.realtime_us.saturating_add_signed(ahead_s * 1_000_000);
        if let Body::Run(run) = &mut record.body {
            run.version = if number == 2 { "0.0.9".into() } else { "0.1.0".into() };
        }
    }
    let origin = Origin { machine: Some(number), uid: Some(998), ..Origin::default() };
    let writer = Writer {
        origin,
        hostname: format!("edge-{number}"),
        unit: "tlsdash.service".to_owned(),
        is_remote: true,
    };
    let read_realtime_us = Some(stage.now().realtime_us);
    let batch = Batch { writer: Arc::new(writer), records, read_realtime_us, ..Batch::default() };
    stage.act(Action::Update(Update::Batch(batch)));
}

/// Three hosts for so many seconds; the clock of the second one is ahead, the third is silent after three seconds.
fn hosts(seconds: u64) -> TestDashboard {
    hosts_beginning(seconds, |_, _| {})
}

/// Such hosts; `begin` changes each host's first record by its number.
fn hosts_beginning(seconds: u64, begin: impl Fn(u128, &mut RunRecord)) -> TestDashboard {
    let mut stage = TestDashboard::empty(Options { title: String::new(), ..watching() });
    let mut all: [SyntheticLoad; 3] = std::array::from_fn(|_| SyntheticLoad::default());
    for (number, ahead_s) in [(1, 0), (2, 7), (3, 0)] {
        let mut start = all[number as usize - 1].start();
        let Body::Run(run) = &mut start.body else { panic!("a run begins with its record") };
        begin(number, run);
        read(&mut stage, number, ahead_s, vec![start]);
    }
    stage.act(Action::Update(Update::CaughtUp));
    for second in 1..=seconds {
        stage.wait(1);
        for (number, ahead_s) in [(1, 0), (2, 7), (3, 0)] {
            let records = all[number as usize - 1].second();
            if number < 3 || second <= 3 {
                read(&mut stage, number, ahead_s, records);
            }
        }
        stage.prepare();
    }
    stage
}

pub(crate) fn watching_hosts() -> TestDashboard {
    hosts(2)
}

#[test]
fn several_hosts_have_a_line_each_and_a_sum() {
    let mut stage = hosts(12);
    assert_snapshot!("hosts_80x24", stage.screen(80, 24));
    assert_snapshot!("hosts_160x48", stage.screen(160, 48));
}

#[test]
fn certificates_are_of_all_hosts_whichever_is_shown() {
    let mut stage = TestDashboard::empty(Options { title: String::new(), ..watching() });
    for (number, name, days) in [(1, "www", 90), (2, "www", 90), (3, "old", 12)] {
        let certificate = CertificateRecord {
            fingerprint: name.to_owned(),
            names: "www.example.org".to_owned(),
            not_after: stage.now().realtime_us / 1_000_000 + days * 86_400,
            handshakes: 7,
            ..CertificateRecord::default()
        };
        let mut run = SyntheticLoad::default();
        let begun = [run.start(), run.event(Body::Certificate(Box::new(certificate)))];
        read(&mut stage, number, 0, begun.into_iter().chain(run.second()).collect());
    }
    stage.act(Action::Update(Update::CaughtUp));
    stage.prepare();
    let listed = |stage: &TestDashboard| {
        let rows = stage.state.certificates.rows.all().iter();
        rows.map(|row| (row.hosts.clone(), row.expiry().days, row.record.handshakes)).collect::<Vec<_>>()
    };
    let all = [("edge-3".to_owned(), 12, 7), ("edge-1 edge-2".to_owned(), 90, 14)];
    assert_eq!(listed(&stage), all);
    stage.want(Intent::NextRun);
    assert_eq!(listed(&stage), all);
    stage.want(Intent::Pane(PaneAction::Preset(Preset::Only(PaneId::Certificates))));
    let screen = stage.screen(80, 24);
    assert!(screen.contains("days left▲ host") && screen.contains("12 edge-3"), "{screen}");
    stage.press('\n');
    assert!(stage.screen(80, 24).contains("hosts       edge-3"), "{}", stage.screen(80, 24));
}

#[test]
fn the_sum_is_of_live_hosts_with_merged_latencies() {
    let stage = hosts(12);
    let sum = stage.state.hosts.sum.as_ref().unwrap();
    let rows = stage.state.hosts.rows.table.page();
    let one = &rows.iter().find(|row| row.id == id(1)).unwrap().figures;
    let all = &sum.figures;
    assert_eq!((&*sum.host, &*sum.version), ("sum of 2", "2 kinds"));
    assert_eq!(all.open, one.open.map(|open| 2 * open));
    assert_eq!(all.handshakes_per_s, one.handshakes_per_s.map(|rate| 2.0 * rate));
    assert_eq!(all.resumed(), one.resumed());
    assert_eq!(all.p99.map(|p99| p99.ns), one.p99.map(|p99| p99.ns));
    assert!(one.p99.is_some() && one.handshakes_per_s.is_some_and(|rate| rate > 0.0));
}

#[test]
fn a_host_has_the_resolution_of_its_log_and_the_sum_the_coarsest() {
    for counted in [1, 2] {
        let stage = hosts_beginning(12, |number, run| {
            if number == counted {
                run.log = "haproxy".into();
                run.log_resolution_us = 1_000;
            }
        });
        let resolution_us = |row: &HostRow| row.figures.p99.unwrap().resolution.us();
        let rows = stage.state.hosts.rows.table.page();
        let of = |number| resolution_us(rows.iter().find(|row| row.id == id(number)).unwrap());
        assert_eq!((of(counted), of(3 - counted)), (1_000, 0));
        assert_eq!(resolution_us(stage.state.hosts.sum.as_ref().unwrap()), 1_000);
    }
}

#[test]
fn silence_and_clocks_are_said_once() {
    let mut stage = hosts(12);
    stage.press('7');
    let screen = stage.screen(160, 48);
    assert_eq!(screen.matches("edge-3: no record arrives any more").count(), 1, "{screen}");
    assert_eq!(screen.matches("edge-2: the clock is ahead of this host's").count(), 1, "{screen}");
    assert!(screen.contains("silent 00:09") && screen.contains("clock +7s"), "{screen}");
}

#[test]
fn enter_shows_the_selected_host_in_all_panes() {
    let mut stage = hosts(12);
    stage.screen(160, 48);
    stage.press('7');
    let listed = stage.screen(160, 48);
    assert!(listed.contains("hosts 1-3/3, 2 live, 10 s") && !listed.contains("10.0.0.11"), "{listed}");
    stage.press('g');
    stage.press('\n');
    let screen = stage.screen(160, 48);
    assert_eq!(stage.state.screen, Screen::Dashboard);
    assert!(screen.contains("edge-1 1/3") && screen.contains("10.0.0.11"), "{screen}");
    stage.press('7');
    stage.press('j');
    stage.press('\n');
    assert!(stage.screen(160, 48).contains("edge-2 2/3"), "{}", stage.screen(160, 48));
}

#[test]
fn a_run_that_claims_to_be_of_a_live_host_does_not_take_its_line() {
    let mut stage = hosts(5);
    let mut forged = SyntheticLoad::default().start();
    forged.stamp.run = id(9);
    forged.stamp.realtime_us += 3_600_000_000;
    let origin = Origin { machine: Some(1), uid: Some(998), ..Origin::default() };
    let writer =
        Writer { origin, hostname: "edge-1".to_owned(), unit: "tlsdash.service".to_owned(), is_remote: true };
    let read_realtime_us = Some(stage.now().realtime_us);
    let batch =
        Batch { writer: Arc::new(writer), records: vec![forged], read_realtime_us, ..Batch::default() };
    stage.act(Action::Update(Update::Batch(batch)));
    stage.wait(1);
    stage.screen(160, 48);
    let rows = stage.state.hosts.rows.table.page();
    let of_host: Vec<RunId> = rows.iter().filter(|row| row.host == "edge-1").map(|row| row.id).collect();
    assert!(of_host.contains(&id(1)) && of_host.contains(&id(9)), "{of_host:?}");
}
