//! The access log of nginx's `stream`: a line when a connection ends, failed handshakes included.

use std::borrow::Cow;

use records::kinds::ConnectionOutcome;
use records::values::LogFigure;
use serde::Deserialize;

use super::{BadLine, LogFormat, fields};
use crate::event::{AbsentFigure, LogEvent, LoggedConnection, LoggedFailure, LoggedHandshake};
use crate::local_clock::LocalClock;

/// Reads our JSON.
#[derive(Debug)]
pub(super) struct NginxStream;

/// What its log cannot give.
pub(super) const ABSENT: &[AbsentFigure] = &[
    AbsentFigure { figure: LogFigure::Open, reason: "nginx logs a connection when it ends" },
    AbsentFigure { figure: LogFigure::HandshakeTime, reason: "nginx does not log how long a handshake took" },
    AbsentFigure { figure: LogFigure::HandshakeCpu, reason: "no log has it" },
    AbsentFigure { figure: LogFigure::HandshakeParts, reason: "no log has them" },
    AbsentFigure {
        figure: LogFigure::FailureCauses,
        reason: "the stream log says that one failed and not why, and does not have all",
    },
    AbsentFigure {
        figure: LogFigure::Groups,
        reason: "with OpenSSL before 3.5, to log the group of a handshake that failed ends nginx's worker",
    },
    AbsentFigure { figure: LogFigure::Exchange, reason: "the stream log has no times of exchanges" },
    AbsentFigure { figure: LogFigure::FullReasons, reason: "no log says why a client did not resume" },
];

/// A line in the format that `observe setup nginx-stream` prints.
#[derive(Debug, Deserialize)]
struct NginxStreamLine<'a> {
    #[serde(borrow)]
    time: Cow<'a, str>,
    #[serde(borrow)]
    client: Cow<'a, str>,
    #[serde(borrow, default)]
    version: Cow<'a, str>,
    #[serde(borrow, default)]
    cipher: Cow<'a, str>,
    #[serde(borrow, default)]
    group: Cow<'a, str>,
    /// A handshake with TLS 1.3 has one once it is complete.
    #[serde(borrow, default)]
    session: Cow<'a, str>,
    #[serde(borrow, default)]
    reused: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    alpn: Option<Cow<'a, str>>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(borrow, rename = "in")]
    bytes_in: Cow<'a, str>,
    #[serde(borrow, rename = "out")]
    bytes_out: Cow<'a, str>,
    #[serde(borrow)]
    took: Cow<'a, str>,
    #[serde(borrow, default)]
    connect: Cow<'a, str>,
}

impl LogFormat for NginxStream {
    fn parse<'a>(&mut self, line: &'a str, _clock: &mut LocalClock) -> Result<Option<LogEvent<'a>>, BadLine> {
        fields::json::<NginxStreamLine<'a>>(line)?.event().map(Some)
    }
}

impl<'a> NginxStreamLine<'a> {
    fn event(self) -> Result<LogEvent<'a>, BadLine> {
        let status = fields::status(&self.status)?;
        let connect = fields::seconds_sum(&self.connect, "connect")?;
        // A handshake that failed has a version. It has no cipher, unless a client of TLS 1.3 rejected what nginx had chosen.
        let has_cipher = !matches!(&*self.cipher, "" | "-" | "(NONE)");
        let is_rejected = &*self.version == "TLSv1.3" && self.session.is_empty() && connect.is_none();
        let is_failed_handshake = status == Some(500) && (!has_cipher || is_rejected);
        let handshake = fields::present(self.version).filter(|_| has_cipher && !is_failed_handshake);
        let handshake = handshake.map(|version| LoggedHandshake {
            version,
            cipher: fields::or_empty(self.cipher),
            group: fields::or_empty(self.group),
            name: self.name.map(fields::or_empty),
            alpn: self.alpn.map(fields::or_empty),
            is_resumed: self.reused == "r",
            took: None,
        });
        let failure = |outcome, detail| Some(LoggedFailure { outcome, detail: Cow::Borrowed(detail) });
        let failure = match status {
            Some(500) if is_failed_handshake => {
                failure(ConnectionOutcome::HandshakeOther, "handshake failed")
            }
            Some(502) if connect.is_none() => {
                failure(ConnectionOutcome::UpstreamConnect, "no upstream could be reached")
            }
            Some(502) => failure(ConnectionOutcome::UpstreamBroken, "the upstream broke"),
            _ => None,
        };
        let lifetime = fields::seconds(&self.took, "took")?;
        Ok(LogEvent {
            time_us: fields::seconds_us(&self.time, "time")?,
            connection: Some(LoggedConnection {
                handshake,
                failure,
                connect,
                lifetime,
                ..LoggedConnection::default()
            }),
            bytes_in: fields::bytes(&self.bytes_in, "in")?.unwrap_or(0),
            bytes_out: fields::bytes(&self.bytes_out, "out")?.unwrap_or(0),
            ..LogEvent::of(fields::client(&self.client)?)
        })
    }
}
