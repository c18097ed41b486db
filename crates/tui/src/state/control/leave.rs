//! Whether leaving needs a confirmation.

use model::runs::{Level, Run};
use records::metrics::{LoadCounter, ProxyCounter};

use crate::clock::ClockReading;
use crate::state::State;

impl State {
    /// Returns whether to leave. While a recording or clients of others would be cut, only a second request within a short
    /// time does.
    pub(crate) fn may_leave(&mut self, now: ClockReading) -> bool {
        if self.recorded.question().is_some() {
            return true;
        }
        let question = if self.recorded.progress().is_some() {
            "recording: quit again, or y, within 10 s to end it and leave"
        } else if self.serves_others() {
            "others are served here: quit again, or y, within 10 s to stop the proxy"
        } else {
            return true;
        };
        self.recorded.ask(question, now);
        self.notice(Level::Warning, question, now);
        false
    }

    /// Returns whether the proxy of this process has clients besides the run's own load.
    fn serves_others(&self) -> bool {
        let is_served_here =
            |run: &&Run| !self.options.watches && run.stopped().is_none() && run.other_terminator().is_none();
        let Some(run) = self.run().filter(is_served_here) else { return false };
        let Some(proxy) = run.proxy() else { return false };
        let own = run.load().map_or(0, |load| {
            let (totals, record) = (load.totals(), run.load_record());
            // Connections whose handshake is not over are at most those that are asked for.
            totals.sum(&[
                LoadCounter::HandshakesFull,
                LoadCounter::HandshakesResumed,
                LoadCounter::HandshakesFailed,
            ]) + record.map_or(0, |record| 2 * record.connections)
        });
        let totals = proxy.totals();
        totals[ProxyCounter::Accepted] > own && totals[ProxyCounter::BytesOut] > 0
    }
}

#[cfg(test)]
mod tests {
    use model::history::{RecordingStatus, Update};
    use records::command::Command;
    use records::kinds::Body;

    use crate::app::action::{Action, Effect};
    use crate::app::testing::{TestDashboard, options};
    use crate::input::intent::Intent;

    #[test]
    fn quitting_while_recording_asks_once() {
        let mut stage = TestDashboard::live(options(), 3);
        stage.want(Intent::Record);
        let begun = Effect::Send(Command::Record("tlsdash-1a2b3c4d-120403Z.journal".into()));
        assert!(stage.press('\n').contains(&begun));
        let leaves = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Leave(_)));
        stage.act(Action::Update(Update::Recording(RecordingStatus::Written)));
        assert!(!leaves(&stage.want(Intent::Quit)));
        stage.pass(2);
        let screen = stage.screen(120, 40);
        assert!(
            screen.contains("quit again, or y, within 10 s") && screen.contains("[REC 00:02]"),
            "{screen}"
        );
        assert!(leaves(&stage.want(Intent::Quit)));
        stage.act(Action::Update(Update::Recording(RecordingStatus::Failing)));
        let screen = stage.screen(120, 40);
        assert!(screen.contains("[NOT RECORDING 00:02]"), "{screen}");
        stage.pass(20);
        assert!(!leaves(&stage.want(Intent::Quit)), "it is asked anew");
        stage.want(Intent::Back);
        let footer = stage.screen(120, 40).lines().last().unwrap_or_default().to_owned();
        assert!(!footer.contains("quit again") && !leaves(&stage.want(Intent::Quit)), "{footer}");
        stage.act(Action::Update(Update::Recording(RecordingStatus::Ended)));
        assert!(leaves(&stage.want(Intent::Quit)));
    }

    /// Whether a person who wants to leave is asked first, in a run without a load.
    fn asks_before_leaving(log: &str) -> bool {
        let mut stage = TestDashboard::empty(options());
        let mut start = stage.run.start();
        let Body::Run(run) = &mut start.body else { panic!("a run begins with its record") };
        run.log = log.to_owned();
        stage.read(vec![start]);
        stage.act(Action::Update(Update::CaughtUp));
        let mut records = stage.run.second();
        records.retain(|record| !matches!(record.body, Body::Load(_)));
        stage.read(records);
        let leaves = stage.want(Intent::Quit).iter().any(|effect| matches!(effect, Effect::Leave(_)));
        assert_eq!(stage.state.recorded.question().is_some(), !leaves);
        !leaves
    }

    #[test]
    fn leaving_is_asked_about_where_clients_of_others_would_be_cut() {
        assert!(asks_before_leaving(""), "the proxy serves them");
        assert!(!asks_before_leaving("haproxy"), "another serves them");
        assert!(!asks_before_leaving("wire"), "another serves them");
    }

    #[test]
    fn the_file_of_a_recording_is_asked_for_and_a_second_request_ends_it() {
        let mut stage = TestDashboard::live(options(), 3);
        stage.press('R');
        let screen = stage.screen(120, 40);
        assert!(screen.contains("record into: tlsdash-1a2b3c4d-120403Z.journal"), "{screen}");
        "\x15/tmp/spike".chars().for_each(|key| drop(stage.press(key)));
        assert!(stage.screen(120, 40).contains("Enter records from now on into /tmp/spike.journal"));
        assert!(stage.press('\n').contains(&Effect::Send(Command::Record("/tmp/spike.journal".into()))));
        stage.act(Action::Update(Update::Recording(RecordingStatus::Written)));
        assert!(stage.press('R').contains(&Effect::Send(Command::EndRecording)));
        stage.act(Action::Update(Update::Recording(RecordingStatus::Ended)));
        stage.press('R');
        stage.press('\x15');
        stage.press('\n');
        assert!(stage.screen(120, 40).contains("a recording needs a file name"));
        assert!(!stage.press('\x1b').iter().any(|effect| matches!(effect, Effect::Send(_))));
    }

    #[test]
    fn a_dashboard_without_control_cannot_record() {
        let mut stage = TestDashboard::live(crate::Options { watches: true, ..options() }, 3);
        stage.want(Intent::Record);
        assert!(stage.state.prompt.is_none());
    }
}
