//! E: very many leases of a process that died end at once, while others renew.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::hold::{Holders, name};
use super::{Figures, Spec, Window, Work, holders, links};
use crate::clock::now_ns;
use crate::peers::{TTL, Watching};
use crate::workloads::figures::seconds;

/// Sessions that live on and renew.
const LIVING: usize = 64;
/// Longer than any system takes that is measured; whoever takes longer is cut.
const LONGEST: Duration = Duration::from_secs(180);

/// Measures it: when the first, the middle and the last end is seen, beyond the ttl.
pub(super) async fn run<C: Watching>(spec: &Spec, leases: usize, ttl: Duration) -> Result<Figures> {
    let links = links::<C>(&spec.url, C::RENEWAL_LINKS, TTL).await?;
    let living = holders::<C>(&links, LIVING, TTL, |number| format!("bench/living/{number}")).await?;
    let ttl_ms = u64::try_from(ttl.as_millis())?;
    let (dying, moments) = Holders::start(spec, Work::HoldAll { leases, ttl_ms }).await?;
    dying.kill()?;
    let [first_renewal, last_renewal] = moments[..] else { anyhow::bail!("the holders say {moments:?}") };
    let mut watch = C::watch(&links[0], &name(0)[..name(0).len() - 1]).await?;
    let due = last_renewal + ttl_ms * 1_000_000;
    // The living renew from a second before to the end that is expected of a good system.
    let window = Window { begin: due - 1_000_000_000, end: due + 2_000_000_000 };
    let renewing = tokio::spawn(C::renew_all(living, window));
    let mut ended = Vec::with_capacity(leases);
    let give_up = due + u64::try_from(LONGEST.as_nanos())?;
    while ended.len() < leases {
        let left = Duration::from_nanos(give_up.saturating_sub(now_ns()));
        ensure!(!left.is_zero(), "cut: {} of {leases} had ended after {LONGEST:?}", ended.len());
        let Ok(seen) = tokio::time::timeout(left, C::seen(&mut watch)).await else { continue };
        let now = now_ns();
        ended.extend(std::iter::repeat_n(now, seen?.ended));
    }
    let took = renewing.await??.took;
    let earliest = first_renewal + ttl_ms * 1_000_000;
    ensure!(ended[0] >= earliest, "an end was seen {} ns before its ttl was over", earliest - ended[0]);
    let after = |moment: u64| seconds(moment.saturating_sub(due));
    Ok(Figures::default()
        .with("first_s", after(ended[0]))
        .with("median_s", after(ended[leases / 2]))
        .with("last_s", after(ended[leases - 1]))
        .with("last_renewals_took_s", seconds(last_renewal - first_renewal))
        .with_lengths("living_renewal_", took))
}
