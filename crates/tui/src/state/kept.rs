//! What is kept of the arrangement from one start to the next: columns, order and panes.

use serde_json::{Value, json};

use super::{Effect, PaneId, PaneLayout, State};
use crate::table::{Column, Row};
use crate::view_model::ClientRow;

/// The version of the text.
const VERSION: u64 = 1;

/// Why a kept arrangement cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeptError {
    #[error("it is not JSON: {0}")]
    Json(String),
    #[error("it is of version {0}, not {VERSION}")]
    Version(String),
    #[error("{what} {name:?} does not exist")]
    Unknown { what: &'static str, name: String },
}

impl State {
    /// Returns the arrangement as text.
    pub(crate) fn kept(&self) -> String {
        let name = |&at: &usize| ClientRow::COLUMNS[at].name;
        let rows = self.panes.rows.iter().map(|(id, rows)| (id.name().to_owned(), json!(rows)));
        let kept = json!({
            "version": VERSION,
            "clients": {
                "columns": self.clients.columns.iter().map(name).collect::<Vec<_>>(),
                "sort": name(&self.clients.order.column),
                "descending": self.clients.order.is_descending,
            },
            "panes": {
                "hidden": self.panes.hidden.iter().map(|id| id.name()).collect::<Vec<_>>(),
                "rows": rows.collect::<serde_json::Map<_, _>>(),
            },
        });
        format!("{kept:#}\n")
    }

    /// Adds an effect that keeps the arrangement if it has changed.
    pub(super) fn keep(&mut self, mut effects: Vec<Effect>) -> Vec<Effect> {
        let kept = self.kept();
        if kept != self.kept_text {
            self.kept_text.clone_from(&kept);
            effects.push(Effect::Keep(kept));
        }
        effects
    }

    /// Takes an arrangement. What it does not name stays as it is.
    ///
    /// # Errors
    /// If it is not such a text, or names what does not exist; nothing is changed then.
    pub(crate) fn restore_arrangement(&mut self, text: &str) -> Result<(), KeptError> {
        let kept: Value = serde_json::from_str(text).map_err(|error| KeptError::Json(error.to_string()))?;
        if kept["version"] != json!(VERSION) {
            return Err(KeptError::Version(kept["version"].to_string()));
        }
        let mut columns = vec![0];
        for name in names(&kept["clients"]["columns"]) {
            let at = column(name)?;
            if !columns.contains(&at) {
                columns.push(at);
            }
        }
        let sort = kept["clients"]["sort"].as_str().map(column).transpose()?;
        let hidden = names(&kept["panes"]["hidden"]).map(pane).collect::<Result<Vec<_>, _>>()?;
        let rows = kept["panes"]["rows"].as_object().into_iter().flatten();
        let rows = rows.filter_map(|(name, rows)| Some((name, u16::try_from(rows.as_u64()?).ok()?)));
        let rows = rows.map(|(name, rows)| Ok((pane(name)?, rows))).collect::<Result<Vec<_>, _>>()?;
        if columns.len() > 1 {
            self.clients.columns = columns;
        }
        if let Some(sort) = sort {
            self.clients.order.column = sort;
            self.clients.order.is_descending = kept["clients"]["descending"].as_bool().unwrap_or(true);
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

fn column(name: &str) -> Result<usize, KeptError> {
    let found = ClientRow::COLUMNS.iter().position(|column: &Column<ClientRow>| column.name == name);
    found.ok_or_else(|| KeptError::Unknown { what: "the column", name: name.to_owned() })
}

fn pane(name: &str) -> Result<PaneId, KeptError> {
    let found = PaneId::ALL.into_iter().find(|id| id.name() == name);
    found.ok_or_else(|| KeptError::Unknown { what: "the pane", name: name.to_owned() })
}
