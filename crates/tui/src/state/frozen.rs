//! The view at one moment, kept while reading goes on.
//!
//! The figures are kept and not the model: a model cannot be copied cheaply, and collection must go on in it. What
//! the figures do not hold, the clients' sparklines, is taken at the moment of freezing.

use std::collections::HashMap;

use telemetry::ClientId;
use telemetry::model::Run;

use crate::clock::Now;
use crate::figures::{self, Figures, History};

/// The moment that is shown.
pub(super) struct Frozen {
    pub(super) since: Now,
    pub(super) figures: Figures,
    histories: HashMap<ClientId, History>,
}

impl Frozen {
    /// Keeps what is shown now.
    pub(super) fn new(figures: Figures, run: &Run, now: Now) -> Self {
        let histories = figures.clients.iter().map(|row| (row.id, figures::history(run, row.id))).collect();
        Self { since: now, figures, histories }
    }

    /// What the client had done when the view was frozen.
    pub(super) fn history(&self, id: ClientId) -> History {
        self.histories.get(&id).cloned().unwrap_or_default()
    }
}
