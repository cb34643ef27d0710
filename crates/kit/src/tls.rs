//! A certificate for a server that speaks TLS: made anew for each, and trusted by nobody who is not told to.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::programs;
use crate::run::output;
use crate::user::User;

const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
/// The name that a test may use, and the address that it must not be taken for.
const NAMES: &str = "subjectAltName=DNS:localhost";

/// A certificate that vouches for itself under the name `localhost`, and its key, which nobody else may read.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// Where the certificate of a server in this directory is.
pub(crate) fn certificate(directory: &Path) -> PathBuf {
    directory.join(CERTIFICATE)
}

/// Makes both in a directory.
pub(crate) fn make(directory: &Path, user: Option<&User>) -> Result<Pair> {
    let pair = Pair { certificate: certificate(directory), key: directory.join(KEY) };
    let mut make = Command::new(programs::program("openssl", "openssl")?);
    make.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    // Whoever trusts it trusts it alone: it is no authority for others.
    make.args(["-days", "2", "-subj", "/CN=localhost", "-addext", NAMES]);
    make.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    make.arg("-out").arg(&pair.certificate).arg("-keyout").arg(&pair.key);
    output(&mut make)?;
    if let Some(user) = user {
        user.own(&pair.key)?;
    }
    Ok(pair)
}
