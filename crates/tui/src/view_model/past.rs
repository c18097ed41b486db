//! Settings and clients at an earlier moment of a run.

use model::runs::Run;
use records::ids::ClientId;

use super::span::Span;
use crate::panes::tables::clients::model::{ClientLatency, ClientRow, recent_until};

/// Settings whose values are listed first.
const MAIN: [&str; 4] = ["load.rate", "load.resume", "load.connections", "proxy.workers"];

/// A setting at an earlier moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PastSetting {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) unit: String,
    /// Its present value, if it differs.
    pub(crate) now: Option<String>,
}

/// Settings with their values at a moment: those that were changed since first, then those that matter most.
pub(crate) fn settings_at(run: &Run, us: u64) -> Vec<PastSetting> {
    let then = |setting: &records::setting::Setting| {
        let (value, now) = (run.setting_at(us.saturating_sub(1), &setting.name)?, setting.value.to_string());
        let now = (now != value).then_some(now);
        Some(PastSetting { name: setting.name.clone(), value, unit: setting.unit.clone(), now })
    };
    let mut all: Vec<PastSetting> = run.settings().iter().filter_map(then).collect();
    all.retain(|then| then.now.is_some() || MAIN.contains(&&*then.name));
    all.sort_by_key(|then| (then.now.is_none(), MAIN.iter().position(|name| *name == then.name)));
    all
}

/// A client's row as it was at a moment, with rates and latencies over so many microseconds; without what its kept
/// records do not reach back to.
pub(crate) fn client_at(run: &Run, id: ClientId, us: u64, span_us: u64) -> ClientRow {
    let Some(client) = run.client(id) else { return ClientRow::unknown(id) };
    let mut then = ClientRow::at(client, us);
    then.set_recent(run, recent_until(client, us, span_us));
    then.latency = ClientLatency::until(client, us, Span::Last(span_us));
    then
}
