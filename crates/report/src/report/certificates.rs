//! The table of certificates, for the page and for Markdown.

use model::summary::CertificateSummary;

use crate::numbers::{grouped, iso};
use crate::report::Report;
use crate::table::Heading::{Number, Words};
use crate::table::ReportTable;

impl Report<'_> {
    /// The certificates, those in use first, and of these the one that ends first.
    pub(crate) fn certificate_rows(&self) -> ReportTable {
        let all = || self.summary.proxy.iter().flat_map(|proxy| &proxy.certificates);
        let is_of_several = all().any(|one| !one.hosts.is_empty());
        let row = |one: &CertificateSummary| {
            let remarks = [
                &*one.faults,
                &*one.refusal,
                &*one.renewal_error,
                if one.replaced { "replaced" } else { "" },
            ];
            let remarks: Vec<_> = remarks.into_iter().filter(|remark| !remark.is_empty()).collect();
            let hosts = is_of_several.then(|| one.hosts.join(", "));
            let mut cells = vec![
                one.name(),
                one.key.clone(),
                iso(one.not_after.saturating_mul(1_000_000)),
                one.days_left.to_string(),
                one.chain.to_string(),
                grouped(one.chain_bytes),
                grouped(one.handshakes),
                one.issuer.clone(),
                one.serial.clone(),
                remarks.join("; "),
            ];
            cells.splice(1..1, hosts);
            cells
        };
        let mut columns = vec![
            Words("certificate"),
            Words("key"),
            Words("valid until"),
            Number("days left"),
            Number("chain"),
            Number("chain bytes"),
            Number("full handshakes"),
            Words("issuer"),
            Words("serial"),
            Words("remarks"),
        ];
        columns.splice(1..1, is_of_several.then_some(Words("hosts")));
        ReportTable::new("Certificates", columns, all().map(row))
    }
}
