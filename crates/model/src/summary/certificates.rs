//! Certificates in a summary.

use serde::Serialize;

use crate::runs::{KnownCertificate, Run};

/// A certificate as it was when its last record was made.
#[derive(Clone, Debug, Serialize)]
pub struct CertificateSummary {
    /// The names of the runs that serve it; absent unless several are merged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    pub names: Vec<String>,
    #[serde(skip_serializing_if = "is_zero")]
    pub more_names: u64,
    pub issuer: String,
    pub serial: String,
    /// The beginning of its fingerprint.
    pub sha256: String,
    pub key: String,
    /// Certificates in the chain, and their bytes.
    pub chain: u64,
    pub chain_bytes: u64,
    /// Its validity, and since when it is served, in seconds since 1970.
    pub not_before: u64,
    pub not_after: u64,
    pub since: u64,
    /// Whole days of validity left at the run's last record; negative after the end.
    pub days_left: i64,
    /// Full handshakes of the run.
    pub handshakes: u64,
    /// Whether clients without a name of a certificate get it.
    pub default: bool,
    /// When the stapled OCSP response ends, in seconds since 1970; 0 if none is stapled.
    pub stapled_until: u64,
    pub must_staple: bool,
    /// Absent if it was made in memory.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// What is wrong with the chain; absent if nothing is known to be.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub faults: String,
    /// Why its files, as they are now, are not in use; absent if they are.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub refusal: String,
    /// When it is ordered next by ACME, in seconds since 1970; absent if it is not.
    #[serde(skip_serializing_if = "is_zero")]
    pub renewal_at: u64,
    /// Why the last order by ACME has failed; absent if it has not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub renewal_error: String,
    /// Whether another one has replaced it.
    pub replaced: bool,
}

impl CertificateSummary {
    /// All certificates of a run: those in use first, and of these the one that ends first.
    pub fn all(run: &Run) -> Vec<Self> {
        let now = run.last_realtime_us() / 1_000_000;
        let mut all: Vec<_> = run.certificates().all().iter().map(|known| Self::of(known, now)).collect();
        all.sort_by_key(|one| (one.replaced, one.not_after));
        all
    }

    fn of(known: &KnownCertificate, now: u64) -> Self {
        let KnownCertificate { record, hosts } = known.clone();
        let days_left = record.days_left(now);
        Self {
            hosts,
            names: record.names.split_terminator(' ').map(str::to_owned).collect(),
            more_names: record.more_names,
            issuer: record.issuer,
            serial: record.serial,
            sha256: record.fingerprint,
            key: record.key,
            chain: record.chain,
            chain_bytes: record.chain_bytes,
            not_before: record.not_before,
            not_after: record.not_after,
            since: record.since,
            days_left,
            handshakes: record.handshakes,
            default: record.is_default,
            stapled_until: record.stapled_until,
            must_staple: record.must_staple,
            file: record.file,
            faults: record.faults,
            refusal: record.refusal,
            renewal_at: record.renewal_at,
            renewal_error: record.renewal_error,
            replaced: record.is_replaced,
        }
    }

    /// Its first name, and how many others it has.
    pub fn name(&self) -> String {
        let first = self.names.first().map_or("no name", |name| name);
        match self.more_names.saturating_add(self.names.len() as u64) {
            0 | 1 => first.to_owned(),
            all => format!("{first} and {} more", all - 1),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
