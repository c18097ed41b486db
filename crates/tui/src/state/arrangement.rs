//! The arrangement that is saved between starts: columns, order and panes.

use serde_json::{Value, json};

use super::State;
use crate::input::intent::{List, Preset};
use crate::panes::{PaneId, PaneLayout};
use crate::table::UnknownColumn;

/// The version of the text.
const VERSION: u64 = 1;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArrangementError {
    #[error("it is not JSON: {0}")]
    Json(String),
    #[error("it is of version {0}, not {VERSION}")]
    Version(String),
    #[error("{what} {name:?} does not exist")]
    Unknown { what: &'static str, name: String },
}

impl State {
    /// Returns the arrangement as text. Of a look at usage alone, it is that from before.
    pub(crate) fn kept(&self) -> String {
        let is_of_usage = self.panes.hidden == Preset::Only(PaneId::Usage).hidden();
        let panes = if is_of_usage { &self.usage.before } else { &self.panes };
        let rows = panes.rows.iter().map(|(id, rows)| (id.name().to_owned(), json!(rows)));
        let mut kept = json!({
            "version": VERSION,
            "panes": {
                "hidden": panes.hidden.iter().map(|id| id.name()).collect::<Vec<_>>(),
                "rows": rows.collect::<serde_json::Map<_, _>>(),
            },
        });
        for list in List::kept() {
            kept[list.name()] = self.table(list).kept();
        }
        format!("{kept:#}\n")
    }

    /// Returns the arrangement if it has changed since the last call.
    pub(crate) fn changed_arrangement(&mut self) -> Option<String> {
        let kept = self.kept();
        (kept != self.kept_text).then(|| {
            self.kept_text.clone_from(&kept);
            kept
        })
    }

    /// Takes an arrangement. What it does not name stays as it is.
    ///
    /// # Errors
    /// If it is not such a text, or names what does not exist; nothing is changed then.
    pub(crate) fn restore_arrangement(&mut self, text: &str) -> Result<(), ArrangementError> {
        let kept: Value =
            serde_json::from_str(text).map_err(|error| ArrangementError::Json(error.to_string()))?;
        if kept["version"] != json!(VERSION) {
            return Err(ArrangementError::Version(kept["version"].to_string()));
        }
        let mut tables = Vec::new();
        for list in List::kept() {
            let unknown = |UnknownColumn(name)| ArrangementError::Unknown { what: "the column", name };
            tables.push((list, self.table(list).read(&kept[list.name()]).map_err(unknown)?));
        }
        let hidden = names(&kept["panes"]["hidden"]).map(pane).collect::<Result<Vec<_>, _>>()?;
        let rows = kept["panes"]["rows"].as_object().into_iter().flatten();
        let rows = rows.filter_map(|(name, rows)| Some((name, u16::try_from(rows.as_u64()?).ok()?)));
        let rows = rows.map(|(name, rows)| Ok((pane(name)?, rows))).collect::<Result<Vec<_>, _>>()?;
        for (list, arrangement) in tables {
            self.table_mut(list).take(arrangement);
        }
        self.panes = PaneLayout::default();
        for id in hidden {
            self.panes.toggle(id);
        }
        for (id, rows) in rows {
            self.panes.resize(id, rows);
        }
        Ok(())
    }
}

fn names(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn pane(name: &str) -> Result<PaneId, ArrangementError> {
    let found = PaneId::ALL.into_iter().find(|id| id.name() == name);
    found.ok_or_else(|| ArrangementError::Unknown { what: "the pane", name: name.to_owned() })
}
