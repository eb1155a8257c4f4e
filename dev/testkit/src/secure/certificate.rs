//! Certificates that nobody trusts unless they are told to.

use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What a server proves who it is with. It is valid for thousands of years, so no test depends on the date.
pub(super) struct ServerIdentity {
    pub(super) certificate: CertificateDer<'static>,
    pub(super) key: PrivateKeyDer<'static>,
    /// The certificate of who signed it, as PEM.
    pub(super) authority: String,
}

/// How many authorities there are. Each has a name of its own, as two of one name would be taken for each other.
static AUTHORITY_COUNT: AtomicUsize = AtomicUsize::new(0);

impl ServerIdentity {
    /// An identity for these hosts, signed by an authority of its own.
    pub(super) fn new(hosts: &[&str]) -> Result<ServerIdentity, rcgen::Error> {
        let name = format!("authority {}", AUTHORITY_COUNT.fetch_add(1, Ordering::Relaxed));
        let mut signing = CertificateParams::default();
        signing.distinguished_name.push(DnType::CommonName, name);
        signing.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        signing.key_usages.push(KeyUsagePurpose::KeyCertSign);
        let signing_key = KeyPair::generate()?;
        let authority = signing.self_signed(&signing_key)?.pem();
        let issuer = Issuer::new(signing, signing_key);

        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(hosts)?.signed_by(&key, &issuer)?;
        Ok(ServerIdentity { certificate: certificate.der().clone(), key: key.into(), authority })
    }
}
