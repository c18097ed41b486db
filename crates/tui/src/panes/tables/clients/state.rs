//! The clients at the shown moment.

use records::ids::ClientId;
use records::text::quantity::counted;

use super::detail::ClientDetail;
use super::history::History;
use super::model::ClientRow;
use crate::input::intent::{Intent, PlayControl};
use crate::input::requirement::KeyRequirement;
use crate::state::State;
use crate::state::moment::PastView;
use crate::theme::format;

/// Sorts the clients in sight.
pub(super) fn arrange(state: &mut State) {
    let (clients, rows) = state.clients_and_rows();
    clients.arrange(rows);
}

impl State {
    /// Returns all clients at the shown moment, unordered.
    pub(crate) fn client_ids(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.snapshot().table.rows.all().iter().map(|row| row.id)
    }

    /// The details of a client at the shown moment.
    pub(crate) fn client_detail(&self, id: ClientId) -> Option<ClientDetail> {
        let row = self.snapshot().table.get(id)?;
        let run = self.snapshot_run()?;
        let us = self.past_in_memory().map_or_else(|| run.last_us(), PastView::us);
        ClientDetail::at(run, row, us, self.history(id))
    }

    /// The past moment, if it is shown from the model in memory.
    fn past_in_memory(&self) -> Option<&PastView> {
        self.view.past().filter(|_| self.snapshot().ticket.is_none())
    }

    /// Says why clients in sight lack figures; `None` if none does.
    pub(crate) fn missing_client_history(&self) -> Option<String> {
        let lacks = |row: &ClientRow| row.totals.is_none() || row.out_per_second.is_none();
        if !self.clients.page().iter().any(lacks) {
            return None;
        }
        if self.cursor_us().is_some() {
            return Some(self.describe_client_history());
        }
        let waiting = self.snapshot_run()?.clients_deferred();
        let clients = counted(waiting, "client");
        (waiting > 0).then(|| format!("nothing known of the window; deferred: {clients}"))
    }

    /// Says what is kept of clients at an earlier moment.
    pub(crate) fn describe_client_history(&self) -> String {
        let kept = format::span(crate::panes::tables::clients::model::kept_us(self.live.interval_us()));
        let play = self.options.keymap.names(Intent::Play(PlayControl::Toggle)).into_iter().next();
        let play = play.filter(|_| self.can(KeyRequirement::Journal) && !self.is_replay());
        let play = play.map_or_else(String::new, |key| format!("; {key} reads the journal"));
        format!(
            "older than a client's last {} records ({kept} or more){play}",
            crate::panes::tables::clients::history::SLOTS
        )
    }

    /// Clients at the shown moment that pass the filter.
    pub(crate) fn client_count(&self) -> usize {
        self.snapshot().table.rows.len()
    }

    /// A client's last intervals up to the shown moment.
    pub(crate) fn history(&self, id: ClientId) -> History {
        if let Some(past) = self.past_in_memory() {
            return past.history(id);
        }
        let interval_us = self.snapshot().interval_us();
        self.snapshot_run()
            .map(|run| crate::panes::tables::clients::history::history(run, id, interval_us))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing::{TestDashboard, options};
    use crate::input::intent::{List, SeekTarget};

    /// The dashboard after so many seconds, with the details of its busiest client.
    fn details(seconds: usize) -> TestDashboard {
        let mut stage = TestDashboard::live(options(), seconds);
        stage.screen(120, 40);
        // Above it is one whose connections fail.
        stage.press('j');
        stage.press('j');
        stage.press('\n');
        stage
    }

    fn back(stage: &mut TestDashboard, seconds: usize) {
        (0..seconds).for_each(|_| drop(stage.want(Intent::Seek(SeekTarget::PreviousInterval))));
    }

    /// The lines of the details that have figures of the client alone.
    fn lines(stage: &TestDashboard) -> Vec<String> {
        let text = crate::panes::details(&stage.state, List::Clients).unwrap().text();
        let is_own =
            |line: &&str| ["total ", "handshakes ", "bytes/s "].iter().any(|name| line.starts_with(name));
        text.lines().filter(is_own).map(str::to_owned).collect()
    }

    #[test]
    fn details_of_a_past_moment_are_those_that_were_shown_then() {
        let mut stage = details(10);
        let then = lines(&stage);
        assert_eq!(then.len(), 3, "{then:?}");
        stage.pass(10);
        assert_ne!(lines(&stage), then);
        back(&mut stage, 10);
        assert_eq!(lines(&stage), then);
        let screen = stage.screen(120, 40);
        assert!(screen.contains("client 10.0.0.11 at 12:04:10Z, +00:10"), "{screen}");
        assert!(screen.contains("│ then ") && screen.contains("open –"), "{screen}");
        assert!(screen.contains("– in whole run: known of the present only"), "{screen}");
        assert!(!screen.contains("not kept"), "{screen}");
    }

    #[test]
    fn details_stay_as_they_were_while_the_view_is_frozen() {
        let mut stage = details(10);
        let then = lines(&stage);
        stage.want(Intent::Freeze);
        assert!(stage.screen(120, 40).contains("open 13"), "{}", stage.screen(120, 40));
        stage.pass(30);
        assert_eq!(lines(&stage), then);
    }

    #[test]
    fn clients_at_a_moment_before_their_records_say_why_they_are_blank() {
        let mut stage = TestDashboard::live(options(), 90);
        stage.screen(120, 40);
        back(&mut stage, 5);
        assert!(!stage.screen(120, 40).contains("older than"), "{}", stage.screen(120, 40));
        back(&mut stage, 75);
        stage.state.clients.opened = Some("10.0.0.11".parse().unwrap());
        let details = crate::panes::details(&stage.state, List::Clients).unwrap().text();
        assert!(details.contains("\nnot kept    older than a client's last 60 records"), "{details}");
        let screen = stage.screen(120, 40);
        assert!(screen.contains("–: older than a client's last 60 records (1 min or more)"), "{screen}");
    }
}
