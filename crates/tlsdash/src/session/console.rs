//! What is said to whoever looks, beside what the journal holds.

use telemetry::{Level, NoticeRecord, Update};
use tui::{Event, Sender};

use crate::session::frontend::Frontend;

/// Speaks to the front end: a dashboard, or standard error.
#[derive(Clone, Debug)]
pub(crate) struct Console {
    events: Sender,
    frontend: Frontend,
}

impl Console {
    pub(crate) fn new(events: Sender, frontend: Frontend) -> Self {
        Self { events, frontend }
    }

    /// Says what stands in no journal.
    pub(crate) fn say(&self, level: Level, text: &str) {
        // Only fails once nobody watches any more.
        let _ = self.events.send(Event::Update(Update::Notice(level, telemetry::clean::line(text))));
    }

    /// Says what a record says too, and which a dashboard reads back from the journal.
    pub(crate) fn echo(&self, level: Level, text: &str) {
        if self.frontend == Frontend::Headless {
            self.say(level, text);
        }
    }
}

/// Says a notice on standard error before there is anything else, as a warning where it is one.
pub(crate) fn say_early(notice: &NoticeRecord) {
    let NoticeRecord { level, text, .. } = notice;
    if *level == Level::Warning {
        crate::say(format_args!("warning: {text}"));
    } else {
        crate::say(text);
    }
}
