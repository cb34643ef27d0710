//! The write: read the head, put a body, put a head on condition, and find out what became of it.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error as StoreError, ObjectStoreExt as _, PutMode, PutPayload, UpdateVersion};

use super::head::{Body, Found, Head, Sent, Told};
use super::{Fence, MAX_TRIES, says, token};
use crate::error::{Error, Stale, Trouble};
use crate::stamp::Stamp;

/// How often the store may fail to answer. Its client has tried again by itself each time.
const MAX_TROUBLES: usize = 3;

/// What is to be written.
pub(super) enum What<'a> {
    /// Nothing: a seal.
    Nothing,
    Whole(Bytes),
    Change(&'a mut (dyn FnMut(Option<Bytes>) -> Bytes + Send)),
}

/// A write or seal under way.
struct Write<'a> {
    what: What<'a>,
    /// Where the contents lie, if they have been put and can be used again.
    body: Option<Body>,
    /// Puts of a head that may have been made.
    doubts: Vec<Sent>,
    trouble: Option<Trouble>,
    troubles: usize,
}

/// Something else is kept at this path.
#[derive(Debug, thiserror::Error)]
#[error("it is fenced under {is}, not under {not}; one object has one fence name")]
pub(super) struct OtherName {
    is: String,
    not: String,
}

/// Why an attempt is the last one, or may be.
enum Stop {
    Stale(u64),
    Trouble(Trouble),
    TooLate,
}

impl<E: Into<Trouble>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Trouble(error.into())
    }
}

impl Fence {
    pub(super) async fn enter(&self, stamp: &Stamp, what: What<'_>) -> Result<(), Error> {
        let mut write = Write { what, body: None, doubts: Vec::new(), trouble: None, troubles: 0 };
        for _ in 0..MAX_TRIES {
            match self.attempt(stamp, &mut write).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(Stop::Stale(highest)) if write.doubts.is_empty() => {
                    return Err(Stale::of(stamp, Some(highest)).into());
                }
                // A head that is older than the put in doubt, and has a greater token: it was removed and made again.
                Err(Stop::Stale(highest)) => {
                    write.trouble = Some(format!("there is another head, with token {highest}").into());
                    break;
                }
                Err(Stop::TooLate) => {
                    write.trouble =
                        Some("so many heads were put since that the present one does not tell".into());
                    break;
                }
                Err(Stop::Trouble(trouble)) => {
                    write.trouble = Some(trouble);
                    write.troubles += 1;
                    // Without a doubt there is nothing to find out. With one, the head is asked again.
                    if write.doubts.is_empty() {
                        break;
                    }
                }
            }
            if write.troubles >= MAX_TROUBLES {
                break;
            }
        }
        // The last put was not looked at yet.
        if !write.doubts.is_empty()
            && let Ok(Some(Found { head, .. })) = self.head().await
            && let Ok(true) = write.is_settled_by(&head)
        {
            return Ok(());
        }
        let conflict = || format!("others have put heads {MAX_TRIES} times in between; try again").into();
        let trouble = write.trouble.take().unwrap_or_else(conflict);
        Err(if write.doubts.is_empty() { self.failed(trouble) } else { Error::unknown(&self.place, trouble) })
    }

    /// One reading of the head, and one put. Says whether it is written; if not, it has to be tried again.
    async fn attempt(&self, stamp: &Stamp, write: &mut Write<'_>) -> Result<bool, Stop> {
        let found = self.head().await?;
        if let Some(Found { head, .. }) = &found {
            if write.is_settled_by(head)? {
                return Ok(true);
            }
            if head.name != stamp.name() {
                let other = OtherName { is: head.name.clone(), not: stamp.name().to_owned() };
                return Err(Stop::Trouble(other.into()));
            }
            let highest = token(head)?;
            if highest > stamp.token() {
                return Err(Stop::Stale(highest));
            }
            if highest == stamp.token() && matches!(write.what, What::Nothing) {
                return Ok(true);
            }
        }
        self.honours_conditions().await?;
        let id = identity()?;
        let before = found.as_ref().map(|found| &found.head);
        let mut head = Head::after(before, &id, stamp);
        if let Some(body) = self.contents(write, before, &head).await? {
            head.body = Some(body);
        }
        let mode = found.map_or(PutMode::Create, |found| PutMode::Update(found.version));
        let sent = Sent { id, sequence: head.sequence };
        match self.store.put_opts(&self.path, serde_json::to_vec(&head)?.into(), mode.into()).await {
            Ok(_) => Ok(true),
            Err(error) if is_turned_away(&error) => Err(error.into()),
            Err(error) => {
                write.doubts.push(sent);
                // A head that was not as expected is no trouble; it is read again.
                if !is_conflict(&error) {
                    write.trouble = Some(error.into());
                    write.troubles += 1;
                }
                Ok(false)
            }
        }
    }

    /// Puts the contents where the new head will name them. Nothing for a seal.
    async fn contents(
        &self,
        write: &mut Write<'_>,
        before: Option<&Head>,
        head: &Head,
    ) -> Result<Option<Body>, Trouble> {
        let contents = match &mut write.what {
            What::Nothing => return Ok(None),
            What::Whole(contents) => match &write.body {
                Some(body) => return Ok(Some(body.clone())),
                None => contents.clone(),
            },
            What::Change(change) => {
                let old = match before.and_then(|head| head.body.as_ref()) {
                    Some(body) => Some(self.body(body).await?),
                    None => None,
                };
                change(old)
            }
        };
        let id = &head.recent[0];
        let key = Path::parse(format!("{}/{:0>20}-{:020}-{id}", self.bodies, head.token, head.sequence))?;
        let body = Body { key: key.to_string(), size: contents.len() as u64 };
        // Nobody else has this key, so it may be sent as often as it takes.
        self.store.put_opts(&key, contents.into(), PutMode::Overwrite.into()).await?;
        // What was made of other contents before cannot be used again. If no put names it, it need not stay.
        if let Some(unused) = write.body.replace(body.clone())
            && write.doubts.is_empty()
        {
            // Else it is swept some day.
            let _ = self.store.delete(&Path::parse(unused.key)?).await;
        }
        Ok(Some(body))
    }

    /// Tries conditions on an object that is there for this purpose alone.
    async fn honours_conditions(&self) -> Result<(), Trouble> {
        if self.tried.load(Ordering::Relaxed) {
            return Ok(());
        }
        let probe = Path::parse(format!("{}/probe", self.bodies))?;
        let words =
            || PutPayload::from_static(b"leasehold-fence tries here whether the store honours conditions.\n");
        let nowhere = UpdateVersion { e_tag: Some("\"nowhere\"".to_owned()), version: Some("1".to_owned()) };
        let mut must_be_refused = vec![PutMode::Update(nowhere)];
        match self.store.put_opts(&probe, words(), PutMode::Create.into()).await {
            Ok(_) => must_be_refused.push(PutMode::Create),
            Err(StoreError::AlreadyExists { .. }) => {}
            Err(error) => return Err(self.no_conditions(error)),
        }
        for mode in must_be_refused {
            match self.store.put_opts(&probe, words(), mode.into()).await {
                Err(error) if is_conflict(&error) => {}
                Err(error) => return Err(self.no_conditions(error)),
                Ok(_) => {
                    let why = "ignores the conditions of a put, so nothing can be fenced there";
                    return Err(format!("{} {why}", self.store).into());
                }
            }
        }
        self.tried.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn no_conditions(&self, error: StoreError) -> Trouble {
        match error {
            StoreError::NotImplemented { .. } | StoreError::NotSupported { .. } => {
                let why = "has no conditional puts, so nothing can be fenced there; S3, GCS, Azure, R2 and MinIO have them";
                format!("{} {why}: {error}", self.store).into()
            }
            other => other.into(),
        }
    }
}

