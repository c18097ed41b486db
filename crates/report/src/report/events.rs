//! What happened in a run: the lines of its log, with the marks and changes of settings among them.

use model::runs::{LogLine, Marker, TimelineEvent};

use crate::report::{Report, RunPart};

/// The name of a part in the labels of events.
pub(crate) fn part_letter(at: u8) -> String {
    char::from(b'a' + at % 26).to_string()
}

#[derive(Debug)]
pub(crate) struct RunEvent<'a> {
    /// Since the run began.
    pub(crate) after_s: f64,
    /// The number of a mark, as in `mark:3`; `e1`, `e2` and so on for other events.
    pub(crate) label: String,
    pub(crate) kind: EventKind,
    pub(crate) line: &'a LogLine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EventKind {
    Other,
    Change,
    /// A mark, with its number.
    Mark(u64),
}

impl RunEvent<'_> {
    /// The number of the mark, if it is one.
    pub(crate) fn mark(&self) -> Option<u64> {
        match self.kind {
            EventKind::Mark(number) => Some(number),
            EventKind::Change | EventKind::Other => None,
        }
    }
}

impl<'a> Report<'a> {
    /// The events in order; none in an anonymous report, because they name clients. Those of several runs have the letter
    /// of their run behind the label.
    pub(crate) fn events(&self) -> Vec<RunEvent<'a>> {
        let lines = self.run.log().filter(|_| !self.is_anonymous());
        let mut events = 0;
        let event = |line: &'a LogLine| {
            let (letter, text) = self.part_of(line);
            let kind = self.kind_of(line, text);
            let label = match kind {
                EventKind::Mark(number) => format!("{number}{letter}"),
                EventKind::Change | EventKind::Other => {
                    events += 1;
                    format!("e{events}{letter}")
                }
            };
            RunEvent { after_s: self.seconds_at(line.mono_us), label, kind, line }
        };
        lines.map(event).collect()
    }

    /// The letter of the part that a line is of, and the line without its name; no letter in a single run.
    fn part_of<'l>(&self, line: &'l LogLine) -> (String, &'l str) {
        let without_name = |part: &RunPart| line.text.strip_prefix(&*part.name)?.strip_prefix(": ");
        let found = (0..).zip(&self.parts).find_map(|(at, part)| Some((at, without_name(part)?)));
        found.map_or((String::new(), &*line.text), |(at, text)| (part_letter(at), text))
    }

    /// The kind of event of a log line.
    fn kind_of(&self, line: &LogLine, text: &str) -> EventKind {
        let at_once = self.run.markers().filter(|marker| marker.mono_us == line.mono_us);
        let kind = |marker: &Marker| match &marker.event {
            TimelineEvent::Mark { number, .. } if text.starts_with(&format!("mark {number}")) => {
                Some(EventKind::Mark(*number))
            }
            TimelineEvent::Change { after, .. }
                if text.starts_with(&format!("{} changed from", after.name)) =>
            {
                Some(EventKind::Change)
            }
            TimelineEvent::Mark { .. } | TimelineEvent::Change { .. } | TimelineEvent::Alert { .. } => None,
        };
        at_once.filter_map(kind).max().unwrap_or(EventKind::Other)
    }
}
