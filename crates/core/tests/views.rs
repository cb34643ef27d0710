//! What is shown of a resource is bounded, whatever its holders show.

use leasehold_core::table::MAX_VALUES_SHOWN_BYTES;
use leasehold_core::{
    Acquire, Command, Config, Entry, Label, LeaseTable, LogTime, Millis, Mode, Nonce, Op, Open, Policies,
    Request, ResourceName, Sequence, SessionCommand, SessionId, SessionKind, Value,
};

const LARGEST: usize = 64 * 1024;

fn apply(table: &mut LeaseTable, command: Command) {
    table.apply(&Entry { at: LogTime::ZERO, commands: vec![command] });
}

#[test]
fn values_beyond_what_fits_are_left_out_and_the_first_is_always_shown() {
    let mut table = LeaseTable::new(Config::default());
    let open = Open {
        nonce: Nonce([7; 16]),
        label: Label::new("a").unwrap(),
        ttl: Millis::new(10_000),
        policies: Policies::default(),
        kind: SessionKind::Plain,
    };
    apply(&mut table, Command::Open(open));
    let name = ResourceName::new("big").unwrap();
    for _ in 0..8 {
        let acquire = Acquire {
            requests: vec![Request { resource: name.clone(), mode: Mode::Slot { of: 8 } }],
            value: Value::new(vec![1; LARGEST]).unwrap(),
            wait: None,
        };
        let (session, sequence) = (SessionId::from_u64(1), Sequence::Plain);
        let op = Op::Acquire(acquire);
        apply(&mut table, Command::Session(SessionCommand { session, sequence, op }));
    }
    let view = table.lease(&name).unwrap();
    let shown: Vec<bool> = view.holders.iter().map(|holder| holder.value.is_some()).collect();
    let fit = MAX_VALUES_SHOWN_BYTES / LARGEST;
    assert_eq!(shown, [vec![true; fit], vec![false; 8 - fit]].concat());
    assert_eq!(view.holding, 8);
}
