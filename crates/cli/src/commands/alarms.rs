//! `alarms`: tokens that were shown and never granted, and their answers.

use leasehold::core::table::AlarmView;
use leasehold::{Refusal, Store};
use leasehold_api::view;

use super::asking;
use crate::args::{AlarmsArgs, AlarmsCommand, ClearArgs};
use crate::console::{Console, Table};
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::words;

pub(super) async fn run(console: &Console, place: &Place, args: &AlarmsArgs) -> Result<Exit, Trouble> {
    match &args.command {
        None => list(console, place).await,
        Some(AlarmsCommand::Clear(args)) => clear(console, place, args).await,
    }
}

async fn list(console: &Console, place: &Place) -> Result<Exit, Trouble> {
    let alarms = place.ask(async |store| store.alarms().await).await?;
    let row = |alarm: &AlarmView| {
        let (by, since) = (words::somebody(&alarm.by).to_owned(), words::millis(alarm.age));
        [alarm.resource.to_string(), alarm.token.to_string(), by, format!("{since} ago")]
    };
    let table = Table::new(["NAME", "TOKEN SHOWN", "BY", "SINCE"], alarms.iter().map(row));
    let alarms: Vec<_> = alarms.iter().map(view::Alarm::new).collect();
    console.table(&table, &object! { alarms })
}

async fn clear(console: &Console, place: &Place, args: &ClearArgs) -> Result<Exit, Trouble> {
    let alarm = place.ask(async |store| answer(store, args).await).await?;
    let (name, token) = (&args.name, alarm.token);
    let text = format!("{name}: the alarm of token {token} is cleared; it is granted again");
    console.result(text, &view::Alarm::new(&alarm))
}

/// Answers the alarm that is raised now, and no other that may be raised meanwhile.
async fn answer(store: &Store, args: &ClearArgs) -> Result<AlarmView, Trouble> {
    let raised = store.lease(&args.name).await?.and_then(|view| view.alarm);
    let alarm = match (raised, args.token) {
        (Some(alarm), None) => alarm,
        (Some(alarm), Some(token)) if alarm.token == token => alarm,
        (None, None) => return Err(Trouble::NoAlarm(args.name.clone())),
        (raised, Some(token)) => {
            let (resource, raised) = (args.name.clone(), raised.map(|alarm| alarm.token));
            let refusal = Refusal::NoSuchAlarm { resource, token, raised };
            return Err(Trouble::Store(leasehold::Error::Refused(refusal)));
        }
    };
    if !args.yes {
        let (name, token) = (&args.name, alarm.token);
        let known = words::alarm(&alarm);
        let question = ". Grant it again, although whoever knows that token refuses smaller ones?";
        let without = format!("clear it with --token {token} --yes");
        asking::confirm(&format!("{name}: {known}"), question, &without)?;
    }
    let (by, reason) = (words::own_label(None), args.reason.clone());
    store.clear_alarm(&args.name, alarm.token, by, reason).await?;
    Ok(alarm)
}
