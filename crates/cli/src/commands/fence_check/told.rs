//! What `fence check` says: where each receiver stands beside the present holder, who was refused, and which token a new store must pass.

use std::path::PathBuf;

use leasehold::fence::{Mark, Refused, Seen};
use serde::Serialize;

use crate::args::FenceName;
use crate::console::Table;
use crate::sealing;

/// What the store has granted under the name.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// The token with which the present holder writes, and what it calls itself.
    pub(super) present: Option<(u64, String)>,
    /// The greatest token that the store remembers for the name.
    pub(super) greatest: Option<u64>,
}

/// What one receiver has answered.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) place: String,
    pub(super) seen: Result<Seen, String>,
    /// What is said against its settings.
    pub(super) warnings: Vec<String>,
}

impl Asked {
    /// The highest token that it has seen, and of whom.
    fn mark(&self) -> Option<&Mark> {
        self.seen.as_ref().ok()?.highest.as_ref()
    }

    /// The last writes that it has refused, if it keeps them.
    fn refusals(&self) -> Option<&[Refused]> {
        self.seen.as_ref().ok()?.refusals.as_deref()
    }
}

/// Where a receiver stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Standing {
    /// It cannot be asked.
    NotAsked,
    /// It knows nothing of the name.
    Unused,
    /// The present holder has not sealed it: an older token is still accepted.
    NotSealed,
    /// It has the token of the present holder.
    Sealed,
    /// Nobody holds the name; the last holder's token stands.
    Idle,
    /// The store cannot be asked, or remembers no grant of the name: whether its next token passes is not known.
    NotCompared,
    /// It has seen a token that the store has never granted: the present holder's writes are refused.
    Ahead,
}

/// Everything that was found out.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) name: FenceName,
    /// Where the store is, if it is a directory.
    pub(super) directory: Option<PathBuf>,
    pub(super) known: Result<Known, String>,
    pub(super) asked: Vec<Asked>,
}

impl Report {
    pub(super) fn is_well(&self) -> bool {
        let bad = [Standing::NotAsked, Standing::NotCompared, Standing::Ahead];
        self.known.is_ok() && self.asked.iter().all(|asked| !bad.contains(&self.standing(asked)))
    }

    pub(super) fn head(&self) -> String {
        match &self.known {
            Ok(Known { present: Some((token, holder)), .. }) => {
                let who = if holder.is_empty() { "somebody" } else { holder };
                format!("{} is held by {who}, who writes with token {token}", self.name)
            }
            Ok(Known { greatest: Some(token), .. }) => {
                // The store does not remember which slot a lease of before had.
                let of = match self.name.slot {
                    Some(_) => format!(" of {} (any slot)", self.name.resource),
                    None => String::new(),
                };
                format!("{} is held by nobody; the last token{of} was {token}", self.name)
            }
            Ok(_) => format!("the store knows nothing of {}", self.name),
            Err(why) => format!("the store cannot be asked about {}: {why}", self.name),
        }
    }

    pub(super) fn table(&self) -> Table {
        let row = |asked: &Asked| {
            let mark = asked.mark();
            let by = mark.and_then(|mark| mark.holder.as_deref()).unwrap_or("-").to_owned();
            let highest = mark.map_or_else(|| "-".to_owned(), |mark| mark.token.to_string());
            [asked.place.clone(), highest, by, self.words(asked)]
        };
        Table::new(["RECEIVER", "HIGHEST", "BY", "STANDS"], self.asked.iter().map(row))
    }

    pub(super) fn below(&self) -> String {
        let mut text = String::new();
        for asked in self.asked.iter().filter(|asked| !asked.warnings.is_empty()) {
            text.push_str(&format!("\nwarnings about {}\n", asked.place));
            for warning in &asked.warnings {
                text.push_str(&format!("  {warning}\n"));
            }
        }
        for (place, refusals) in self.refusals().filter(|(_, refusals)| !refusals.is_empty()) {
            text.push_str(&format!("\nlast refusals at {place}\n"));
            for refused in refusals {
                let who = refused.holder.as_deref().unwrap_or("somebody");
                let when = refused.at.as_ref().map(|at| format!(", {at}")).unwrap_or_default();
                let Refused { token, highest, .. } = refused;
                text.push_str(&format!("  token {token} of {who}, when {highest} was the highest{when}\n"));
            }
        }
        for asked in &self.asked {
            if asked.mark().is_some() && asked.refusals().is_none() {
                text.push_str(&format!("\n{} keeps no refusals\n", asked.place));
            }
        }
        if let (Some(_), Some(greatest)) = (self.seen().max(), self.greatest()) {
            text.push_str(&format!(
                "\nto use another store with these receivers: leasehold data recover --data DIR --above {greatest}\n"
            ));
        }
        text
    }

    /// The highest token of each receiver that has seen one.
    fn seen(&self) -> impl Iterator<Item = u64> {
        self.asked.iter().filter_map(|asked| Some(asked.mark()?.token))
    }

