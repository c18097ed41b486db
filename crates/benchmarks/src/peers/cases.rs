//! The cases in which the terminators are compared.

use loadgen::{Template, TlsOptions, TlsVersion};

use super::{CertificateKey, PeerKind};

/// One case.
#[derive(Debug)]
pub struct PeerCase {
    /// Its name in tables.
    pub name: &'static str,
    /// The figure that is measured.
    pub figure: PeerFigure,
    /// The load, as options of `--load`.
    pub plan: &'static str,
    /// The request and answer.
    pub exchange: PeerExchange,
    /// The TLS version.
    pub version: TlsVersion,
    /// The server's certificate.
    pub key: CertificateKey,
    /// The program's goal.
    pub goals: &'static [Goal],
}

/// A measured figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerFigure {
    /// Requests answered per CPU-second of all its processes: more is better.
    Work,
    /// Resident memory per idle connection that has had an answer, in KiB.
    KibPerConnection,
    /// Resident memory before the first connection, in MiB.
    MibWithoutConnection,
}

impl PeerFigure {
    /// Returns its unit for tables.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Work => "requests a CPU-second",
            Self::KibPerConnection => "KiB a connection",
            Self::MibWithoutConnection => "MiB",
        }
    }
}

/// A request and its answer, by the bytes of their bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerExchange {
    /// This many bytes are downloaded.
    Get(u64),
    /// This many bytes are uploaded and echoed.
    Post(usize),
}

impl PeerExchange {
    /// Returns the request. Its host is that of the certificate, as sozu requires.
    pub fn request(self) -> Template {
        let request = match self {
            Self::Get(bytes) => Template::get(format!("/bytes/{bytes}")),
            Self::Post(bytes) => Template::post("/echo", bytes),
        };
        Template { headers: vec![("Host".to_owned(), "localhost".to_owned())], ..request }
    }
}

/// A goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// This many times the work of a peer.
    Times(PeerKind, f64),
    /// At most this value.
    AtMost(f64),
}

/// The cases, in the order in which they are run.
pub const CASES: &[PeerCase] = &[
    PeerCase {
        name: "full handshake",
        plan: "connections=16,keepalive=off,resume=0%",
        goals: &[Goal::Times(PeerKind::NginxStream, 2.3), Goal::Times(PeerKind::Sozu, 1.5)],
        ..WORK
    },
    PeerCase {
        name: "full handshake, RSA-2048",
        plan: "connections=16,keepalive=off,resume=0%",
        key: CertificateKey::Rsa,
        goals: &[Goal::Times(PeerKind::NginxStream, 1.5), Goal::Times(PeerKind::Sozu, 1.2)],
        ..WORK
    },
    PeerCase {
        name: "resumed, TLS 1.3",
        plan: "connections=16,keepalive=off,resume=100%",
        goals: &[Goal::Times(PeerKind::NginxStream, 1.8), Goal::Times(PeerKind::Sozu, 1.25)],
        ..WORK
    },
    PeerCase {
        name: "resumed, TLS 1.2",
        plan: "connections=16,keepalive=off,resume=100%",
        version: TlsVersion::V12,
        goals: &[Goal::Times(PeerKind::NginxStream, 1.35)],
        ..WORK
    },
    PeerCase { name: "13 B, kept", goals: &[Goal::Times(PeerKind::NginxStream, 1.1)], ..WORK },
    PeerCase {
        name: "10 kB, kept",
        exchange: PeerExchange::Get(10_240),
        goals: &[Goal::Times(PeerKind::Hitch, 1.15)],
        ..WORK
    },
    PeerCase {
        name: "100 kB, 16 connections",
        plan: "connections=16,keepalive=on",
        exchange: PeerExchange::Get(102_400),
        goals: &[Goal::Times(PeerKind::NginxStream, 1.65)],
        ..WORK
    },
    PeerCase {
        name: "100 kB, 160 connections",
        plan: "connections=160,keepalive=on",
        exchange: PeerExchange::Get(102_400),
        goals: &[Goal::Times(PeerKind::NginxStream, 1.6)],
        ..WORK
    },
    PeerCase {
        name: "POST 10 kB, 3,000 connections",
        plan: "connections=3000,keepalive=on",
        exchange: PeerExchange::Post(10_000),
        goals: &[Goal::Times(PeerKind::Haproxy, 1.5)],
        ..WORK
    },
    PeerCase {
        name: "memory, idle connection",
        figure: PeerFigure::KibPerConnection,
        // One after the other, with one request each.
        plan: "connections=3000,keepalive=on,rate=1000",
        goals: &[Goal::AtMost(7.0)],
        ..WORK
    },
    PeerCase {
        name: "memory, idle after 3,000 at once",
        figure: PeerFigure::KibPerConnection,
        plan: "connections=3000,keepalive=on",
        ..WORK
    },
    PeerCase {
        name: "memory, no connection",
        figure: PeerFigure::MibWithoutConnection,
        // 12 MB.
        goals: &[Goal::AtMost(11.44)],
        ..WORK
    },
];

/// The common part of most cases.
pub(super) const WORK: PeerCase = PeerCase {
    name: "",
    figure: PeerFigure::Work,
    plan: "connections=64,keepalive=on",
    exchange: PeerExchange::Get(13),
    version: TlsVersion::V13,
    key: CertificateKey::Ecdsa,
    goals: &[],
};

impl PeerCase {
    /// Returns the clients' TLS options: one cipher suite and one key exchange, so that all terminators
    /// negotiate the same.
    pub fn tls(&self) -> TlsOptions {
        let ciphers: &[&str] = match self.version {
            TlsVersion::V13 => &["TLS13_AES_128_GCM_SHA256"],
            TlsVersion::V12 => {
                &["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]
            }
        };
        // With TLS 1.2, OpenSSL requires the curve of an ECDSA certificate among the groups, too.
        let groups = ["X25519", "secp256r1"];
        TlsOptions {
            version: Some(self.version),
            ciphers: ciphers.iter().map(|&name| name.to_owned()).collect(),
            groups: groups.map(str::to_owned).to_vec(),
            server_name: Some("localhost".to_owned()),
            ..TlsOptions::default()
        }
    }
}
