//! Whether others use the store. Load slows down everybody who uses it: nobody does that without knowing.

use leasehold::core::protocol::MAX_PAGE;
use leasehold::{Error, ResourceName, Store};

use super::report::thousands;
use crate::trouble::Trouble;
use crate::words;

/// As many names are looked at to find one that is held. Free ones count too, and a bench leaves thousands of them behind; a hundred pages are read
/// in a moment, and whoever has more names than that has a store that is not there to be measured.
const LOOKED_AT: usize = 100_000;

/// What a look at the names has shown.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    /// All names are free.
    Free,
    /// Somebody holds some; more may be held behind those that were looked at.
    Held { count: usize, more: bool, name: ResourceName, by: String },
    /// As many as were looked at are free, and there are more.
    TooMany { looked_at: usize },
}

pub(super) async fn refuse_if_used(url: &str, store: &Store) -> Result<(), Trouble> {
    refusal(url, &look(store, LOOKED_AT).await?).map_or(Ok(()), |message| Err(Trouble::Misuse(message)))
}

/// Looks page by page, and no further than the first page with a lease that is held.
async fn look(store: &Store, most: usize) -> Result<Seen, Error> {
    let (mut after, mut looked_at) = (None, 0);
    while looked_at < most {
        let (page, more) = store.leases("", after, MAX_PAGE.min(most - looked_at)).await?;
        let mut held = page.iter().filter_map(|lease| Some((lease, lease.holders.first()?)));
        if let Some((lease, holder)) = held.next() {
            let (name, by) = (lease.resource.clone(), words::somebody(&holder.label).to_owned());
            return Ok(Seen::Held { count: 1 + held.count(), more, name, by });
        }
        let Some(last) = page.last().filter(|_| more) else { return Ok(Seen::Free) };
        after = Some(last.resource.clone());
        looked_at += page.len();
    }
    Ok(Seen::TooMany { looked_at })
}

fn refusal(url: &str, seen: &Seen) -> Option<String> {
    let why = match seen {
        Seen::Free => return None,
        Seen::Held { count: 1, more: false, name, by } => format!("others use {url}: {by} holds {name}"),
        Seen::Held { count, more, name, by } => {
            let least = if *more { "at least " } else { "" };
            let are = if *count == 1 { "is" } else { "are" };
            let leases = words::count(*count, "lease");
            format!("others use {url}: {least}{leases} {are} held, among them {name} by {by}")
        }
        Seen::TooMany { looked_at } => format!(
            "others may use {url}: it has more than {looked_at} names, of which no more are looked at",
            looked_at = thousands(looked_at)
        ),
    };
    Some(format!(
        "{why}; load would slow them down, so measure another store, or this one all the same with --beside-others"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::SessionOptions;

    #[tokio::test(flavor = "multi_thread")]
    async fn names_are_looked_at_up_to_the_bound() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::connect(&format!("dir:{}", dir.path().join("store").display())).await.unwrap();
        let session = store.session_with(&SessionOptions::new()).await.unwrap();
        for name in ["a", "b", "c"] {
            session.acquire(name).await.unwrap().release().await.unwrap();
        }
        assert_eq!(look(&store, 2).await.unwrap(), Seen::TooMany { looked_at: 2 });
        assert_eq!(look(&store, 3).await.unwrap(), Seen::Free);
        assert_eq!(look(&store, 4).await.unwrap(), Seen::Free);
        let _held = session.acquire("c").await.unwrap();
        assert_eq!(look(&store, 2).await.unwrap(), Seen::TooMany { looked_at: 2 });
        assert!(matches!(look(&store, 3).await.unwrap(), Seen::Held { count: 1, more: false, .. }));
    }

    #[test]
    fn a_refusal_says_what_was_seen_and_the_way_out() {
        let held = |count, more| {
            let name = ResourceName::new("orders").unwrap();
            refusal("dir:/s", &Seen::Held { count, more, name, by: "ann".to_owned() }).unwrap()
        };
        assert!(held(1, false).starts_with("others use dir:/s: ann holds orders; load would"));
        assert!(held(1, true).contains(": at least 1 lease is held, among them orders by ann; "));
        assert!(held(3, false).contains(": 3 leases are held, among them orders by ann; "));
        let many = refusal("dir:/s", &Seen::TooMany { looked_at: LOOKED_AT }).unwrap();
        assert!(many.contains("it has more than 100,000 names") && many.ends_with(" with --beside-others"));
        assert_eq!(refusal("dir:/s", &Seen::Free), None);
    }
}
