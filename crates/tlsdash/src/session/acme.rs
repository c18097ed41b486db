//! The certificate that is ordered by ACME: where it is, how it is served until it comes, and the thread that renews it.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use acme::{AcmeClient, AcmeStore, Renewal, RenewalOutcome, RenewalReport, Renewer, Responder};
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
    client: AcmeClient,
    responder: Responder,
    domains: Vec<String>,
    state_directory: PathBuf,
    store: AcmeStore,
    /// Who the program becomes.
    user: Option<ServiceUser>,
}

impl AcmeOrder {
    /// The order of the options; `None` without a domain.
    ///
    /// # Errors
    /// If a value cannot be used, the authorities cannot be read, or there is no state directory.
    pub(crate) fn of(options: &ProxyOptions, user: Option<&ServiceUser>) -> anyhow::Result<Option<Self>> {
        let Some((config, responder)) = options.acme.order(options.redirect_http.is_some())? else {
            return Ok(None);
        };
        let state_directory = state_directory::path().context("ACME needs a state directory")?;
        let domains = config.domains.clone();
        let store = AcmeStore::new(&state_directory.join("acme"), &config.directory, &domains);
        let option = options.acme.acme_ca.as_ref().map_or("ACME", |_| "--acme-ca");
        let client = AcmeClient::new(config, responder.clone(), store.clone())
            .map_err(|error| usage(format!("{option}: {error}")))?;
        Ok(Some(Self { client, responder, domains, state_directory, store, user: user.cloned() }))
    }

    /// Serves its certificate, or one made in memory until there is one, and answers challenges.
    ///
    /// # Errors
    /// If none can be made.
    pub(crate) fn serve(&self, tls: &mut Tls) -> anyhow::Result<()> {
        let file = self.store.certificate();
        let load = || file.exists().then(|| Certificate::load(&file, &file));
        // The user writes the folder, and may have put a link to what only root may read there.
        let stored = self.user.as_ref().map_or_else(|| Ok(load()), |user| user.act(load))?;
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
        Certificate::generate_until(file, &self.domains).context("cannot make a certificate")
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

    /// The state directory that was found before root was given up.
    pub(crate) fn state_directory(&self) -> PathBuf {
        self.state_directory.clone()
    }

    /// Gives the state directory to the user that the program becomes. The user makes what is in it.
    pub(crate) fn hand_over(&self) -> anyhow::Result<()> {
        state_directory::make_at(&self.state_directory)?;
        self.user.as_ref().map_or(Ok(()), |user| user.give(&self.state_directory))
    }

    /// Starts the thread that orders and renews, once it is told to begin.
    ///
    /// # Errors
    /// If the folder cannot be written to, or there is no thread.
    pub(crate) fn start(self) -> anyhow::Result<OrderedCertificate> {
        state_directory::make_at(&self.state_directory)?;
        self.store.open()?;
        let file = clean::text(&self.store.certificate().to_string_lossy());
        let renewal = Renewal::new(self.client, self.store, fastrand::f64());
        let renewer = Renewer::start(renewal).context("cannot start the thread acme")?;
        Ok(OrderedCertificate { renewer: Some(renewer), file, last: None })
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
    /// Lets it order, once challenges can be answered.
    pub(crate) fn begun(mut self) -> Self {
        self.renewer.iter_mut().for_each(Renewer::begin);
        self
    }

    /// The next change, if there is one.
    pub(crate) fn poll(&mut self) -> Option<&RenewalReport> {
        let report = self.renewer.as_mut().and_then(Renewer::poll)?;
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
