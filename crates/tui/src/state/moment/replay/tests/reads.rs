//! Journal reads of a replay, and their failures.

use super::*;

#[test]
fn playing_reads_a_few_seconds_ahead() {
    let mut recording = ReplayHarness::opened(watching());
    recording.want(Intent::Play(PlayControl::Toggle));
    recording.quarters(12);
    assert_eq!(recording.asked, ["seek 0", "on 4", "on 6"], "half of what is read ahead is left");
}

#[test]
fn seeking_in_an_ended_run_reads_it_again_and_shows_progress() {
    let mut recording = ReplayHarness::opened(watching());
    recording.stage.want(Intent::Seek(SeekTarget::Columns(-10)));
    let Some(HistoryRequest::Seek(seek)) = recording.stage.state.history_request() else {
        panic!("nothing is asked")
    };
    let half_us = u64::midpoint(recording.began_us(), seek.until_us);
    let progress = HistoryReply::Progress { ticket: seek.ticket, mono_us: half_us };
    recording.stage.act(Action::History(progress));
    let screen = recording.stage.screen(120, 40);
    assert!(screen.contains("reading the journal 50"), "{screen}");
    recording.answer(HistoryRequest::Seek(seek));
    let screen = recording.stage.screen(120, 40);
    assert!(screen.contains("FROZEN") && !screen.contains("reading the journal"), "{screen}");
    let failed = HistoryReply::Failed { ticket: 99, why: "it is gone".into() };
    assert_eq!(recording.stage.act(Action::History(failed)), [], "nobody asked for that");
}

#[test]
fn a_failed_read_is_reported_once_and_not_retried() {
    let mut recording = ReplayHarness::opened(watching());
    recording.stage.want(Intent::Play(PlayControl::Toggle));
    let Some(HistoryRequest::Seek(seek)) = recording.stage.state.history_request() else {
        panic!("nothing is asked")
    };
    let failed = HistoryReply::Failed { ticket: seek.ticket, why: "cannot read /gone.journal".into() };
    recording.stage.act(Action::History(failed));
    assert!(recording.stage.screen(80, 24).contains("cannot read that time from the journal: cannot"));
    assert!(recording.stage.state.history_request().is_none());
}

#[test]
fn a_failed_read_ahead_is_reported_once_and_not_retried() {
    let mut recording = ReplayHarness::opened(watching());
    recording.stage.want(Intent::Play(PlayControl::Toggle));
    let seek = recording.stage.state.history_request().expect("the start is read");
    recording.answer(seek);
    let Some(HistoryRequest::Continue { ticket, .. }) = recording.stage.state.history_request() else {
        panic!("playing reads ahead")
    };
    let failed = HistoryReply::Failed { ticket, why: "cannot read /gone.journal".into() };
    recording.stage.act(Action::History(failed));
    recording.stage.wait_millis(250);
    assert!(recording.stage.state.history_request().is_none());
}

#[test]
fn a_seek_in_flight_makes_an_earlier_read_useless() {
    let mut recording = ReplayHarness::opened(watching());
    recording.want(Intent::Play(PlayControl::Toggle));
    recording.quarters(40);
    recording.want(Intent::Freeze);
    recording.stage.want(Intent::Seek(SeekTarget::Beginning));
    assert!(matches!(recording.stage.state.history_request(), Some(HistoryRequest::Seek(_))));
    // Not answered yet: the reader has dropped what it could have continued.
    recording.stage.want(Intent::Seek(SeekTarget::NextMark));
    let request = recording.stage.state.history_request();
    assert!(matches!(request, Some(HistoryRequest::Seek(_))), "{request:?}");
}

#[test]
fn each_of_many_runs_can_be_shown_whole() {
    let mut stage = TestDashboard::empty(watching());
    let records = |run: u128| {
        let mut made = SyntheticLoad::default();
        let mut records = vec![made.start()];
        records.extend((0..3).flat_map(|_| made.second()));
        for record in &mut records {
            record.stamp.run = records::ids::RunId::from_bits(run << 96);
            record.stamp.realtime_us += run as u64 * 1_000_000;
        }
        records
    };
    (1..=20).for_each(|run| stage.read(records(run)));
    stage.act(Action::Update(Update::CaughtUp));
    stage.want(Intent::Runs);
    stage.want(Intent::Scroll(ListMove::First));
    assert!(stage.screen(80, 30).contains("runs 1-20/20"));
    stage.want(Intent::RunOpen);
    assert_eq!(stage.state.status, ViewStatus::Reading);
    let Some(HistoryRequest::Seek(seek)) = stage.state.history_request() else {
        panic!("it is not read again")
    };
    assert!(stage.state.history_request().is_none(), "once is enough");
    let (mut model, ticket) = (Model::default(), seek.ticket);
    let all = records(1);
    let (most, rest) = all.split_at(all.len() - 5);
    for record in most {
        model.apply(record.clone(), None);
    }
    let stood = HistoryReply::Reached { ticket, model: Box::new(model), until_us: seek.until_us };
    stage.act(Action::History(stood));
    let Some(HistoryRequest::Continue { ticket, .. }) = stage.state.history_request() else {
        panic!("it lacks the latest records")
    };
    let records = rest.iter().map(|record| (Arc::default(), record.clone())).collect();
    stage.act(Action::History(HistoryReply::Records { ticket, records, until_us: Some(seek.until_us) }));
    assert!(stage.state.history_request().is_none());
    let screen = stage.screen(80, 30);
    assert!(screen.contains(" clients ") && !screen.contains("gaps"), "{screen}");
    assert_ne!(stage.state.status, ViewStatus::Reading);
}

#[test]
fn without_a_journal_to_read_again_nothing_is_played() {
    let mut stage = TestDashboard::live(options(), 10);
    stage.want(Intent::Play(PlayControl::Toggle));
    assert_eq!(stage.state.status, ViewStatus::Live);
    assert!(stage.screen(80, 24).contains("only tlsdash watch"));
}