impl Write<'_> {
    /// Whether a head shows that this was written. Puts that it shows to be impossible are forgotten.
    fn is_settled_by(&mut self, head: &Head) -> Result<bool, Stop> {
        let told: Vec<Told> = self.doubts.iter().map(|sent| head.tells(sent)).collect();
        if told.contains(&Told::Made) {
            return Ok(true);
        }
        if told.contains(&Told::TooLate) {
            return Err(Stop::TooLate);
        }
        self.doubts.retain(|sent| head.tells(sent) == Told::NotYet);
        Ok(false)
    }
}

/// The condition of a put was not met. That does not prove that it was not made: a client sends it again after an error of the server,
/// and is refused if it was made the first time.
fn is_conflict(error: &StoreError) -> bool {
    use StoreError::{AlreadyExists, NotModified, Precondition};
    matches!(error, AlreadyExists { .. } | NotModified { .. } | Precondition { .. })
}

/// Nothing was sent, or it was turned away at the door the only time that it was sent.
fn is_turned_away(error: &StoreError) -> bool {
    use StoreError::{InvalidPath, NotImplemented, NotSupported, PermissionDenied, Unauthenticated};
    match error {
        InvalidPath { .. } | NotImplemented { .. } | NotSupported { .. } => true,
        PermissionDenied { .. } | Unauthenticated { .. } => !was_sent_again(error),
        _ => false,
    }
}

/// Whether the client had sent it before, and was given an error of the server that says nothing: then a key that has expired since says
/// nothing either. The client tells this in words alone.
fn was_sent_again(error: &StoreError) -> bool {
    says(error, " retries")
}

/// Letters that nobody else has at the same number.
fn identity() -> Result<String, Trouble> {
    Ok(format!("{:016x}", getrandom::u64()?))
}
