//! The service stands still for three ttl and goes on: live holders keep their leases, dead ones lose them on time.

use std::time::Duration;

use super::stage::{Place, Worker, millis, nanos, now, number, pause, turn};
use rustix::process::Signal;

const TTL: u64 = 1_000;
/// What the holder gives up of its ttl: a tenth.
const MARGIN: u64 = TTL / 10;
/// How much of a standstill counts as time at most.
const STALL_CAP: u64 = 100;
/// What a busy machine takes to let everybody run again.
const SLACK: u64 = 200;

/// A holder, and somebody who waits for the same name.
struct Pair {
    holder: Worker,
    waiter: Worker,
    token: String,
}

fn pairs(place: &Place, names: &[String]) -> Vec<Pair> {
    let ttl = TTL.to_string();
    let hold = |name: &String| place.worker("hold", &[name, &ttl]);
    let holders: Vec<Worker> = names.iter().map(hold).collect();
    let pair = |(holder, name): (Worker, &String)| {
        let granted = holder.wait_for("granted", Duration::from_secs(10)).expect("the holder gets the lease");
        Pair { waiter: hold(name), token: granted[1].clone(), holder }
    };
    holders.into_iter().zip(names).map(pair).collect()
}

/// When the last confirmed renewal of a killed holder was sent.
fn last_sent(holder: &Worker) -> u64 {
    let last = holder.rest().into_iter().rev().find(|words| words[0] == "deadline");
    number(&last.expect("the holder said a deadline")[1]) - (TTL - MARGIN) * 1_000_000
}

/// How long the service ran between the last renewal of a dead holder and the next grant must be a ttl. A standstill may count for
/// its cap, and no more.
fn judge(ran_ms: u64) -> Result<(), String> {
    let (least, most) = (TTL - STALL_CAP, TTL * 1_003 / 1_000 + STALL_CAP + SLACK);
    if ran_ms < least {
        return Err(format!("granted after {ran_ms} ms of running time, at least {least} ms were due"));
    }
    if ran_ms > most {
        return Err(format!("granted after {ran_ms} ms of running time, at most {most} ms were due"));
    }
    Ok(())
}

#[test]
fn over_tcp_a_stopped_service_costs_no_live_holder_its_lease_and_frees_a_dead_ones_on_time() {
    let _turn = turn();
    let place = Place::served();
    for round in 0..4_u64 {
        let names = |kind: &str| (0..3).map(|number| format!("{kind}-{round}-{number}")).collect::<Vec<_>>();
        let (living, mut dead) = (pairs(&place, &names("living")), pairs(&place, &names("dead")));
        pause(Duration::from_millis(300));
        for pair in &mut dead {
            pair.holder.kill();
        }
        // Anywhere in the ttl of the dead.
        pause(Duration::from_millis(round * 170));
        place.service().signal(Signal::STOP);
        let stopped = now();
        pause(Duration::from_millis(3 * TTL));
        for pair in living.iter().chain(&dead) {
            let granted = pair.waiter.drain().into_iter().find(|words| words[0] == "granted");
            assert_eq!(granted, None, "granted while the service stood still");
        }
        place.service().signal(Signal::CONT);
        let stood = now() - stopped;
        for pair in &dead {
            let granted =
                pair.waiter.wait_for("granted", Duration::from_secs(10)).expect("a dead lease is freed");
            let ran = millis(number(&granted[2]) - last_sent(&pair.holder) - stood);
            println!("round {round}: freed after {ran} ms of running time");
            judge(ran).unwrap();
        }
        for pair in &living {
            kept(pair);
        }
    }
}

/// The holder may have lapsed, and has its lease again under the same token; nobody else was granted anything.
fn kept(pair: &Pair) {
    let end = now() + nanos(Duration::from_secs(5));
    pair.holder.drain();
    loop {
        let state = pair.holder.wait_for("state", Duration::from_secs(5)).expect("the holder speaks");
        match state[1].as_str() {
            "held" => break,
            "ended" => panic!("token {} was lost", pair.token),
            other => assert!(now() < end, "token {} is still {other}", pair.token),
        }
    }
    let granted = pair.waiter.drain().into_iter().find(|words| words[0] == "granted");
    assert_eq!(granted, None, "somebody else was granted the lease of token {}", pair.token);
}

/// The judge itself.
#[test]
fn an_early_and_a_late_end_after_a_standstill_are_found() {
    assert_eq!(judge(1_002), Ok(()));
    assert!(judge(899).unwrap_err().contains("at least 900"));
    assert!(judge(1_304).unwrap_err().contains("at most 1303"));
}
