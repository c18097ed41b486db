//! The shown run, and whether it is live.

use super::*;

#[test]
fn silence_is_shown_with_its_length() {
    let mut stage = TestDashboard::live(options(), 5);
    stage.wait(2);
    assert!(stage.screen(80, 24).contains("LIVE +00:05"));
    stage.wait(10);
    assert!(stage.screen(80, 24).contains("NO DATA for 00:12"));
}

#[test]
fn a_journal_that_is_still_being_read_is_not_called_live() {
    let mut stage = TestDashboard::empty(options());
    let records = vec![stage.run.start()];
    stage.read(records);
    assert!(stage.screen(80, 24).contains("READING +00:00"));
    stage.act(Action::Update(Update::CaughtUp));
    assert!(stage.screen(80, 24).contains("LIVE +00:00"));
}

/// A dashboard that opens an abandoned journal so many seconds later.
fn opened_later(seconds: u64) -> TestDashboard {
    let mut stage = TestDashboard::empty(options());
    let mut records = vec![stage.run.start()];
    records.extend(stage.run.second());
    stage.wait(1 + seconds);
    let batch = model::history::Batch { records, read_mono_us: None, ..model::history::Batch::default() };
    stage.act(Action::Update(Update::Batch(batch)));
    stage.act(Action::Update(Update::CaughtUp));
    stage
}

#[test]
fn a_run_that_was_killed_long_ago_is_never_called_live() {
    let screen = opened_later(600).screen(80, 24);
    assert!(screen.contains("NO DATA for 10:00"), "{screen}");
    assert!(
        screen.contains("! no record for 10:00: the program that writes them hangs or was killed"),
        "{screen}"
    );
    // Its last records may still be on their way.
    let mut stage = opened_later(7);
    assert!(stage.screen(80, 24).contains("LIVE +00:01"));
    stage.wait(2);
    assert!(stage.screen(80, 24).contains("NO DATA for 00:09"));
}

#[test]
fn who_watches_several_runs_chooses_which_one_is_shown() {
    let mut stage = TestDashboard::live(Options { watches: true, ..options() }, 3);
    let mut record = stage.run.start();
    record.stamp.run = records::ids::RunId::from_bits(7 << 96);
    record.stamp.realtime_us += 10_000_000;
    record.stamp.seq = 1;
    if let records::kinds::Body::Run(run) = &mut record.body {
        run.host = "other".into();
    }
    stage.read(vec![record]);
    assert!(stage.screen(160, 48).contains("other 2/2 run 00000007"));
    stage.want(Intent::NextRun);
    let screen = stage.screen(160, 48);
    assert!(screen.contains("box 1/2 run 1a2b3c4d") && screen.contains("10.0.0.11"), "{screen}");
    for key in ":run other\n".chars() {
        stage.press(key);
    }
    assert!(stage.screen(160, 48).contains("other 2/2 run 00000007"));
}

#[test]
fn a_new_run_takes_the_place_of_the_old_one_and_is_said() {
    let mut stage = TestDashboard::live(options(), 3);
    stage.wait(10);
    let mut record = stage.run.start();
    record.stamp.run = records::ids::RunId::from_bits(7 << 96);
    record.stamp.realtime_us += 10_000_000;
    record.stamp.seq = 1;
    stage.read(vec![record]);
    let screen = stage.screen(80, 24);
    assert!(screen.contains("LIVE +00:00"), "{screen}");
    assert!(screen.contains("note a new run is shown: 00000007, begun 12:04:13Z"), "{screen}");
}

#[test]
fn a_run_is_shown_by_its_id_when_that_is_asked_for() {
    let other = records::ids::RunId::from_bits(7);
    let mut stage = TestDashboard::live(Options { run: Some(other), ..options() }, 3);
    assert!(stage.screen(80, 24).contains("waiting for the first record of run 00000000"));
    let mut stage = TestDashboard::live(Options { run: Some(SyntheticLoad::run_id()), ..options() }, 3);
    assert!(stage.screen(80, 24).contains("LIVE"));
}

#[test]
fn the_header_names_the_upstreams_after_a_reload() {
    let mut stage = TestDashboard::live(Options { title: String::new(), ..options() }, 2);
    let name = "proxy.upstream".to_owned();
    let applies = records::setting::Applies::NewConnections;
    let setting = |value: &str| {
        let (name, value) = (name.clone(), records::setting::Value::Text(value.to_owned()));
        records::setting::Setting { name, value, unit: String::new(), applies, range: None }
    };
    let record = stage.run.event(records::kinds::Body::Setting(records::kinds::SettingRecord {
        name: name.clone(),
        before: "unix:/run/app.sock".into(),
        after: Some(setting("unix:/run/b.sock")),
        ..records::kinds::SettingRecord::default()
    }));
    assert!(!stage.screen(160, 48).contains("unix:/run/b.sock"));
    stage.read(vec![record]);
    stage.pass(1);
    let screen = stage.screen(160, 48);
    assert!(screen.lines().next().unwrap().contains(" > unix:/run/b.sock"), "{screen}");
}
