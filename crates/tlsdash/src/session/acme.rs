//! The certificate that is ordered by ACME: where it is, how it is served until it comes, and the thread that renews it.

use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use acme::{AcmeClient, AcmeStore, Renewal, RenewalReport, Renewer, Responder};
use anyhow::Context;
use proxy_core::{AcmeChallenges, Certificate, Tls};
use proxy_http::FindChallenge;
use records::kinds::CertificateRecord;
use records::text::clean;

use crate::cli::ProxyOptions;
use crate::error::usage;
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
        let folder = || state_directory::path().context("ACME needs a state directory");
        let folder = options.acme.is_used().then(folder).transpose()?;
        Self::in_folder(options, folder.unwrap_or_default(), user)
    }

    /// Checks the options without a look at what is stored: the service may have another state directory.
    ///
    /// # Errors
    /// As [`AcmeOrder::of`] has them.
    pub(crate) fn check(options: &ProxyOptions) -> anyhow::Result<()> {
        Self::in_folder(options, PathBuf::new(), None).map(drop)
    }

    fn in_folder(
        options: &ProxyOptions,
        state_directory: PathBuf,
        user: Option<&ServiceUser>,
    ) -> anyhow::Result<Option<Self>> {
        let Some((config, responder)) = options.acme.order(options.redirect_http.is_some())? else {
            return Ok(None);
        };
        let domains = config.domains.clone();
        let store = AcmeStore::new(&state_directory.join("acme"), &config.directory, &domains);
        let option = options.acme.acme_ca.as_ref().map_or("ACME", |_| "--acme-ca");
        let client = AcmeClient::new(config, responder.clone(), store.clone())
            .map_err(|error| usage(format!("{option}: {error}")))?;
        Ok(Some(Self { client, responder, domains, state_directory, store, user: user.cloned() }))
    }

    /// Serves its certificate, and answers challenges. Until there is one, another order's for one of the domains stands in
    /// for it, else one made in memory.
    ///
    /// # Errors
    /// If none can be made.
    pub(crate) fn serve(&self, tls: &mut Tls) -> anyhow::Result<()> {
        // The user writes the folder, and may have put a link to what only root may read there.
        let stored = match &self.user {
            Some(user) => user.act(|| self.stored())?,
            None => self.stored(),
        };
        let names = self.domains.join(", ");
        let in_memory = || {
            let made = Certificate::generate(&self.domains).context("cannot make a certificate")?;
            let present = format!("one for {names} that was made in memory, and do not trust it");
            anyhow::Ok(made.standing_in(&self.store.certificate(), present))
        };
        tls.certificates.push(stored.map_or_else(in_memory, Ok)?);
        if let Responder::TlsAlpn01(answers) = self.responder.clone() {
            tls.challenges = Some(AcmeChallenges::new(move |domain| answers.find(domain)));
        }
        Ok(())
    }

    /// The certificate of the store, else that of another order, which may have had other domains or another authority.
    fn stored(&self) -> Option<Certificate> {
        let own = self.store.certificate();
        if own.is_file() {
            match Certificate::load(&own, &own) {
                Ok(certificate) => return Some(certificate),
                Err(error) => crate::say(format_args!("warning: {error}; another one is ordered")),
            }
        }
        let others = self.store.certificates_of_others().into_iter().filter(|file| file.is_file());
        let mut loaded = others.filter_map(|file| Certificate::load(&file, &file).ok());
        let of_other = loaded.find(|one| one.names().iter().any(|name| self.domains.contains(name)))?;
        let present = format!("one of another order, for {}", of_other.names().join(", "));
        Some(of_other.standing_in(&own, present))
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
            let Some(failure) = &report.failure else { continue };
            record.renewal_error = clean::text(failure);
            if !report.has_certificate {
                "the certificate that was ordered has not come yet".clone_into(&mut record.refusal);
            }
        }
    }
}
