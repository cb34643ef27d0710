//! `get`: one resource, or one token of it.

mod check;

use leasehold::core::table::{DrainingView, HolderView, HoldingState, LeaseView, ReadinessView};
use leasehold::core::{Millis, Mode, Value};
use leasehold_api::view::Lease;
use leasehold_api::word;

use crate::args::GetArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::words;

/// Waiters shown to people; the rest is counted.
const SHOWN: usize = 5;
/// Characters of a value shown to people.
const LONGEST_VALUE: usize = 200;

pub(super) async fn run(console: &Console, place: &Place, args: &GetArgs) -> Result<Exit, Trouble> {
    if let Some(token) = args.token {
        return check::run(console, place, &args.name, token).await;
    }
    let view = place.ask(async |store| store.lease(&args.name).await).await;
    let Some(view) = view? else {
        let text = format!("{}: nobody holds it, and nothing is known of it", args.name);
        console.result(text, &Lease::unknown(args.name.as_str()))?;
        return Ok(Exit::FAILURE);
    };
    let held = view.holders.iter().any(|holder| holder.state != HoldingState::Revoked);
    console.result(text(console, &view), &Lease::new(&view))?;
    Ok(if held { Exit::OK } else { Exit::FAILURE })
}

fn text(console: &Console, view: &LeaseView) -> String {
    let mut lines = Lines { console, text: String::new() };
    lines.add("resource", &console.heading(view.resource.as_str()));
    lines.add("mode", &words::mode(word::present_mode(view)));
    if view.holders.is_empty() {
        lines.add("holder", "nobody");
    }
    for holder in &view.holders {
        add_holder(&mut lines, view.mode, holder);
    }
    if let Some(left) = view.cool_down {
        lines.add("cool-down", &format!("goes to nobody for another {}", words::millis(left)));
    }
    if let Some(left) = view.restore_wait {
        lines.add("restore wait", &words::restore_wait(left));
    }
    if let Some(alarm) = &view.alarm {
        lines.add("alarm", &format!("{}; see `leasehold alarms`", words::alarm(alarm)));
    }
    for waiter in view.queue.iter().take(SHOWN) {
        let late = if waiter.overdue { ", overdue and passed over" } else { "" };
        let (who, since) = (words::somebody(&waiter.label), words::millis(waiter.waiting_for));
        lines.add("waiter", &format!("{who} for {since}{late}"));
    }
    lines.add("waiting", &view.waiting.to_string());
    lines.add("grants", &view.transitions.to_string());
    lines.text
}

fn add_holder(lines: &mut Lines<'_>, mode: Mode, holder: &HolderView) {
    lines.add("holder", words::somebody(&holder.label));
    lines.add("state", word::holding(holder.state));
    lines.add("token", &holder.token.to_string());
    if holder.fence != holder.token {
        lines.add("fence token", &holder.fence.to_string());
    }
    if let (Mode::Slot { .. }, Some(slot)) = (mode, holder.slot) {
        lines.add("slot", &slot.to_string());
    }
    lines.add("session", &holder.session.to_string());
    lines.add("acquired", &format!("{} ago", words::millis(holder.held_for)));
    lines.add("renewed", &format!("{} ago", words::millis(holder.renewed_ago)));
    lines.add("ttl", &words::millis(holder.ttl));
    lines.add("remaining", &words::millis(holder.remaining));
    match &holder.value {
        Some(shown) if shown.is_empty() => {}
        Some(shown) => lines.add("value", &value(shown)),
        None => lines.add("value", "left out: all values together are too long"),
    }
    match holder.readiness {
        None => {}
        Some(ReadinessView::WarmingUp) => lines.add("ready", "not yet, warming up"),
        Some(ReadinessView::ReadyAfter(length)) => {
            lines.add("ready", &format!("{} after the grant", words::three_digits(length.duration())));
        }
    }
    if let Some(shown) = &holder.draining {
        lines.add("draining", &draining(shown));
    }
    if let Some(offer) = &holder.offer {
        let ready = if offer.ready { "accepted" } else { "not accepted yet" };
        let (to, left) = (words::somebody(&offer.label), words::millis(offer.remaining));
        lines.add("offered to", &format!("{to}, session {}, {ready}, stands for {left}", offer.to));
    }
}

fn draining(shown: &DrainingView) -> String {
    let left = match shown.remaining {
        Millis::ZERO => "its time is over".to_owned(),
        left => format!("done within {}", words::millis(left)),
    };
    format!("{} in flight, {left}", shown.in_flight)
}

/// A value as one line without anything that a terminal would act upon.
fn value(value: &Value) -> String {
    let text = match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => text.escape_debug().take(LONGEST_VALUE + 1).collect::<String>(),
        Err(_) => return format!("{} bytes that are no text; see --json", value.as_bytes().len()),
    };
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}... ({} bytes; see --json)", &text[..end], value.as_bytes().len()),
        None => text,
    }
}

/// Lines of a name and a value; aligned on a terminal.
struct Lines<'a> {
    console: &'a Console,
    text: String,
}

impl Lines<'_> {
    fn add(&mut self, name: &str, value: &str) {
        let name = format!("{name}:");
        let width = if self.console.is_terminal() { 12 } else { 0 };
        self.text.push_str(&format!("{name:width$} {value}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_says_what_is_left_or_that_its_time_is_over() {
        let shown = |remaining| draining(&DrainingView { in_flight: 3, remaining: Millis::new(remaining) });
        assert_eq!(shown(20_000), format!("3 in flight, done within {}", words::millis(Millis::new(20_000))));
        assert_eq!(shown(0), "3 in flight, its time is over");
    }

    #[test]
    fn a_value_never_reaches_the_terminal_unescaped() {
        let shown = |bytes: &[u8]| value(&Value::new(bytes.to_vec()).unwrap());
        assert_eq!(shown(b"host:80"), "host:80");
        assert_eq!(shown(b"\x1b[31m\n"), "\\u{1b}[31m\\n");
        assert!(shown(&[b'a'; 1000]).ends_with("a... (1000 bytes; see --json)"));
        assert_eq!(shown(&[0xff]), "1 bytes that are no text; see --json");
    }
}
