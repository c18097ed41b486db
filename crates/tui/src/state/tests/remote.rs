//! Changing the run of another process over its control socket.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use model::history::{Batch, Update};
use records::codec::Writer;
use records::command::Command;
use records::ids::RunId;
use records::kinds::{Body, ExperimentRecord, ExperimentStep, Record};
use records::setting::Value;

use super::{press, set};
use crate::app::action::{Action, Effect};
use crate::app::testing::{TestDashboard, options};
use crate::input::intent::{Direction, Intent, QuickControl};
use crate::options::Options;
use crate::options::remote::{RemoteAction, RemoteControl, RemoteRequest};
use crate::synthetic::SyntheticLoad;

const SOCKET: &str = "/run/tlsdash/control.sock";

fn watching_on(host: &str) -> Options {
    // Nobody sends in these tests: effects are looked at.
    let remote =
        RemoteControl { host: host.into(), requests: sync_channel(1).0, recorder: sync_channel(1).0 };
    Options { watches: true, remote: Some(remote), ..options() }
}

/// Watches a run that began with this control socket.
fn watched(host: &str, socket: &str) -> TestDashboard {
    let mut stage = TestDashboard::empty(watching_on(host));
    let mut start = stage.run.start();
    let Body::Run(run) = &mut start.body else { panic!("{start:?}") };
    run.control_socket = socket.into();
    stage.read(vec![start]);
    stage.act(Action::Update(Update::CaughtUp));
    stage.pass(3);
    stage
}

fn request(action: RemoteAction) -> RemoteRequest {
    RemoteRequest { run: SyntheticLoad::run_id(), socket: SOCKET.into(), action }
}

fn answer(stage: &mut TestDashboard, access: Result<(), &str>) {
    stage.act(Action::Access(SyntheticLoad::run_id(), access.map_err(str::to_owned)));
}

/// A record of an experiment on the rate.
fn experiment(stage: &mut TestDashboard, step: ExperimentStep) -> Record {
    let record =
        ExperimentRecord { number: 1, step, setting: "load.rate".into(), ..ExperimentRecord::default() };
    stage.run.event(Body::Experiment(Box::new(record)))
}

#[test]
fn a_run_on_this_host_is_changed_over_its_socket() {
    let mut stage = watched("box", SOCKET);
    assert_eq!(stage.state.access_request(), Some(request(RemoteAction::CheckAccess)));
    assert_eq!(stage.state.access_request(), None, "once");
    answer(&mut stage, Ok(()));
    let effects = stage.want(Intent::Adjust(QuickControl::Rate, Direction::Up));
    assert_eq!(set(&effects), Some(("load.rate", &Value::Number(5500.0))));
    let command = Command::Mark(String::new());
    assert!(stage.want(Intent::Mark).contains(&Effect::Send(command.clone())));
    let sent = stage.state.remote_command(command.clone());
    assert_eq!(sent, Some(request(RemoteAction::Command(command))));
    let screen = stage.screen(120, 24);
    assert!(screen.contains("t tune") && !screen.contains("no control"), "{screen}");
}

#[test]
fn keys_say_why_a_run_cannot_be_changed() {
    type Happens = fn(&mut TestDashboard);
    let ended: Happens = |stage| {
        let stop = stage.run.stop();
        stage.read(vec![stop]);
    };
    let refused: Happens = |stage| {
        stage.state.access_request();
        answer(stage, Err("ben (uid 1000, pid 7) may read and not change anything"));
    };
    let nothing: Happens = |_| {};
    let cases = [
        ("other", SOCKET, nothing, "the run is on another host, box"),
        ("box", "", nothing, "the run has no control socket"),
        ("box", SOCKET, ended, "the run has ended"),
        ("box", SOCKET, refused, "ben (uid 1000, pid 7) may read and not change"),
    ];
    for (host, socket, happens, why) in cases {
        let mut stage = watched(host, socket);
        happens(&mut stage);
        stage.prepare();
        let screen = stage.screen(120, 24);
        assert!(!screen.contains("t tune") && screen.contains("no control"), "{why}: {screen}");
        for keys in ["m", "l", "te", "u"] {
            let effects = press(&mut stage, keys);
            assert!(!effects.iter().any(|effect| matches!(effect, Effect::Send(_))), "{keys}: {effects:?}");
            assert!(stage.screen(120, 24).contains(why), "{keys}: {}", stage.screen(120, 24));
            stage.want(Intent::Back);
        }
    }
}

