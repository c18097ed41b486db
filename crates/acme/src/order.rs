//! One order: the account, the challenges, the certificate.

use std::time::{Duration, SystemTime};

use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, Error, Identifier, NewAccount, NewOrder, Order,
    OrderStatus, RetryPolicy,
};
use rustls::pki_types::CertificateDer;
use tls_client::TrustError;

use crate::challenge::{HookError, PublishedAnswer, Responder};
use crate::config::AcmeConfig;
use crate::https_client::HttpsClient;
use crate::store::{AcmeStore, StoreError};

/// How long the authority may take to validate, and then to issue.
const PATIENCE: RetryPolicy = RetryPolicy::new().timeout(Duration::from_secs(120));

const RATE_LIMITED: &str = "urn:ietf:params:acme:error:rateLimited";
const NO_ACCOUNT: [&str; 2] =
    ["urn:ietf:params:acme:error:accountDoesNotExist", "urn:ietf:params:acme:error:unauthorized"];

#[derive(Debug, thiserror::Error)]
pub enum AcmeError {
    #[error("the authority: {0}")]
    Authority(#[from] Error),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Hook(#[from] HookError),
    #[error("the authority offers no {kind} for {domain}")]
    NoChallenge { domain: String, kind: &'static str },
    #[error("the authority could not validate {domain}: {problem}")]
    Invalid { domain: String, problem: String },
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

    /// Orders a certificate and writes it to the store. `former_leaf` is the one that it renews, in DER. Returns
    /// why an answer to a challenge is left behind, if one is.
    ///
    /// # Errors
    /// Why there is no new one; the former one stays.
    pub async fn order(&self, former_leaf: Option<&[u8]>) -> Result<Option<HookError>, AcmeError> {
        let names: Vec<Identifier> = self.config.domains.iter().cloned().map(Identifier::Dns).collect();
        let begun = self.begin(&self.account().await?, &names, former_leaf).await;
        let mut order = match begun {
            Err(error) if is_without_account(&error) => {
                self.begin(&self.new_account().await?, &names, former_leaf).await?
            }
            begun => begun?,
        };
        let mut published = Vec::new();
        let validated = self.validate(&mut order, &mut published).await;
        let left = self.responder.remove(&published).await;
        validated?;
        let key = order.finalize().await?;
        let chain = order.poll_certificate(&PATIENCE).await?;
        self.store.write_certificate(&key, &chain)?;
        Ok(left)
    }

    /// Begins an order. It replaces the former certificate (RFC 9773, 5), unless the authority refuses that: it may not know
    /// ARI, or the certificate.
    async fn begin(
        &self,
        account: &Account,
        names: &[Identifier],
        former_leaf: Option<&[u8]>,
    ) -> Result<Order, Error> {
        let new = || match &self.config.profile {
            Some(profile) => NewOrder::new(names).profile(profile),
            None => NewOrder::new(names),
        };
        let leaf = former_leaf.map(CertificateDer::from);
        if let Some(id) = leaf.as_ref().and_then(|leaf| CertificateIdentifier::try_from(leaf).ok()) {
            match account.new_order(&new().replaces(id)).await {
                Err(error) if !is_rate_limit(&error) => {}
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
        let (info, ask_after) = self.account().await.ok()?.renewal_info(&id).await.ok()?;
        let window = info.suggested_window;
        Some(((window.start.into(), window.end.into()), ask_after))
    }

    /// The account of the store, else a new one.
    async fn account(&self) -> Result<Account, AcmeError> {
        let builder = Account::builder_with_http(Box::new(self.https.clone()));
        if let Some(known) = self.store.account(&self.config.directory)? {
            return Ok(builder.from_credentials(known).await?);
        }
        self.new_account().await
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
    async fn validate(
        &self,
        order: &mut Order,
        published: &mut Vec<PublishedAnswer>,
    ) -> Result<(), AcmeError> {
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            // An earlier order has validated it.
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let Identifier::Dns(domain) = authorization.identifier().identifier.clone() else { continue };
            let kind = self.responder.kind();
            let Some(mut challenge) = authorization.challenge(kind.of_protocol()) else {
                return Err(AcmeError::NoChallenge { domain, kind: kind.word() });
            };
            let key = challenge.key_authorization();
            published.push(self.responder.publish(&domain, &challenge.token, &key).await?);
            challenge.set_ready().await?;
        }
        match order.poll_ready(&PATIENCE).await {
            Ok(OrderStatus::Ready) => Ok(()),
            // The order has the same problem as one of its challenges, without the domain.
            Ok(_) | Err(Error::Api(_)) => Err(failure(order).await?),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_rate_limit(error: &Error) -> bool {
    problem(error) == Some(RATE_LIMITED)
}

/// Whether the authority has forgotten the account, or does not accept it any more (RFC 8555, 7.3.6).
fn is_without_account(error: &Error) -> bool {
    problem(error).is_some_and(|problem| NO_ACCOUNT.contains(&problem))
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
