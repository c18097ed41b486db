//! Why a line cannot be read.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLine {
    /// Its JSON is not ours, or cut.
    #[error("{0}")]
    Json(String),
    /// A field is not what it must be.
    #[error("its {0} cannot be read")]
    Field(&'static str),
    /// A field has a value that it cannot have.
    #[error("its {0} is not plausible")]
    Implausible(&'static str),
    /// It is of no format that is known.
    #[error("it is of no known format")]
    Unknown,
}
