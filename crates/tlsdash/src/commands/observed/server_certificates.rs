//! The certificates that an observed terminator presents: `--certificate-of`.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use anyhow::Context;
use loadgen::FetchCertificatesError;
use records::kinds::{Level, NoticeRecord};
use records::setting::{Applies, Setting, Value, certificate_name};

use crate::service::thread::spawn;
use crate::session::console;
use crate::session::controller::CERTIFICATE;

/// The longest that a server may take to present its certificate.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The first and the longest wait before a server is asked again. The wait doubles, because a server that refuses the
/// handshake logs each as a failed one.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// A server whose certificate is asked for.
#[derive(Clone, Debug)]
pub(crate) struct CertificateSource {
    /// The server name to ask for; empty asks for none.
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
}

impl FromStr for CertificateSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, address) = text.split_once('@').unwrap_or(("", text));
        let address = address
            .parse()
            .map_err(|_| "expected ADDRESS:PORT or NAME@ADDRESS:PORT, such as 127.0.0.1:443".to_owned())?;
        Ok(Self { name: name.to_owned(), address })
    }
}

/// The certificates of `--certificate-of`, each as the setting that findings read.
pub(crate) struct ServerCertificates {
    /// One for each server; the value is unknown if the server has not presented its certificate.
    pub(crate) settings: Vec<Setting>,
    /// A warning for each of those.
    pub(crate) notices: Vec<NoticeRecord>,
    /// The settings of those, as soon as they are known.
    pub(crate) late: Receiver<Setting>,
}

impl ServerCertificates {
    /// Asks each server once, and those without an answer again in the background: the terminator may start after
    /// tlsdash.
    ///
    /// # Errors
    /// If a name cannot be asked for, or there can be no thread.
    pub(crate) fn ask(sources: &[CertificateSource]) -> anyhow::Result<Self> {
        let (mut settings, mut notices, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for (at, source) in sources.iter().enumerate() {
            let name = certificate_name(at);
            let text = match fetch(source) {
                Ok(text) => {
                    crate::say(format_args!("certificate of {}: {text}", source.address));
                    text
                }
                Err(error) if matches!(error.downcast_ref(), Some(FetchCertificatesError::Setup(_))) => {
                    return Err(error);
                }
                Err(error) => {
                    let notice =
                        NoticeRecord::new(Level::Warning, CERTIFICATE, &format!("{error:#}; trying again"));
                    console::report_early(&notice);
                    notices.push(notice);
                    missing.push((name.clone(), source.clone()));
                    "unknown".to_owned()
                }
            };
            settings.push(setting(name, text));
        }
        let (tell, late) = channel();
        if !missing.is_empty() {
            // CPU time is accounted by the beginning of the name.
            spawn("observe-certs", move || ask_again(missing, &tell))?;
        }
        Ok(Self { settings, notices, late })
    }
}

fn ask_again(mut missing: Vec<(String, CertificateSource)>, tell: &Sender<Setting>) {
    let [mut wait, longest] = WAITS;
    while !missing.is_empty() {
        std::thread::sleep(wait);
        wait = (wait * 2).min(longest);
        missing.retain(|(name, source)| match fetch(source) {
            // The run may have ended.
            Ok(text) => tell.send(setting(name.clone(), text)).is_err(),
            Err(_) => true,
        });
    }
}

fn fetch(source: &CertificateSource) -> anyhow::Result<String> {
    let address = source.address;
    let chain = loadgen::fetch_certificates(address, &source.name, TIMEOUT)
        .with_context(|| format!("cannot ask --certificate-of {address} for its certificate"))?;
    proxy_core::describe_chain(&chain).with_context(|| format!("cannot read the certificate of {address}"))
}

fn setting(name: String, text: String) -> Setting {
    Setting { name, value: Value::Text(text), unit: String::new(), applies: Applies::Restart, range: None }
}
