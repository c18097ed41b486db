//! The kinds of records, and how each is encoded.

use journal::EntryBuf;

use super::{
    AlertRecord, Body, CertificateRecord, ClientRecord, ExperimentRecord, HealthRecord, HostRecord,
    HttpRecord, LoadRecord, MarkRecord, NoticeRecord, ProxyRecord, RequestRecord, RouteRecord, RunRecord,
    SettingRecord, TlsRecord, UpstreamRecord, UsageRecord,
};
use crate::kinds::{ConnectionRecord, HandshakeCosts};
use crate::metrics::Field;
use crate::wire::{DecodeError, FieldSource, WireFields};

/// One kind of record: its word, its `MESSAGE_ID`, and its syslog priority.
#[derive(Debug)]
pub struct RecordKind {
    /// The value of `TLSDASH_KIND`.
    pub word: &'static str,
    /// The value of `MESSAGE_ID`: fixed for all time.
    pub message_id: &'static str,
    /// The description, for the schema's document.
    pub meaning: &'static str,
}

static UNKNOWN: RecordKind = RecordKind { word: "unknown", message_id: "", meaning: "" };

macro_rules! kinds {
    ($($variant:ident($record:ty) $word:literal $id:literal $meaning:literal;)*) => {
        impl Body {
            /// The kinds of records, in the order of the document.
            pub const KINDS: &'static [RecordKind] = &[
                $(RecordKind { word: $word, message_id: $id, meaning: $meaning },)*
            ];

            pub fn kind(&self) -> &'static RecordKind {
                let word = match self { $(Self::$variant(_) => $word,)* Self::Unknown => return &UNKNOWN };
                Self::KINDS.iter().find(|kind| kind.word == word).expect("every variant stands in the list")
            }

            pub(crate) fn put(&self, out: &mut EntryBuf) {
                match self { $(Self::$variant(record) => record.put_all(out),)* Self::Unknown => {} }
            }

            pub(crate) fn get(kind: &str, from: &dyn FieldSource) -> Option<Result<Self, DecodeError>> {
                Some(match kind {
                    $($word => <$record>::get_all(from).map(Self::$variant),)*
                    _ => return None,
                })
            }

            /// The fields of a kind of record, besides those of all records.
            pub fn fields(kind: &str) -> Vec<Field> {
                match kind {
                    $($word => <$record>::fields(),)*
                    _ => Vec::new(),
                }
            }
        }
    };
}
kinds! {
    Run(Box<RunRecord>) "run" "10f6d52e277847bdadf59ab0e90b2c8c" "A run begins or ends; the end carries final totals and whole-run histograms.";
    Proxy(Box<ProxyRecord>) "proxy" "a3459c3e35e44596bf1e5c59614129fb" "The proxy's counts, once per interval.";
    Client(ClientRecord) "client" "5ce96029fce945efbe3fd04037fa4312" "The proxy's counts for one client, in intervals in which it was active.";
    Connection(Box<ConnectionRecord>) "connection" "b52863d8d43a43a8b2bb6f47612d48b6" "One connection: a failed one, or a sample of the others.";
    Tls(Box<TlsRecord>) "tls" "799ed3e134a4406dae32aefbd240d750" "Reasons of full handshakes and parts of their time, once per interval.";
    Usage(Box<UsageRecord>) "usage" "e3ebfe907b2744d79ccde7a39a3ca86c" "The proxy's counts for one TLS version, group, cipher, signature, protocol, certificate, server name or fingerprint, in intervals in which they changed.";
    Certificate(Box<CertificateRecord>) "certificate" "5a1c0f3e6d9b4c7f8e2a7b64d1f09c35" "A certificate that the proxy serves, or that an upstream presented: when it is first seen, when something changes, and once a minute.";
    Upstream(Box<UpstreamRecord>) "upstream" "b9ebe90d3ea14bc9808c859eec00c3de" "The proxy's counts for one upstream, and its state, in intervals in which something changed.";
    Http(Box<HttpRecord>) "http" "4295d788a4c94565b26226edbf43f6e7" "The proxy's counts of HTTP over all routes, once per interval in HTTP mode.";
    Route(Box<RouteRecord>) "route" "44ab7db4993d4c24ad62d2d630b2b8d2" "The proxy's counts for one route, in intervals in which it served requests.";
    Request(Box<RequestRecord>) "request" "e78f4bc777144f8392dea8b83dd76f0d" "One request: a failed one, one of the slowest of an interval, or a sample of the rest.";
    Load(Box<LoadRecord>) "load" "b3d3b6d2d3804929bfffe694b57aec40" "The load's counts, once per interval.";
    Setting(SettingRecord) "setting" "c5332e59fa0a40edb863f5d2d94d2289" "A setting was changed.";
    Calibration(Box<HandshakeCosts>) "calibration" "06ff7f241ab64736b7bbe7d945af8d34" "The cost of the parts of a handshake on this machine, measured on demand.";
    Mark(MarkRecord) "mark" "828eeca68486434c8a3c9e51c974725b" "A mark with a note in the time line.";
    Experiment(Box<ExperimentRecord>) "experiment" "1b3cb98c95c04a129eb8fdd905e30412" "An experiment begins, switches, completes a pair, or reaches its verdict.";
    Host(HostRecord) "host" "3f2c1f4e19bf4824868906e0e0f28675" "Resources that the process used, once per interval.";
    Health(HealthRecord) "health" "f7b83be0ff144c57a1e4ff96fe2b8217" "The writer's counts of its own losses.";
    Notice(NoticeRecord) "notice" "3f118674b6cb4643a27e7e3c9732cbc5" "A message to the operator, once per episode: a problem, or its end.";
    Alert(Box<AlertRecord>) "alert" "41a91f69b93746c9be29ff1267d59e2e" "An alert fires, resolves, or is withdrawn.";
}
