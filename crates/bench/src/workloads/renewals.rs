//! B: every session holds a lease and renews as soon as its last renewal is answered.

use anyhow::{Result, ensure};

use super::{Figures, Spec, Window, holders, links};
use crate::peers::{Client, TTL};

/// Measures it.
pub(super) async fn run<C: Client>(spec: &Spec, count: usize) -> Result<Figures> {
    let links = links::<C>(&spec.url, C::RENEWAL_LINKS.min(count), TTL).await?;
    let name = |number: usize| format!("bench/renewals/{count}/{number}");
    let held = holders::<C>(&links, count, TTL, name).await?;
    let window = Window::after_warm_up(spec);
    let metered = tokio::spawn(window.metered(spec.clone()));
    let renewed = C::renew_all(held, window).await?;
    let metered = metered.await??;
    // The process ends soon: nobody is to be told that very many sessions close.
    std::mem::forget(renewed.kept);
    // A system whose first answers come later than that has a rate, but not one that is seen here.
    ensure!(!renewed.took.is_empty(), "no renewal was answered in the window of {} s", window.seconds());
    Ok(Figures::of_window(renewed.took, window, &metered))
}
