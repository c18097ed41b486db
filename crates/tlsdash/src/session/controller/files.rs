//! Reads files on a separate thread: those of certificates and keys regularly, the configuration on request.
//!
//! Reading a file can hang, for example on a lost network mount. Neither records nor the service manager's watchdog
//! may wait for that, nor other files.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two checks.
const INTERVAL: Duration = Duration::from_secs(1);
/// A check that takes longer is reported.
const PATIENCE: Duration = Duration::from_secs(10);

/// Checks files on request, and once a second if it is regular. A check returns a `T`.
#[derive(Debug)]
pub(super) struct FileWatch<T> {
    /// Requests a check; true for a reload.
    ask: Sender<bool>,
    checked: Receiver<T>,
    /// When the next check is due; `None` without a request.
    next: Option<Instant>,
    under_way: Option<FileCheck>,
    /// A reload was requested and its check has not started.
    is_asked: bool,
}

#[derive(Debug)]
struct FileCheck {
    since: Instant,
    /// A requested reload: all files are read again, changed or not.
    at_once: bool,
    /// Its delay has been reported.
    is_reported: bool,
}

#[derive(Debug)]
pub(super) enum FileWatchEvent<T> {
    /// A check has ended. `was_asked`: it was a requested reload.
    Ended { checked: T, was_asked: bool },
    /// A check has not ended for this long; reported once.
    Stuck(Duration),
    /// The check still hangs. Returned once a second, for work that needs no file.
    StillStuck,
}

impl<T: Send + 'static> FileWatch<T> {
    /// Starts the thread of regular checks. `look` gets true for a requested one. The thread ends when this is dropped,
    /// unless it hangs on a file.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn start(thread: &str, look: impl Fn(bool) -> T + Send + 'static) -> std::io::Result<Self> {
        Ok(Self { next: Some(Instant::now()), ..Self::on_request(thread, look)? })
    }

    /// Starts a thread that checks only on request.
    pub(super) fn on_request(
        thread: &str,
        look: impl Fn(bool) -> T + Send + 'static,
    ) -> std::io::Result<Self> {
        let (ask, asked) = channel();
        let (tell, checked) = channel();
        thread::Builder::new().name(thread.to_owned()).spawn(move || {
            while let Ok(at_once) = asked.recv() {
                if tell.send(look(at_once)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { ask, checked, next: None, under_way: None, is_asked: false })
    }

    /// Requests that all files are read again, as soon as a check in progress has ended.
    pub(super) fn reload(&mut self) {
        self.is_asked = true;
    }

    /// For how long a check hangs, if that was reported.
    pub(super) fn stuck(&self, now: Instant) -> Option<Duration> {
        let look = self.under_way.as_ref().filter(|look| look.is_reported)?;
        Some(now.saturating_duration_since(look.since))
    }

    /// Starts a check if one is due, and returns the result of the last. Never waits.
    pub(super) fn poll(&mut self, now: Instant) -> Option<FileWatchEvent<T>> {
        if let Ok(checked) = self.checked.try_recv() {
            let was_asked = self.under_way.take().is_some_and(|look| look.at_once);
            return Some(FileWatchEvent::Ended { checked, was_asked });
        }
        let is_due = self.next.is_some_and(|next| now >= next);
        if is_due {
            self.next = Some(now + INTERVAL);
        }
        if let Some(look) = &mut self.under_way {
            let waited = now.saturating_duration_since(look.since);
            return match waited >= PATIENCE {
                true if !std::mem::replace(&mut look.is_reported, true) => {
                    Some(FileWatchEvent::Stuck(waited))
                }
                true if is_due => Some(FileWatchEvent::StillStuck),
                _ => None,
            };
        }
        // Sending only fails after the thread panicked, which has printed its message.
        if (is_due || self.is_asked) && self.ask.send(self.is_asked).is_ok() {
            let at_once = std::mem::take(&mut self.is_asked);
            self.under_way = Some(FileCheck { since: now, at_once, is_reported: false });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls at `now` until there is a result.
    fn wait(watch: &mut FileWatch<()>, now: Instant) -> FileWatchEvent<()> {
        loop {
            if let Some(watching) = watch.poll(now) {
                return watching;
            }
            thread::yield_now();
        }
    }

    #[test]
    fn files_are_checked_once_a_second_and_at_once_on_reload() {
        let (tell, told) = channel();
        let mut watch = FileWatch::start("files", move |at_once| {
            tell.send(at_once).unwrap();
        })
        .unwrap();
        let begun = Instant::now();
        assert!(matches!(wait(&mut watch, begun), FileWatchEvent::Ended { was_asked: false, .. }));
        assert!(watch.poll(begun).is_none() && watch.under_way.is_none(), "it is not time yet");
        watch.reload();
        assert!(matches!(wait(&mut watch, begun), FileWatchEvent::Ended { was_asked: true, .. }));
        assert!(matches!(wait(&mut watch, begun + INTERVAL), FileWatchEvent::Ended { was_asked: false, .. }));
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [false, true, false]);
    }

    #[test]
    fn a_check_that_hangs_is_reported_once_and_does_not_block() {
        let (go_on, wait_here) = channel::<()>();
        let mut watch = FileWatch::start("files", move |_| {
            wait_here.recv().unwrap();
        })
        .unwrap();
        let begun = Instant::now();
        assert!(watch.poll(begun).is_none() && watch.poll(begun + PATIENCE / 2).is_none());
        watch.reload();
        assert!(matches!(watch.poll(begun + PATIENCE), Some(FileWatchEvent::Stuck(PATIENCE))));
        assert!(matches!(watch.poll(begun + PATIENCE + INTERVAL), Some(FileWatchEvent::StillStuck)));
        assert!(watch.poll(begun + PATIENCE + INTERVAL).is_none());
        assert_eq!(watch.stuck(begun + PATIENCE + INTERVAL), Some(PATIENCE + INTERVAL));
        go_on.send(()).unwrap();
        assert!(matches!(wait(&mut watch, begun + PATIENCE), FileWatchEvent::Ended { was_asked: false, .. }));
        go_on.send(()).unwrap();
        assert!(matches!(wait(&mut watch, begun + PATIENCE), FileWatchEvent::Ended { was_asked: true, .. }));
    }
}
