//! The certificate that is ordered by ACME: where it is, how it is served until it comes, and the thread that renews it.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use acme::{AcmeClient, AcmeConfig, AcmeStore, Renewal, RenewalOutcome, RenewalReport, Renewer, Responder};
use anyhow::Context;
use proxy_core::{AcmeChallenges, Certificate, Tls};
use proxy_http::FindChallenge;
use records::kinds::CertificateRecord;
use records::text::clean;

use crate::cli::ProxyOptions;
use crate::cli::usage;
use crate::journals::state_directory;
use crate::service::privileges::ServiceUser;

/// An order that has been checked, before anything is bound.
pub(crate) struct AcmeOrder {
    config: AcmeConfig,
    responder: Responder,
    folder: PathBuf,
}

impl AcmeOrder {
    /// The order of the options; `None` without a domain.
    ///
    /// # Errors
    /// If a value cannot be used, or there is no state directory.
    pub(crate) fn of(options: &ProxyOptions) -> anyhow::Result<Option<Self>> {
        let Some((config, responder)) = options.acme.order(options.redirect_http.is_some())? else {
            return Ok(None);
        };
        let folder = state_directory::acme_folder()?;
        Ok(Some(Self { config, responder, folder }))
    }

    /// Serves its certificate, or one made in memory until there is one, and answers challenges.
    ///
    /// # Errors
    /// If none can be made.
    pub(crate) fn serve(&self, tls: &mut Tls) -> anyhow::Result<()> {
        let file = AcmeStore::certificate_in(&self.folder);
        let stored = file.exists().then(|| Certificate::load(&file, &file));
        let certificate = match stored {
            Some(Ok(certificate)) => certificate,
            Some(Err(error)) => {
                crate::say(format_args!("warning: {error}; another one is ordered"));
                self.generate(&file)?
            }
            None => self.generate(&file)?,
        };
        tls.certificates.push(certificate);
        if let Responder::TlsAlpn01(answers) = self.responder.clone() {
            tls.challenges = Some(AcmeChallenges::new(move |domain| answers.find(domain)));
        }
        Ok(())
    }

    fn generate(&self, file: &Path) -> anyhow::Result<Certificate> {
        Certificate::generate_until(file, &self.config.domains).context("cannot make a certificate")
    }

    /// The responses to challenges by request, by their tokens; none without an order.
    pub(crate) fn http_challenges(order: Option<&Self>) -> Box<FindChallenge> {
        match order.map(|order| order.responder.clone()) {
            Some(Responder::Http01(answers)) => {
                Box::new(move |token| answers.find(token).and_then(|answer| String::from_utf8(answer).ok()))
            }
            _ => Box::new(|_| None),
        }
    }

    /// Opens the folder of account and certificate, for `user` if the program becomes somebody else.
    ///
    /// # Errors
    /// If it cannot be written to.
    pub(crate) fn open(&self, user: Option<&ServiceUser>) -> anyhow::Result<()> {
        state_directory::make()?;
        AcmeStore::open(&self.folder)?;
        user.map_or(Ok(()), |user| user.give(&self.folder))
    }

    /// Starts the thread that orders and renews.
    ///
    /// # Errors
    /// If the folder or the authorities cannot be used, or there is no thread.
    pub(crate) fn start(self) -> anyhow::Result<OrderedCertificate> {
        let Self { config, responder, folder } = self;
        let store = AcmeStore::open(&folder)?;
        let file = store.certificate();
        let client = AcmeClient::new(config.clone(), responder, store.clone())
            .map_err(|error| usage(format!("--acme-ca: {error}")))?;
        let renewal = Renewal::new(client, config, store, fastrand::f64());
        let renewer = Renewer::start(renewal).context("cannot start the thread acme")?;
        Ok(OrderedCertificate {
            renewer: Some(renewer),
            file: clean::text(&file.to_string_lossy()),
            last: None,
        })
    }
}

/// The certificate that is ordered, and how its renewal stands.
#[derive(Debug)]
pub(crate) struct OrderedCertificate {
    /// `None` once this process leaves that to another, or ends.
    renewer: Option<Renewer>,
    /// Its file, as records name it.
    file: String,
    last: Option<RenewalReport>,
}

impl OrderedCertificate {
    /// The next change, if there is one.
    pub(crate) fn poll(&mut self) -> Option<&RenewalReport> {
        let report = self.renewer.as_ref().and_then(Renewer::poll)?;
        Some(self.last.insert(report))
    }

    pub(crate) fn stop(&mut self) {
        self.renewer = None;
    }

    /// Adds how renewal stands to the record of the certificate.
    pub(crate) fn describe(&self, certificates: &mut [CertificateRecord]) {
        let Some(report) = &self.last else { return };
        let seconds = report.next.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        for record in certificates.iter_mut().filter(|record| record.file == self.file && !record.is_replaced)
        {
            record.renewal_at = seconds;
            if let RenewalOutcome::Failed { error, .. } = &report.outcome {
                record.renewal_error = clean::text(error);
            }
        }
    }
}
