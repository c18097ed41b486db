//! The columns of the certificates.

use super::model::CertificateRow;
use crate::table::{CellValue, Column, ColumnUnit, Emphasis, NameId, Row};

type CertificateColumn = Column<CertificateRow>;

const COLUMNS: &[CertificateColumn] = &[
    CertificateColumn::named("name", "certificate", "its names")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.record.names))
        .fit(4, (24, 44)),
    CertificateColumn::named("days", "days left", "days to its last one; amber and red as it gets urgent")
        .shows(ColumnUnit::Count, |row| CellValue::Expiry(row.expiry()))
        .fit(0, (11, 11)),
    CertificateColumn::named("host", "host", "hosts that serve it, of several that are watched")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.hosts))
        .fit(1, (12, 24))
        .of_some(),
    CertificateColumn::named("key", "key", "the type of its key")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.record.key))
        .fit(2, (13, 13)),
    CertificateColumn::named("issuer", "issuer", "who has issued it")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.record.issuer))
        .fit(6, (12, 30)),
    CertificateColumn::named("handshakes", "full", "full handshakes of the run that it was presented in")
        .shows(ColumnUnit::Count, |row| CellValue::count(Some(row.record.handshakes)))
        .fit(1, (7, 9))
        .emphasis(Emphasis::Figure),
    CertificateColumn::named("chain", "chain", "certificates in its chain, this one included")
        .shows(ColumnUnit::Count, |row| CellValue::count(Some(row.record.chain)))
        .fit(8, (7, 9)),
    CertificateColumn::named("served", "served for", "how long it has been served")
        .shows(ColumnUnit::Text, |row| CellValue::Text(row.served_for().into()))
        .fit(5, (11, 11)),
    CertificateColumn::named(
        "stapled",
        "stapled",
        "whether an OCSP response is stapled; missing if it must be and is not",
    )
    .shows(ColumnUnit::Text, |row| CellValue::text(row.stapled()))
    .fit(7, (9, 9))
    .of_some(),
    CertificateColumn::named(
        "remark",
        "remark",
        "why its files are not in use as they are now, or what is wrong with its chain",
    )
    .shows(ColumnUnit::Text, |row| CellValue::text(row.remark()))
    .fit(3, (12, 60))
    .of_some(),
];

impl Row for CertificateRow {
    type Id = NameId;

    fn columns() -> &'static [Column<Self>] {
        COLUMNS
    }

    fn id(&self) -> NameId {
        self.id
    }

    fn tie(&self) -> u64 {
        self.record.not_after
    }
}
