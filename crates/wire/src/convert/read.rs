//! Answers to questions about the table.

use leasehold_core::protocol::{ReadAnswer, Status, TokenCheck};
use leasehold_core::table::LeaseView;
use leasehold_core::{Token, Value};

use super::{Checked, Field, Wire, boxed, needed, record, variants};
use crate::proto as pb;

variants! {
    ReadAnswer => read_answer::Answer;
    Lease(lease) => Lease(LeaseAnswer),
    Leases { leases, more } => Leases(LeasesAnswer) at "leases",
    Sessions { sessions, more } => Sessions(SessionsAnswer) at "sessions",
    History(past) => History(HistoryAnswer),
    Check(check) => Check,
    Register(register) => Register(RegisterAnswer),
    Status(status) => Status,
    Cluster(view) => Cluster,
    Gaps(gaps) => Gaps,
    Alarms(alarms) => Alarms(AlarmsAnswer),
}

variants! {
    TokenCheck => TokenCheck { check: token_check::Check } at "check";
    Current => Current,
    Ended(ending) => Ended,
    NotKnown => NotKnown,
    Ahead { newest } => AheadOfNewest,
}

impl Wire for (Value, Token) {
    type Message = pb::Register;

    fn to_wire(&self) -> pb::Register {
        pb::Register { value: self.0.to_field(), token: self.1.to_field() }
    }

    fn from_wire(pb::Register { value, token }: pb::Register) -> Checked<Self> {
        Ok((Value::from_field("register.value", value)?, Token::from_field("register.token", token)?))
    }
}

record! {
    Status => Status at "status";
    version, pid, sessions, resources, applied, log_time_ms as log_time, cut_ms as cut,
}

needed!(ReadAnswer);
boxed!(LeaseView);
