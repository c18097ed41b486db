//! The arrangement that is saved between starts: columns, order and panes.

use serde_json::{Value, json};

use super::List;
use super::{Effect, PaneId, PaneLayout, State};
use crate::table::{Column, Row, TableState};

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
    /// Returns the arrangement as text.
    pub(crate) fn kept(&self) -> String {
        let rows = self.panes.rows.iter().map(|(id, rows)| (id.name().to_owned(), json!(rows)));
        let kept = json!({
            "version": VERSION,
            List::Clients.name(): table(&self.clients),
            List::Routes.name(): table(&self.routes),
            List::Requests.name(): table(&self.requests.table),
            List::Usage.name(): table(&self.usage.table),
            List::Hosts.name(): table(&self.hosts.table),
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
    pub(crate) fn restore_arrangement(&mut self, text: &str) -> Result<(), ArrangementError> {
        let kept: Value =
            serde_json::from_str(text).map_err(|error| ArrangementError::Json(error.to_string()))?;
        if kept["version"] != json!(VERSION) {
            return Err(ArrangementError::Version(kept["version"].to_string()));
        }
        let clients = restored(&self.clients, &kept[List::Clients.name()])?;
        let routes = restored(&self.routes, &kept[List::Routes.name()])?;
        let requests = restored(&self.requests.table, &kept[List::Requests.name()])?;
        let usage = restored(&self.usage.table, &kept[List::Usage.name()])?;
        let hosts = restored(&self.hosts.table, &kept[List::Hosts.name()])?;
        let hidden = names(&kept["panes"]["hidden"]).map(pane).collect::<Result<Vec<_>, _>>()?;
        let rows = kept["panes"]["rows"].as_object().into_iter().flatten();
        let rows = rows.filter_map(|(name, rows)| Some((name, u16::try_from(rows.as_u64()?).ok()?)));
        let rows = rows.map(|(name, rows)| Ok((pane(name)?, rows))).collect::<Result<Vec<_>, _>>()?;
        (self.clients, self.routes, self.requests.table) = (clients, routes, requests);
        (self.usage.table, self.hosts.table) = (usage, hosts);
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

/// Returns columns and order of a table.
fn table<R: Row>(table: &TableState<R>) -> Value {
    let name = |&at: &usize| R::columns()[at].name;
    json!({
        "columns": table.columns.iter().map(name).collect::<Vec<_>>(),
        "sort": name(&table.order.column),
        "descending": table.order.is_descending,
    })
}

/// Returns a table with the columns and the order that were kept.
fn restored<R: Row>(table: &TableState<R>, kept: &Value) -> Result<TableState<R>, ArrangementError> {
    let mut table = table.clone();
    let mut columns = vec![0];
    for name in names(&kept["columns"]) {
        let at = column::<R>(name)?;
        if !columns.contains(&at) {
            columns.push(at);
        }
    }
    if columns.len() > 1 {
        table.columns = columns;
    }
    if let Some(sort) = kept["sort"].as_str().map(column::<R>).transpose()? {
        table.order.column = sort;
        table.order.is_descending = kept["descending"].as_bool().unwrap_or(true);
    }
    Ok(table)
}

fn column<R: Row>(name: &str) -> Result<usize, ArrangementError> {
    let found = R::columns().iter().position(|column: &Column<R>| column.name == name);
    found.ok_or_else(|| ArrangementError::Unknown { what: "the column", name: name.to_owned() })
}

fn pane(name: &str) -> Result<PaneId, ArrangementError> {
    let found = PaneId::ALL.into_iter().find(|id| id.name() == name);
    found.ok_or_else(|| ArrangementError::Unknown { what: "the pane", name: name.to_owned() })
}
