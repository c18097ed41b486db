//! Everything about one certificate.

use records::text::quantity::{counted, day, moment};

use super::model::CertificateRow;
use crate::state::State;
use crate::theme::format;
use crate::widgets::detail::{Details, NamedLine};

pub(super) fn details(state: &State) -> Option<Details> {
    let row = state.certificates.rows.row(state.certificates.rows.table.opened?);
    Some(Details {
        cells: 110,
        title: format!("certificate {}", row.map_or("", |row| row.record.name())),
        lines: row.map_or_else(Vec::new, lines),
        gone: "it is served no longer",
    })
}

fn lines(row: &CertificateRow) -> Vec<NamedLine> {
    let record = &row.record;
    let more = if record.more_names > 0 { format!(" and {} more", record.more_names) } else { String::new() };
    let none = |text: &str, without: &str| if text.is_empty() { without } else { text }.to_owned();
    let staple = match (record.stapled_until, row.stapled()) {
        (0, "missing") => "missing, and it demands one".to_owned(),
        (0, _) => "none".to_owned(),
        (until, _) => format!("until {}", day(until)),
    };
    let by_default =
        if record.is_default { "; also clients without a name of a certificate get it" } else { "" };
    let days = match row.expiry().days {
        ..=-1 => "expired".to_owned(),
        1 => "1 day left".to_owned(),
        days => format!("{} days left", format::count(days.unsigned_abs())),
    };
    let renewal = match (record.renewal_at, &*record.renewal_error) {
        (0, _) => "not by ACME".to_owned(),
        (at, "") => format!("by ACME, after {}", moment(at)),
        (at, error) => format!("by ACME, fails; again after {}: {error}", moment(at)),
    };
    let hosts = (!row.hosts.is_empty()).then(|| ("hosts", row.hosts.clone()));
    let all = [
        ("names", format!("{}{more}", record.names)),
        ("issuer", record.issuer.clone()),
        ("serial", record.serial.clone()),
        ("sha256", format!("{}…", record.fingerprint)),
        ("key", record.key.clone()),
        ("valid", format!("{} to {}, {}", day(record.not_before), day(record.not_after), days)),
        (
            "chain",
            format!("{}, {} bytes", counted(record.chain, "certificate"), format::count(record.chain_bytes)),
        ),
        ("file", none(&record.file, "made in memory")),
        ("served", format!("for {}{by_default}", row.served_for())),
        ("handshakes", format!("{} full", format::count(record.handshakes))),
        ("OCSP", staple),
        ("renewal", renewal),
        ("faults", none(&record.faults, "none known")),
        (
            "not loaded",
            none(
                &record.refusal,
                if record.file.is_empty() { "it has no files" } else { "its files are in use as they are" },
            ),
        ),
    ];
    hosts.into_iter().chain(all).collect()
}
