//! Where records go.

use crate::record::Record;

/// Where records go.
pub trait Sink {
    /// Takes one record, or says why not. It must not wait.
    ///
    /// # Errors
    /// When the record is not in the journal; the same record may be offered again after [`Refusal::Later`].
    fn accept(&mut self, record: &Record) -> Result<(), Refusal>;

    /// Called when there is no further record for the moment.
    ///
    /// # Errors
    /// When records that were accepted may not be readable.
    fn flush(&mut self) -> Result<(), String>;
}

/// Keeps all records in memory.
impl Sink for Vec<Record> {
    fn accept(&mut self, record: &Record) -> Result<(), Refusal> {
        self.push(record.clone());
        Ok(())
    }

    fn flush(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Why a journal does not accept a record, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It may take the record, or any other, later: a full disk, a journald that is busy or away.
    #[error("{0}")]
    Later(String),
    /// It will never take this record; others it may.
    #[error("{0}")]
    Never(String),
}
