//! One order: the account, the challenges, the certificate.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, CertificateIdentifier, Error, Identifier, NewAccount,
    NewOrder, Order, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use rustls::pki_types::CertificateDer;
use tls_client::TrustError;

use crate::challenge::{HookError, Responder, TxtRecord};
use crate::config::AcmeConfig;
use crate::https_client::HttpsClient;
use crate::leaf::Leaf;
use crate::store::{AcmeStore, PendingOrder, StoreError};

/// How long the authority may take to validate, and then to issue. Doubled delays would look the last time after 32 s.
const PATIENCE: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_secs(1)).backoff(1.2).timeout(Duration::from_secs(120));

const RATE_LIMITED: &str = "urn:ietf:params:acme:error:rateLimited";
const NO_ACCOUNT: &str = "urn:ietf:params:acme:error:accountDoesNotExist";
/// Refusals that say nothing about an order.
const TEMPORARY: [&str; 3] =
    [RATE_LIMITED, "urn:ietf:params:acme:error:serverInternal", "urn:ietf:params:acme:error:badNonce"];
const UNAUTHORIZED: &str = "urn:ietf:params:acme:error:unauthorized";

#[derive(Debug, thiserror::Error)]
pub enum AcmeError {
    #[error("the authority: {0}")]
    Authority(#[from] Error),
    #[error("the authority refuses the account in {}: {problem}; remove the file for a new account", .path.display())]
    Account { path: PathBuf, problem: Error },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Hook(#[from] HookError),
    #[error("cannot make a key: {0}")]
    Key(#[from] rcgen::Error),
    #[error("the authority wants to validate {0}, which was not ordered")]
    NotOrdered(String),
    #[error("the authority offers no {kind} for {domain}")]
    NoChallenge { domain: String, kind: &'static str },
    #[error("the authority could not validate {domain}: {problem}")]
    Invalid { domain: String, problem: String },
    #[error("the authority's answer is no certificate for the key of the order")]
    Unusable,
    #[error("the authority ended the order without a reason")]
    Ended,
}

/// Orders certificates from one authority.
pub struct AcmeClient {
    config: AcmeConfig,
    responder: Responder,
    store: AcmeStore,
    https: HttpsClient,
}

impl AcmeClient {
    /// # Errors
    /// If the authorities that the directory's own certificate must be from cannot be read.
    pub fn new(config: AcmeConfig, responder: Responder, store: AcmeStore) -> Result<Self, TrustError> {
        let https = HttpsClient::new(&config.trust)?;
        Ok(Self { config, responder, store, https })
    }

    /// When the authority wants to be asked again, if it said so at the last failure.
    pub fn take_retry_at(&self) -> Option<SystemTime> {
        self.https.take_retry_at()
    }

    /// Orders a certificate and writes it to the store. `former_leaf` is the one that it renews, in DER. An order that an
    /// earlier attempt could not finish is finished first. Returns why an answer to a challenge is left behind, if one is.
    ///
    /// # Errors
    /// Why there is no new one; the former one stays.
    pub async fn order(&self, former_leaf: Option<&[u8]>) -> Result<Option<HookError>, AcmeError> {
        self.store.check_space()?;
        // What was said to earlier requests.
        self.https.take_retry_at();
        let account = self.account().await?;
        if let Some((order, pending)) = self.pending_order(&account).await? {
            self.finish(order, pending).await?;
            return Ok(None);
        }
        let mut order = match self.begin(&account, former_leaf).await {
            Err(error) if problem(&error) == Some(NO_ACCOUNT) => {
                self.begin(&self.new_account().await?, former_leaf).await?
            }
            Err(error) if problem(&error) == Some(UNAUTHORIZED) => {
                let path = self.store.account_file().to_owned();
                return Err(AcmeError::Account { path, problem: error });
            }
            begun => begun?,
        };
        let mut published = Vec::new();
        let validated = self.validate(&mut order, &mut published).await;
        let left = self.responder.remove(&published).await;
        validated?;
        // Kept before the authority makes a certificate: without its key that is lost, and there are few a week.
        let pending = PendingOrder { url: order.url().to_owned(), key: KeyPair::generate()?.serialize_pem() };
        self.store.write_pending(&pending)?;
        self.finish(order, pending).await?;
        Ok(left)
    }

    /// The order that an earlier attempt could not finish; `None` if there is none, or the authority has ended it.
    async fn pending_order(&self, account: &Account) -> Result<Option<(Order, PendingOrder)>, AcmeError> {
        let Some(pending) = self.store.pending() else { return Ok(None) };
        let found = match account.order(pending.url.clone()).await {
            Ok(mut order) => is_validated(order.state().status).then_some(order),
            Err(error) if is_final(&error) => None,
            Err(error) => return Err(error.into()),
        };
        if found.is_none() {
            self.store.remove_pending();
        }
        Ok(found.map(|order| (order, pending)))
    }

    /// Gets the certificate of a validated order, which is pending until then, or until the authority refuses it.
    async fn finish(&self, order: Order, pending: PendingOrder) -> Result<(), AcmeError> {
        let got = self.certificate(order, pending).await;
        let is_over = match &got {
            Err(AcmeError::Unusable) => true,
            Err(AcmeError::Authority(error)) => is_final(error),
            _ => false,
        };
        if is_over {
            self.store.remove_pending();
        }
        Ok(self.store.write_certificate(&got?)?)
    }

    /// The certificate of a validated order, with its key, in PEM.
    async fn certificate(&self, mut order: Order, pending: PendingOrder) -> Result<String, AcmeError> {
        if order.state().status == OrderStatus::Ready {
            let mut params = CertificateParams::new(self.config.domains.clone())?;
            params.distinguished_name = DistinguishedName::new();
            let request = params.serialize_request(&KeyPair::from_pem(&pending.key)?)?;
            order.finalize_csr(request.der()).await?;
        }
        let pem = pending.key + &order.poll_certificate(&PATIENCE).await?;
        Leaf::of(pem.as_bytes()).map(|_| pem).ok_or(AcmeError::Unusable)
    }

    /// Begins an order. It replaces the former certificate (RFC 9773, 5), unless the authority refuses that: it may not know
    /// ARI, or the certificate.
    async fn begin(&self, account: &Account, former_leaf: Option<&[u8]>) -> Result<Order, Error> {
        let names: Vec<Identifier> = self.config.domains.iter().cloned().map(Identifier::Dns).collect();
        let new = || match &self.config.profile {
            Some(profile) => NewOrder::new(&names).profile(profile),
            None => NewOrder::new(&names),
        };
        let leaf = former_leaf.map(CertificateDer::from);
        if let Some(id) = leaf.as_ref().and_then(|leaf| CertificateIdentifier::try_from(leaf).ok()) {
            match account.new_order(&new().replaces(id)).await {
                Err(error)
                    if ![RATE_LIMITED, NO_ACCOUNT, UNAUTHORIZED].map(Some).contains(&problem(&error)) =>
                {
                    self.https.take_retry_at();
                }
                begun => return begun,
            }
        }
        account.new_order(&new()).await
    }

    /// The window in which the authority suggests to renew this leaf, in DER (RFC 9773), and when to ask again; `None` if
    /// it suggests none.
    pub async fn renewal_window(&self, leaf: &[u8]) -> Option<((SystemTime, SystemTime), Duration)> {
        let leaf = CertificateDer::from(leaf);
        let id = CertificateIdentifier::try_from(&leaf).ok()?;
        let known = self.store.account().ok()??;
        let (info, ask_after) = self.known(known).await.ok()?.renewal_info(&id).await.ok()?;
        let window = info.suggested_window;
        Some(((window.start.into(), window.end.into()), ask_after))
    }

    /// The account of the store, else a new one.
    async fn account(&self) -> Result<Account, AcmeError> {
        match self.store.account()? {
            Some(known) => Ok(self.known(known).await?),
            None => self.new_account().await,
        }
    }

    async fn known(&self, account: AccountCredentials) -> Result<Account, Error> {
        Account::builder_with_http(Box::new(self.https.clone())).from_credentials(account).await
    }

    /// Makes an account, and puts it into the store.
    async fn new_account(&self) -> Result<Account, AcmeError> {
        let builder = Account::builder_with_http(Box::new(self.https.clone()));
        let contacts: Vec<String> =
            self.config.contacts.iter().map(|mail| format!("mailto:{mail}")).collect();
        let contacts: Vec<&str> = contacts.iter().map(String::as_str).collect();
        let new =
            NewAccount { contact: &contacts, terms_of_service_agreed: true, only_return_existing: false };
        let (account, credentials) = builder.create(&new, self.config.directory.clone(), None).await?;
        self.store.write_account(&credentials)?;
        Ok(account)
    }

    /// Answers the challenges of an order, and waits until the authority has validated all of them.
    async fn validate(&self, order: &mut Order, published: &mut Vec<TxtRecord>) -> Result<(), AcmeError> {
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            let ordered = authorization.identifier().to_string();
            if !self.config.domains.contains(&ordered) {
                return Err(AcmeError::NotOrdered(ordered));
            }
            let domain = ordered.trim_start_matches("*.").to_owned();
            // An earlier order has validated it.
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let kind = self.responder.kind();
            let Some(mut challenge) = authorization.challenge(kind.of_protocol()) else {
                return Err(AcmeError::NoChallenge { domain, kind: kind.word() });
            };
            let key = challenge.key_authorization();
            // Also an answer that could be published in part only is removed.
            let record = TxtRecord::new(&domain, &key);
            published.push(record.clone());
            self.responder.publish(&domain, &challenge.token, &key, &record).await?;
            match challenge.set_ready().await {
                // An authority may have tried in vain before it answers.
                Err(error) if is_final(&error) => {
                    return Err(AcmeError::Invalid { domain: ordered, problem: error.to_string() });
                }
                begun => begun?,
            }
        }
        match order.poll_ready(&PATIENCE).await {
            Ok(OrderStatus::Ready) => Ok(()),
            // What is refused is to look at the order.
            Err(error) if order.state().error.is_none() => Err(error.into()),
            // The order has the same problem as one of its challenges, without the domain.
            _ => Err(failure(order).await?),
        }
    }
}

/// Whether the authority itself refuses what was asked, and will do so again.
fn is_final(error: &Error) -> bool {
    problem(error).is_some_and(|problem| !TEMPORARY.contains(&problem))
}

/// Whether only the certificate is missing.
fn is_validated(status: OrderStatus) -> bool {
    matches!(status, OrderStatus::Ready | OrderStatus::Processing | OrderStatus::Valid)
}

fn problem(error: &Error) -> Option<&str> {
    if let Error::Api(problem) = error { problem.r#type.as_deref() } else { None }
}

/// Which domain could not be validated, and why.
async fn failure(order: &mut Order) -> Result<AcmeError, Error> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        let state = authorization.refresh().await?;
        let problem = state.challenges.iter().find_map(|challenge| challenge.error.as_ref());
        if let Some(problem) = problem.map(ToString::to_string) {
            return Ok(AcmeError::Invalid { domain: state.identifier().to_string(), problem });
        }
    }
    Ok(AcmeError::Ended)
}