    /// The greatest token that receivers have seen, or the store has granted.
    fn greatest(&self) -> Option<u64> {
        let granted = self.known.as_ref().ok().and_then(|known| known.greatest);
        self.seen().chain(granted).max()
    }

    /// The smallest token that another store may grant.
    fn floor(&self) -> Option<u64> {
        self.greatest().map(|greatest| greatest + 1)
    }

    fn refusals(&self) -> impl Iterator<Item = (&str, &[Refused])> {
        self.asked.iter().filter_map(|asked| Some((asked.place.as_str(), asked.refusals()?)))
    }

    fn standing(&self, asked: &Asked) -> Standing {
        let Ok(seen) = &asked.seen else { return Standing::NotAsked };
        let Some(highest) = seen.highest.as_ref().map(|mark| mark.token) else { return Standing::Unused };
        let Ok(known) = &self.known else { return Standing::NotCompared };
        let present = known.present.as_ref().map(|(token, _)| *token);
        match (present, known.greatest) {
            (Some(present), _) if highest == present => Standing::Sealed,
            (Some(present), _) if highest < present => Standing::NotSealed,
            (Some(_), _) => Standing::Ahead,
            (None, Some(greatest)) if highest > greatest => Standing::Ahead,
            (None, Some(_)) => Standing::Idle,
            (None, None) => Standing::NotCompared,
        }
    }

    fn words(&self, asked: &Asked) -> String {
        let held = matches!(&self.known, Ok(Known { present: Some(_), .. }));
        match self.standing(asked) {
            Standing::NotAsked => {
                format!("cannot be asked: {}", asked.seen.as_ref().err().map_or("", String::as_str))
            }
            Standing::Unused if held => "not sealed: every token is accepted".to_owned(),
            Standing::Unused => "knows nothing of it".to_owned(),
            Standing::NotSealed => {
                "not sealed by the present holder: older tokens from here on are accepted".to_owned()
            }
            Standing::Sealed => "sealed by the present holder".to_owned(),
            Standing::Idle => "accepts this token and greater ones".to_owned(),
            Standing::NotCompared if self.known.is_err() => {
                "not compared: the store cannot be asked what it has granted".to_owned()
            }
            Standing::NotCompared => {
                "not compared: the store remembers no grant of it; its next token may be refused here"
                    .to_owned()
            }
            Standing::Ahead => {
                // Above those of all receivers, so that it has to be done once.
                let raise = sealing::raise(self.directory.as_deref(), self.greatest());
                format!("AHEAD of the store: its grants are refused here; raise them: {raise}")
            }
        }
    }
}

impl Report {
    pub(super) fn json(&self) -> impl Serialize {
        let known = self.known.as_ref();
        let present = known.ok().and_then(|known| known.present.as_ref());
        object! {
            name: self.name.to_string(),
            present: present.map(|(token, holder)| object! { token: token.to_string(), holder }),
            greatest_granted: known.ok().and_then(|known| known.greatest).map(|token| token.to_string()),
            store_error: known.err(),
            receivers: self.asked.iter().map(|asked| self.receiver(asked)).collect::<Vec<_>>(),
            token_floor: self.floor().map(|floor| floor.to_string()),
        }
    }

