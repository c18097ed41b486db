//! The columns of the certificates.

use super::model::CertificateRow;
use crate::table::{CellValue, Column, ColumnUnit, Emphasis, NameId, Row};

const FIGURE: Column<CertificateRow> = Column { rank: 4, cells: (7, 9), ..Column::FIGURE };
const TEXT: Column<CertificateRow> = Column { unit: ColumnUnit::Text, ..FIGURE };

const COLUMNS: &[Column<CertificateRow>] = &[
    Column {
        name: "name",
        heading: "certificate",
        meaning: "its names",
        cells: (24, 44),
        value: |row| CellValue::text(&row.record.names),
        ..TEXT
    },
    Column {
        name: "days",
        heading: "days left",
        meaning: "days to its last one; amber and red as it gets urgent",
        cells: (11, 11),
        rank: 0,
        value: |row| CellValue::Expiry(row.expiry()),
        ..FIGURE
    },
    Column {
        name: "key",
        heading: "key",
        meaning: "the type of its key",
        cells: (13, 13),
        rank: 2,
        value: |row| CellValue::text(&row.record.key),
        ..TEXT
    },
    Column {
        name: "issuer",
        heading: "issuer",
        meaning: "who has issued it",
        cells: (12, 30),
        rank: 6,
        value: |row| CellValue::text(&row.record.issuer),
        ..TEXT
    },
    Column {
        name: "handshakes",
        heading: "full",
        meaning: "full handshakes of the run that it was presented in",
        emphasis: Emphasis::Figure,
        cells: (7, 9),
        rank: 1,
        value: |row| CellValue::count(Some(row.record.handshakes)),
        ..FIGURE
    },
    Column {
        name: "chain",
        heading: "chain",
        meaning: "certificates in its chain, this one included",
        rank: 8,
        value: |row| CellValue::count(Some(row.record.chain)),
        ..FIGURE
    },
    Column {
        name: "served",
        heading: "served for",
        meaning: "how long it has been served",
        cells: (11, 11),
        rank: 5,
        value: |row| CellValue::Text(row.served_for().into()),
        ..TEXT
    },
    Column {
        name: "stapled",
        heading: "stapled",
        meaning: "whether an OCSP response is stapled; missing if it must be and is not",
        cells: (9, 9),
        rank: 7,
        is_of_some: true,
        value: |row| CellValue::text(row.stapled()),
        ..TEXT
    },
    Column {
        name: "remark",
        heading: "remark",
        meaning: "why its files are not in use as they are now, or what is wrong with its chain",
        cells: (12, 60),
        rank: 3,
        is_of_some: true,
        value: |row| CellValue::text(row.remark()),
        ..TEXT
    },
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
