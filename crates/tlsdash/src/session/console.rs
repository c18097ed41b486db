//! Messages to the user on standard error, besides the journal.

use model::history::Update;
use records::kinds::{Level, NoticeRecord};
use tui::{DashboardSender, Event};

use crate::session::frontend::Frontend;

/// Sends messages to the front end, which shows them on the dashboard or on standard error.
#[derive(Clone, Debug)]
pub(crate) struct Console {
    events: DashboardSender,
    frontend: Frontend,
}

impl Console {
    pub(crate) fn new(events: DashboardSender, frontend: Frontend) -> Self {
        Self { events, frontend }
    }

    /// Shows a message that no journal holds.
    pub(crate) fn say(&self, level: Level, text: &str) {
        // Only fails once the front end has ended.
        let _ = self.events.send(Event::Update(Update::Notice(level, records::text::clean::line(text))));
    }

    /// Ends the run, as SIGTERM does.
    pub(crate) fn end_run(&self) {
        // Only fails once the front end has ended.
        let _ = self.events.send(Event::Terminate);
    }

    /// Shows a message that is also a record. A dashboard reads the record back, so only a headless run shows it here.
    pub(crate) fn echo(&self, level: Level, text: &str) {
        if self.frontend == Frontend::Headless {
            self.say(level, text);
        }
    }
}

/// Prints a notice on standard error, before there is a front end. Warnings are marked.
pub(crate) fn report_early(notice: &NoticeRecord) {
    let NoticeRecord { level, text, .. } = notice;
    if *level == Level::Warning {
        crate::say(format_args!("warning: {text}"));
    } else {
        crate::say(text);
    }
}
