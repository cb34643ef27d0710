//! Registers: small values of a resource that only the holder of the current token can write.

use super::LeaseTable;
use super::resource::{Register, Standing};
use crate::answer::{Answer, Applied, Event, LimitedThing, Refusal};
use crate::id::Token;
use crate::name::{RegisterKey, ResourceName, Value};

impl LeaseTable {
    /// The resource is settled, and the token is not above all that were granted.
    pub(super) fn write_register(
        &mut self,
        out: &mut Applied,
        name: &ResourceName,
        token: Token,
        key: &RegisterKey,
        value: Option<&Value>,
        with_lease: bool,
    ) -> Result<Answer, Refusal> {
        let limit = self.config.limits.registers_per_resource;
        let current = self.resources.get(name).and_then(|resource| resource.holder(token));
        if !current.is_some_and(|holder| matches!(holder.standing, Standing::Held)) {
            let ended = self.ending(name, token);
            return Err(Refusal::NotCurrent { resource: name.clone(), token, ended });
        }
        let resource = self.resources.get_mut(name).expect("a resource with a holder is in the table");
        match value {
            None => {
                resource.registers.remove(key);
            }
            Some(_) if resource.registers.len() >= limit && !resource.registers.contains_key(key) => {
                return Err(Refusal::LimitReached { what: LimitedThing::RegistersOfResource, limit });
            }
            Some(value) => {
                let register = Register { value: value.clone(), token, with_lease };
                resource.registers.insert(key.clone(), register);
            }
        }
        let event = Event::RegisterWritten {
            resource: name.clone(),
            key: key.clone(),
            token,
            removed: value.is_none(),
        };
        Self::event(out, event);
        Ok(Answer::RegisterWritten)
    }
}
