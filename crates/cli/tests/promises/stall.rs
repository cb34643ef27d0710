//! The service stands still for three ttl and goes on: live holders keep their leases, dead ones lose them on time.

use std::time::Duration;

use super::stage::{PATIENCE, Place, Waits, Worker, millis, now, number, pause, turn};
use rustix::process::Signal;

const TTL: u64 = 1_000;
/// What the holder gives up of its ttl: a tenth.
const MARGIN: u64 = TTL / 10;
/// How much of a standstill counts as time at most.
const STALL_CAP: u64 = 100;
/// The first renewal, and each one after the last, comes no sooner: a third of the ttl, shortened by a fifth.
const SOONEST_RENEWAL: u64 = TTL * 8 / 30;
/// What a machine takes to let everybody run again that has nothing else to do.
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
        let granted = holder.wait_for("granted", PATIENCE).expect("the holder gets the lease");
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
/// its cap, and no more. Both lengths end with the grant: one begins with the last renewal that the holder knew to be confirmed, the
/// other with the last that it may have sent.
fn judge(since_confirmed_ms: u64, since_sent_ms: u64) -> Result<(), String> {
    let (least, most) = (TTL - STALL_CAP, TTL * 1_003 / 1_000 + STALL_CAP + SLACK);
    if since_confirmed_ms < least {
        return Err(format!(
            "granted after {since_confirmed_ms} ms of running time, at least {least} ms were due"
        ));
    }
    if since_sent_ms > most {
        return Err(format!("granted after {since_sent_ms} ms of running time, at most {most} ms were due"));
    }
    Ok(())
}

#[test]
fn over_tcp_a_stopped_service_costs_no_live_holder_its_lease_and_frees_a_dead_ones_on_time() {
    let _turn = turn();
    let place = Place::served_in_memory();
    for round in 0..4_u64 {
        let names = |kind: &str| (0..3).map(|number| format!("{kind}-{round}-{number}")).collect::<Vec<_>>();
        let (living, mut dead) = (pairs(&place, &names("living")), pairs(&place, &names("dead")));
        pause(Duration::from_millis(300));
        let mut killed = Vec::new();
        for pair in &mut dead {
            pair.holder.kill();
            killed.push(now());
        }
        // Anywhere in the ttl of the dead.
        pause(Duration::from_millis(round * 170));
        let service = Waits::of(&[place.service().pid()]);
        let stopping = now();
        place.service().signal(Signal::STOP);
        let stopped = now();
        pause(Duration::from_millis(3 * TTL));
        for pair in living.iter().chain(&dead) {
            let granted = pair.waiter.drain().into_iter().find(|words| words[0] == "granted");
            assert_eq!(granted, None, "granted while the service stood still");
        }
        let waiters = Waits::of(&dead.iter().map(|pair| pair.waiter.pid()).collect::<Vec<u32>>());
        let continuing = now();
        place.service().signal(Signal::CONT);
        // It stood still for no less and no more than this.
        let stood = [continuing - stopped, now() - stopping];
        for (pair, killed) in dead.iter().zip(killed) {
            let granted = pair.waiter.wait_for("granted", PATIENCE).expect("a dead lease is freed");
            let granted = number(&granted[2]);
            let confirmed = last_sent(&pair.holder);
            // One that died when a renewal was due may have sent it.
            let sent = if millis(killed - confirmed) < SOONEST_RENEWAL { confirmed } else { killed };
            let busy = service.so_far() + waiters.so_far();
            let (longest, shortest) =
                (granted - confirmed - stood[0], (granted - sent).saturating_sub(stood[1] + busy));
            println!("round {round}: freed after {} ms of running time", millis(longest));
            judge(millis(longest), millis(shortest)).unwrap();
        }
        for pair in &living {
            kept(pair);
        }
    }
}

/// The holder may have lapsed, and has its lease again under the same token; nobody else was granted anything.
fn kept(pair: &Pair) {
    pair.holder.drain();
    pair.holder.until("it is held", |words| {
        assert!(words[0] != "state" || words[1] != "ended", "token {} was lost", pair.token);
        words[0] == "state" && words[1] == "held"
    });
    let granted = pair.waiter.drain().into_iter().find(|words| words[0] == "granted");
    assert_eq!(granted, None, "somebody else was granted the lease of token {}", pair.token);
}

/// The judge itself.
#[test]
fn an_early_and_a_late_end_after_a_standstill_are_found() {
    assert_eq!(judge(1_002, 1_002), Ok(()));
    assert_eq!(judge(1_304, 1_002), Ok(()), "the holder has renewed without knowing it");
    assert!(judge(899, 899).unwrap_err().contains("at least 900"));
    assert!(judge(1_304, 1_304).unwrap_err().contains("at most 1303"));
}
