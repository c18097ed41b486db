//! Files of certificates and keys, looked at by a thread of their own.
//!
//! Looking at a file can take for ever, where a network that it is on has gone. No record shall wait for that, nor the
//! service manager's watchdog.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use proxy_core::FileChanges;

/// How often the files are looked at.
const INTERVAL: Duration = Duration::from_secs(1);
/// After so long without an end to a look, it is told.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks at files now and then.
#[derive(Debug)]
pub(super) struct FileWatch {
    ask: Sender<bool>,
    looked: Receiver<FileChanges>,
    next: Instant,
    /// The look that has not ended yet.
    under_way: Option<Look>,
    /// Somebody asked for all files to be read, and no look for that has begun.
    is_asked: bool,
}

#[derive(Debug)]
struct Look {
    since: Instant,
    /// Somebody asked for it.
    at_once: bool,
    is_told: bool,
}

/// What came of watching.
#[expect(clippy::large_enum_variant, reason = "there is one a second")]
#[derive(Debug)]
pub(super) enum Watching {
    /// A look has ended. `was_asked`: somebody had asked for it.
    Ended { looked: FileChanges, was_asked: bool },
    /// A look has not ended for so long; told once.
    Stuck(Duration),
    /// It still has not, and what does not need it is to be done.
    StillStuck,
}

impl FileWatch {
    /// Starts the thread that looks. It ends with this, or stays where it waits for a file.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(super) fn start(look: impl Fn(bool) -> FileChanges + Send + 'static) -> std::io::Result<Self> {
        let (ask, asked) = channel();
        let (tell, looked) = channel();
        thread::Builder::new().name("files".to_owned()).spawn(move || {
            while let Ok(at_once) = asked.recv() {
                if tell.send(look(at_once)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { ask, looked, next: Instant::now(), under_way: None, is_asked: false })
    }

    /// Has all files read at once, as soon as a look that is under way has ended.
    pub(super) fn reload(&mut self) {
        self.is_asked = true;
    }

    /// Begins a look if it is time for one, and gives what came of the last. Never waits.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Watching> {
        if let Ok(looked) = self.looked.try_recv() {
            let was_asked = self.under_way.take().is_some_and(|look| look.at_once);
            return Some(Watching::Ended { looked, was_asked });
        }
        let is_due = now >= self.next;
        if is_due {
            self.next = now + INTERVAL;
        }
        if let Some(look) = &mut self.under_way {
            let waited = now.saturating_duration_since(look.since);
            return match waited >= PATIENCE {
                true if !std::mem::replace(&mut look.is_told, true) => Some(Watching::Stuck(waited)),
                true if is_due => Some(Watching::StillStuck),
                _ => None,
            };
        }
        // It only fails after a panic of the thread, which has been told then.
        if (is_due || self.is_asked) && self.ask.send(self.is_asked).is_ok() {
            let at_once = std::mem::take(&mut self.is_asked);
            self.under_way = Some(Look { since: now, at_once, is_told: false });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls at `now` until something comes of it.
    fn wait(watch: &mut FileWatch, now: Instant) -> Watching {
        loop {
            if let Some(watching) = watch.poll(now) {
                return watching;
            }
            thread::yield_now();
        }
    }

    #[test]
    fn it_looks_once_a_second_and_at_once_when_it_is_asked() {
        let (tell, told) = channel();
        let mut watch = FileWatch::start(move |at_once| {
            tell.send(at_once).unwrap();
            FileChanges::default()
        })
        .unwrap();
        let begun = Instant::now();
        assert!(matches!(wait(&mut watch, begun), Watching::Ended { was_asked: false, .. }));
        assert!(watch.poll(begun).is_none() && watch.under_way.is_none(), "it is not time yet");
        watch.reload();
        assert!(matches!(wait(&mut watch, begun), Watching::Ended { was_asked: true, .. }));
        assert!(matches!(wait(&mut watch, begun + INTERVAL), Watching::Ended { was_asked: false, .. }));
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [false, true, false]);
    }

    #[test]
    fn a_look_that_does_not_end_is_told_once_and_keeps_nobody_waiting() {
        let (go_on, wait_here) = channel::<()>();
        let mut watch = FileWatch::start(move |_| {
            wait_here.recv().unwrap();
            FileChanges::default()
        })
        .unwrap();
        let begun = Instant::now();
        assert!(watch.poll(begun).is_none() && watch.poll(begun + PATIENCE / 2).is_none());
        watch.reload();
        assert!(matches!(watch.poll(begun + PATIENCE), Some(Watching::Stuck(PATIENCE))));
        assert!(matches!(watch.poll(begun + PATIENCE + INTERVAL), Some(Watching::StillStuck)));
        assert!(watch.poll(begun + PATIENCE + INTERVAL).is_none());
        go_on.send(()).unwrap();
        assert!(matches!(wait(&mut watch, begun + PATIENCE), Watching::Ended { was_asked: false, .. }));
        go_on.send(()).unwrap();
        assert!(matches!(wait(&mut watch, begun + PATIENCE), Watching::Ended { was_asked: true, .. }));
    }
}
