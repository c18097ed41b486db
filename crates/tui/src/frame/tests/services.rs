//! Services that packets tell apart.

use insta::assert_snapshot;
use model::history::{Batch, Update};
use records::ids::RunId;
use records::kinds::{Body, Record};

use crate::app::action::Action;
use crate::app::testing::{TestDashboard, watching};
use crate::synthetic::SyntheticLoad;

const WHOLE: RunId = RunId::from_bits(0xab << 8);
const NAMES: [&str; 2] = [":443 nginx", ":5432 postgres"];

/// A run with two services for so many seconds, drawn each second.
fn services(seconds: u64) -> TestDashboard {
    read_services(seconds, TestDashboard::prepare)
}

fn read_services(seconds: u64, each_second: fn(&mut TestDashboard)) -> TestDashboard {
    let mut stage = TestDashboard::empty(watching());
    let mut all: [SyntheticLoad; 3] = std::array::from_fn(|_| SyntheticLoad::default());
    let read = |stage: &mut TestDashboard, number: usize, mut records: Vec<Record>| {
        for record in &mut records {
            record.stamp.run = WHOLE.part(number as u8);
            if let Body::Run(run) = &mut record.body
                && number > 0
            {
                run.service = NAMES[number - 1].to_owned();
            }
        }
        stage.act(Action::Update(Update::Batch(Batch { records, ..Batch::default() })));
    };
    for (number, load) in all.iter_mut().enumerate() {
        let start = load.start();
        read(&mut stage, number, vec![start]);
    }
    stage.act(Action::Update(Update::CaughtUp));
    for _ in 0..seconds {
        stage.wait(1);
        for (number, load) in all.iter_mut().enumerate() {
            let records = load.second();
            read(&mut stage, number, records);
        }
        each_second(&mut stage);
    }
    stage
}

pub(crate) fn watching_services() -> TestDashboard {
    services(2)
}

#[test]
fn services_have_a_line_each_above_the_figures_of_all() {
    let mut stage = services(12);
    assert_snapshot!("services_80x24", stage.screen(80, 24));
    assert_snapshot!("services_160x48", stage.screen(160, 48));
}

#[test]
fn services_that_were_read_at_once_are_in_the_first_frame() {
    let mut stage = read_services(3, |_| {});
    let screen = stage.screen(80, 24);
    assert!(screen.contains("services 1-2/2") && screen.contains(NAMES[1]), "{screen}");
}

#[test]
fn enter_opens_a_service_in_all_panes_and_escape_shows_all_again() {
    let mut stage = services(12);
    stage.screen(160, 48);
    assert_eq!(stage.state.shown, Some(WHOLE));
    stage.press('j');
    stage.press('j');
    stage.press('\r');
    stage.prepare();
    let screen = stage.screen(160, 48);
    assert_eq!(stage.state.shown, Some(WHOLE.part(2)));
    assert!(screen.lines().next().unwrap().contains(":5432 postgres of "), "{screen}");
    // Its clients are the list that keys act on now; the services stay in sight.
    assert!(screen.contains("services 1-2/2"), "{screen}");
    stage.press('\x1b');
    stage.prepare();
    assert_eq!(stage.state.shown, Some(WHOLE));
    let screen = stage.screen(160, 48);
    assert!(!screen.lines().next().unwrap().contains("postgres"), "{screen}");
}

#[test]
fn parts_are_neither_hosts_nor_runs_to_choose() {
    let mut stage = services(3);
    stage.press('8');
    let screen = stage.screen(160, 48);
    assert!(screen.contains("services 1-2/2") && !screen.contains("over time"), "{screen}");
    assert!(!stage.state.has_hosts() && stage.state.runs().len() == 1);
}
