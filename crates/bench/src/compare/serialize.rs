//! How words of other crates are written in JSON.

use std::fmt::Display;

use model::figures::FigureUnit;
use serde::Serializer;

/// The unit's symbol; `null` for plain numbers and shares.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn unit<S: Serializer>(unit: &FigureUnit, serializer: S) -> Result<S::Ok, S::Error> {
    match unit.symbol() {
        "" => serializer.serialize_none(),
        symbol => serializer.serialize_str(symbol),
    }
}

/// As it is displayed.
pub(crate) fn text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
