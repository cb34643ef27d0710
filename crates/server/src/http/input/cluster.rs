//! The fields of changes of the nodes.

use leasehold_core::cluster::{check_address, check_member_name};
use serde::Deserialize;

use super::bad;
use crate::plain::ApiError;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddFields {
    name: String,
    address: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemberFields {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TransferFields {
    to: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackupFields {
    age: Option<AgeWord>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AgeWord {
    Current,
    Any,
}

impl BackupFields {
    /// Whether it may be older than what the cluster has decided.
    pub(crate) fn may_be_old(&self) -> bool {
        self.age == Some(AgeWord::Any)
    }
}

impl AddFields {
    /// The name and the address.
    pub(crate) fn node(self) -> Result<(String, String), ApiError> {
        check_address(&self.address).map_err(|error| bad("address", &error.to_string()))?;
        Ok((named("name", self.name)?, self.address))
    }
}

impl MemberFields {
    pub(crate) fn name(self) -> Result<String, ApiError> {
        named("name", self.name)
    }
}

impl TransferFields {
    pub(crate) fn to(self) -> Result<Option<String>, ApiError> {
        self.to.map(|to| named("to", to)).transpose()
    }
}

fn named(field: &str, name: String) -> Result<String, ApiError> {
    check_member_name(&name).map_err(|error| bad(field, &error.to_string()))?;
    Ok(name)
}
