//! The right to change the shown run, if it is that of another process.

use records::ids::RunId;

/// What is known of the right to change the shown run.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemoteAccess {
    /// The run that was asked about last.
    run: Option<RunId>,
    /// Why it cannot be changed; `None` before the answer too.
    refusal: Option<String>,
    /// True if a key was refused since: the answer may be another one by now.
    is_doubted: bool,
}

impl RemoteAccess {
    /// Returns why a run cannot be changed, as far as is known.
    pub(super) fn refusal(&self, run: RunId) -> Option<&str> {
        self.refusal.as_deref().filter(|_| self.run == Some(run))
    }

    /// Returns whether this has to be asked about a run.
    pub(super) fn is_unknown(&self, run: RunId) -> bool {
        self.run != Some(run) || self.is_doubted
    }

    /// Begins to ask about a run. What was known of it counts until the answer.
    pub(super) fn ask(&mut self, run: RunId) {
        let refusal = self.refusal.take().filter(|_| self.run == Some(run));
        *self = Self { run: Some(run), refusal, is_doubted: false };
    }

    /// Has this asked again.
    pub(crate) fn doubt(&mut self) {
        self.is_doubted = true;
    }

    /// Returns whether this run was asked about last.
    pub(super) fn is_of(&self, run: RunId) -> bool {
        self.run == Some(run)
    }

    /// Stores the answer; returns why the run could not be changed before.
    pub(super) fn store(&mut self, access: Result<(), String>) -> Option<String> {
        std::mem::replace(&mut self.refusal, access.err())
    }
}