    fn receiver<'a>(&self, asked: &'a Asked) -> impl Serialize {
        let mark = asked.mark();
        let refused = |refused: &'a Refused| {
            let Refused { token, highest, holder, at } = refused;
            object! { token: token.to_string(), highest: highest.to_string(), holder, at }
        };
        object! {
            receiver: &asked.place,
            standing: self.standing(asked),
            highest: mark.map(|mark| mark.token.to_string()),
            holder: mark.and_then(|mark| mark.holder.as_ref()),
            error: asked.seen.as_ref().err(),
            warnings: &asked.warnings,
            // Nothing if the receiver keeps none.
            refusals: asked.refusals().map(|refusals| refusals.iter().map(refused).collect::<Vec<_>>()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::ResourceName;

    fn asked(place: &str, highest: Option<u64>) -> Asked {
        let highest = highest.map(|token| Mark { token, holder: Some("b".to_owned()) });
        let seen = Ok(Seen { highest, refusals: Some(Vec::new()) });
        Asked { place: place.to_owned(), seen, warnings: Vec::new() }
    }

    fn report(present: Option<u64>, greatest: Option<u64>, highest: Option<u64>) -> Report {
        let present = present.map(|token| (token, "b".to_owned()));
        let known = Ok(Known { present, greatest });
        let name = FenceName { resource: ResourceName::new("job").unwrap(), slot: None };
        Report { name, directory: Some("/srv/leases".into()), known, asked: vec![asked("file:/x", highest)] }
    }

    fn standing(present: Option<u64>, greatest: Option<u64>, highest: Option<u64>) -> (Standing, bool) {
        let report = report(present, greatest, highest);
        (report.standing(&report.asked[0]), report.is_well())
    }

    #[test]
    fn a_receiver_stands_beside_the_present_holder_or_the_last_one() {
        assert_eq!(standing(Some(7), Some(7), Some(7)), (Standing::Sealed, true));
        assert_eq!(standing(Some(7), Some(7), Some(6)), (Standing::NotSealed, true));
        assert_eq!(standing(Some(7), Some(7), Some(8)), (Standing::Ahead, false));
        assert_eq!(standing(None, Some(7), Some(7)), (Standing::Idle, true));
        assert_eq!(standing(None, Some(7), Some(8)), (Standing::Ahead, false));
        assert_eq!(standing(None, None, Some(8)), (Standing::NotCompared, false));
        assert_eq!(standing(Some(7), Some(7), None), (Standing::Unused, true));
    }

    #[test]
    fn the_floor_is_above_everything_that_was_seen_or_granted() {
        assert_eq!(report(None, Some(7), Some(9)).floor(), Some(10));
        assert_eq!(report(Some(12), Some(12), Some(9)).floor(), Some(13));
        assert_eq!(report(None, None, None).floor(), None);
    }

    #[test]
    fn the_command_that_raises_tokens_is_told_whole() {
        let ahead = report(None, Some(7), Some(9));
        assert_eq!(
            ahead.words(&ahead.asked[0]),
            "AHEAD of the store: its grants are refused here; raise them: leasehold data recover --data /srv/leases --above 9 \
             (add --holders-are-stopped if no holder runs, else nothing is granted for 5m)"
        );
        let another =
            "\nto use another store with these receivers: leasehold data recover --data DIR --above 9\n";
        assert_eq!(ahead.below(), another);
        // Receivers that have seen nothing refuse nothing.
        assert_eq!(report(None, Some(7), None).below(), "");
    }

    /// Or whoever reads it would believe that nobody was refused.
    #[test]
    fn a_receiver_that_keeps_no_refusals_is_said_to() {
        let mut report = report(None, Some(9), Some(9));
        report.asked[0].seen.as_mut().unwrap().refusals = None;
        assert!(report.below().starts_with("\nfile:/x keeps no refusals\n"), "{}", report.below());
    }

    #[test]
    fn the_last_token_of_a_slot_is_that_of_any() {
        let mut report = report(None, Some(53), Some(52));
        report.name.slot = Some(0);
        assert_eq!(report.head(), "job#0 is held by nobody; the last token of job (any slot) was 53");
    }

    #[test]
    fn a_store_that_cannot_be_asked_is_not_well_and_leaves_nothing_out() {
        let mut report = report(None, None, None);
        report.known = Err("it is away".to_owned());
        assert!(!report.is_well());
        let json = serde_json::to_value(report.json()).unwrap();
        let null = serde_json::Value::Null;
        assert_eq!(json["store_error"], "it is away");
        for field in ["present", "greatest_granted", "token_floor"] {
            assert_eq!(json.get(field), Some(&null), "{field}");
        }
        for field in ["highest", "holder", "error"] {
            assert_eq!(json["receivers"][0].get(field), Some(&null), "{field}");
        }
    }

    #[test]
    fn who_cannot_be_asked_is_named_and_is_not_well() {
        let mut report = report(Some(7), Some(7), Some(7));
        let seen = Err("refused".to_owned());
        report.asked.push(Asked { place: "redis://c".to_owned(), seen, warnings: Vec::new() });
        assert!(!report.is_well());
        let json = serde_json::to_value(report.json()).unwrap();
        assert_eq!(json["receivers"][1]["standing"], "not-asked");
        assert_eq!(json["receivers"][1]["error"], "refused");
        assert_eq!(json["token_floor"], "8");
    }

    #[test]
    fn warnings_are_told_below_and_leave_it_well() {
        let mut report = report(Some(7), Some(7), Some(7));
        let json = serde_json::to_value(report.json()).unwrap();
        assert_eq!(json["receivers"][0]["warnings"], serde_json::json!([]));
        report.asked[0].warnings = vec!["appendonly is no".to_owned()];
        assert!(
            report.is_well() && report.below().contains("\nwarnings about file:/x\n  appendonly is no\n")
        );
        let json = serde_json::to_value(report.json()).unwrap();
        assert_eq!(json["receivers"][0]["warnings"], serde_json::json!(["appendonly is no"]));
    }

    #[test]
    fn refusals_are_told_with_holder_and_tokens() {
        let mut report = report(Some(7), Some(7), Some(7));
        let refused = Refused { token: 5, highest: 7, holder: Some("a".to_owned()), at: None };
        report.asked[0].seen.as_mut().unwrap().refusals = Some(vec![refused]);
        let told = report.below();
        assert!(
            told.contains("last refusals at file:/x\n  token 5 of a, when 7 was the highest\n"),
            "{told}"
        );
    }
}
