//! The queue of events, which wait for the journal unchanged, because no later record repeats them.

use std::collections::VecDeque;

use records::kinds::{Body, Record};

/// Most events that wait; a person causes fewer while a journal is away.
pub(crate) const EVENTS_MAX: usize = 64;

/// Events in the order in which they happened, with their stamps. `seq` is assigned when the journal accepts them.
#[derive(Debug, Default)]
pub(crate) struct Events {
    waiting: VecDeque<Record>,
}

impl Events {
    /// Adds an event; false if one had to be given up for it.
    pub(crate) fn push(&mut self, record: Record) -> bool {
        self.waiting.push_back(record);
        let is_crowded = self.waiting.len() > EVENTS_MAX;
        if is_crowded {
            let least = self.least();
            self.waiting.remove(least);
        }
        !is_crowded
    }

    /// The least important event: a change of a setting that was changed again since, else the oldest notice, else the
    /// oldest mark, else the oldest change. The beginning of a run is never dropped, because no other record has its
    /// content.
    fn least(&self) -> usize {
        let is_superseded = |at: usize| {
            let name = changed(&self.waiting[at]);
            name.is_some() && self.waiting.iter().skip(at + 1).any(|later| changed(later) == name)
        };
        let first = |of: fn(&Body) -> bool| self.waiting.iter().position(|record| of(&record.body));
        (0..self.waiting.len())
            .find(|&at| is_superseded(at))
            .or_else(|| first(|body| matches!(body, Body::Notice(_))))
            .or_else(|| first(|body| matches!(body, Body::Mark(_))))
            .or_else(|| first(|body| !matches!(body, Body::Run(_))))
            .unwrap_or(0)
    }

    /// Takes out the oldest.
    pub(crate) fn pop(&mut self) -> Option<Record> {
        self.waiting.pop_front()
    }

    /// Returns the record of [`Self::pop`] to the queue.
    pub(crate) fn put_back(&mut self, record: Record) {
        self.waiting.push_front(record);
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

/// The name of the setting that an event changes.
fn changed(event: &Record) -> Option<&str> {
    match &event.body {
        Body::Setting(change) => Some(&change.name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::ids::RunId;
    use records::kinds::{MarkRecord, NoticeRecord, SettingRecord, Stamp};

    fn push(events: &mut Events, body: Body) -> bool {
        let stamp = Stamp { run: RunId::from_bits(1), seq: 0, mono_us: 1, realtime_us: 1, interval_us: 0 };
        events.push(Record { stamp, body })
    }

    fn change(name: &str, before: usize) -> Body {
        let before = before.to_string();
        Body::Setting(SettingRecord { name: name.into(), before, after: None, ..SettingRecord::default() })
    }

    fn words(events: &mut Events) -> Vec<String> {
        let word = |record: Record| match record.body {
            Body::Setting(change) => format!("{} {}", change.name, change.before),
            Body::Mark(mark) => format!("mark {}", mark.number),
            other => other.kind().word.to_owned(),
        };
        std::iter::from_fn(|| events.pop()).map(word).collect()
    }

    #[test]
    fn the_beginning_of_a_run_and_the_last_change_of_each_setting_are_kept() {
        let mut events = Events::default();
        assert!(push(&mut events, Body::Run(Box::default())));
        assert!(push(&mut events, change("a", 0)));
        assert!(push(&mut events, Body::Mark(MarkRecord { number: 1, text: String::new() })));
        let lost = (0..EVENTS_MAX).filter(|&n| !push(&mut events, change("b", n))).count();
        assert_eq!((events.len(), lost), (EVENTS_MAX, 3));
        let words = words(&mut events);
        assert_eq!(words[..4], ["run", "a 0", "mark 1", "b 3"]);
        assert_eq!(*words.last().unwrap(), format!("b {}", EVENTS_MAX - 1));
    }

    #[test]
    fn notices_yield_to_actions_of_a_person() {
        let mut events = Events::default();
        push(&mut events, Body::Mark(MarkRecord { number: 1, text: String::new() }));
        for n in 0..EVENTS_MAX {
            push(&mut events, Body::Notice(NoticeRecord { topic: n.to_string(), ..NoticeRecord::default() }));
        }
        assert!(matches!(events.pop().map(|record| record.body), Some(Body::Mark(_))));
        let oldest = events.pop().map(|record| record.body);
        assert!(matches!(oldest, Some(Body::Notice(notice)) if notice.topic == "1"));
    }

    #[test]
    fn marks_give_way_to_changes_and_the_oldest_of_a_kind_first() {
        let mut events = Events::default();
        push(&mut events, change("a", 0));
        for number in 1..EVENTS_MAX as u64 + 2 {
            push(&mut events, Body::Mark(MarkRecord { number, text: String::new() }));
        }
        let words = words(&mut events);
        assert_eq!((words.len(), &*words[0], &*words[1]), (EVENTS_MAX, "a 0", "mark 3"));
    }
}