#[test]
fn a_socket_of_another_machine_is_never_asked() {
    let mut stage = watched("box", SOCKET);
    let mut start = stage.run.start();
    let Body::Run(run) = &mut start.body else { panic!("{start:?}") };
    run.control_socket = SOCKET.into();
    start.stamp.run = RunId::from_bits(2);
    let writer = Arc::new(Writer { is_remote: true, ..Writer::default() });
    let records = vec![start];
    stage.state.access_request();
    stage.act(Action::Update(Update::Batch(Batch { writer, records, ..Batch::default() })));
    stage.state.options.run = Some(RunId::from_bits(2));
    stage.prepare();
    assert_eq!(stage.state.access_request(), None);
    assert_eq!(stage.state.remote_command(Command::Mark(String::new())), None);
}

#[test]
fn a_refused_key_checks_access_again() {
    let mut stage = watched("box", SOCKET);
    stage.state.access_request();
    answer(&mut stage, Err("cannot connect"));
    assert_eq!(stage.state.access_request(), None, "nobody asks again by himself");
    stage.want(Intent::Mark);
    assert_eq!(stage.state.access_request(), Some(request(RemoteAction::CheckAccess)));
    answer(&mut stage, Err("permission denied"));
    assert!(stage.screen(120, 24).contains("no control: permission denied"), "another reason is told");
    stage.want(Intent::Mark);
    stage.state.access_request();
    answer(&mut stage, Ok(()));
    assert!(stage.screen(120, 24).contains("the run can be changed now: press the key again"));
    assert!(stage.want(Intent::Mark).contains(&Effect::Send(Command::Mark(String::new()))));
}

#[test]
fn access_to_a_run_that_is_no_longer_shown_changes_nothing() {
    let mut stage = watched("box", SOCKET);
    stage.state.access_request();
    stage.act(Action::Access(RunId::from_bits(99), Err("cannot connect".into())));
    assert!(stage.want(Intent::Mark).contains(&Effect::Send(Command::Mark(String::new()))));
}

#[test]
fn a_watcher_records_without_a_socket() {
    let mut stage = watched("other", "");
    stage.want(Intent::Record);
    assert!(stage.press('\n').iter().any(|effect| matches!(effect, Effect::Send(Command::Record(_)))));
    assert_eq!(stage.state.shown_run_id(), Some(SyntheticLoad::run_id()));
    let stop = stage.run.stop();
    stage.read(vec![stop]);
    stage.want(Intent::Record);
    assert!(stage.state.prompt.is_none());
    assert!(stage.screen(120, 24).contains("nothing to record: the run has ended"));
    assert!(!stage.want(Intent::WriteConfiguration).contains(&Effect::Send(Command::WriteConfiguration)));
}

#[test]
fn a_setting_is_locked_while_an_experiment_compares_it() {
    let mut stage = watched("box", SOCKET);
    let begun = experiment(&mut stage, ExperimentStep::Switch);
    stage.read(vec![begun]);
    assert_eq!(set(&stage.want(Intent::Adjust(QuickControl::Rate, Direction::Up))), None);
    let screen = stage.screen(120, 24);
    assert!(screen.contains("load.rate is locked: an experiment compares it"), "{screen}");
    assert!(set(&stage.want(Intent::Adjust(QuickControl::Resume, Direction::Up))).is_some());
    stage.want(Intent::Tune);
    assert!(stage.screen(120, 40).contains("in A/B"), "{}", stage.screen(120, 40));
    let over = experiment(&mut stage, ExperimentStep::Verdict);
    stage.read(vec![over]);
    assert!(set(&stage.want(Intent::Adjust(QuickControl::Rate, Direction::Up))).is_some());
}

#[test]
fn a_change_overtaken_by_another_is_still_confirmed() {
    let mut stage = watched("box", SOCKET);
    stage.want(Intent::Adjust(QuickControl::Rate, Direction::Up));
    let mine = stage.run.set("load.rate", Value::Number(5500.0)).unwrap();
    let mut theirs = stage.run.set("load.rate", Value::Number(70.0)).unwrap();
    let Body::Setting(change) = &mut theirs.body else { panic!("{theirs:?}") };
    change.by = "anna (uid 1001, pid 4711)".into();
    stage.read(vec![mine, theirs]);
    stage.pass(1);
    stage.want(Intent::Tune);
    let screen = stage.screen(160, 48);
    assert!(!screen.contains("asked") && screen.contains("*70/s"), "{screen}");
    for (change, by) in
        [("load.rate 5000/s > 5500/s", "here"), ("load.rate 5500/s > 70/s", "anna (uid 1001, pid 4711)")]
    {
        let line = screen.lines().find(|line| line.contains(change) && line.contains(by));
        assert!(line.is_some(), "{change} {by}: {screen}");
    }
    stage.wait(5);
    assert!(!stage.screen(160, 48).contains("no record confirms it"));
}
