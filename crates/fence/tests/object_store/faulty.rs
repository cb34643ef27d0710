//! A store in memory that does what it is told to do with the next puts of a head.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// Where the head of the fence under test lies.
pub(crate) const HEAD: &str = "a";

/// Whether a put is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrives {
    Now,
    Never,
    /// When [`Faulty::deliver`] is called.
    Later,
}

/// What is said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Truth,
    /// Nothing: the connection is lost.
    Nothing,
    /// That its condition was not met, as a client that has sent it twice is told.
    Refused,
}

type Act = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What becomes of one put.
pub(crate) struct Plan {
    pub(crate) before: Option<Act>,
    pub(crate) arrives: Arrives,
    pub(crate) after: Option<Act>,
    pub(crate) said: Said,
}

impl Plan {
    pub(crate) fn new(arrives: Arrives, said: Said) -> Self {
        Self { before: None, arrives, after: None, said }
    }

    pub(crate) fn before(mut self, act: impl Future<Output = ()> + Send + 'static) -> Self {
        self.before = Some(Box::pin(act));
        self
    }

    pub(crate) fn after(mut self, act: impl Future<Output = ()> + Send + 'static) -> Self {
        self.after = Some(Box::pin(act));
        self
    }
}

type Put = (Path, PutPayload, PutOptions);

#[derive(Clone, Default)]
pub(crate) struct Faulty {
    pub(crate) inner: Arc<InMemory>,
    plans: Arc<Mutex<VecDeque<Plan>>>,
    late: Arc<Mutex<Vec<Put>>>,
    /// So many reads of the head fail.
    pub(crate) deaf: Arc<AtomicUsize>,
    careless: bool,
}

impl Faulty {
    /// One that does not look at conditions.
    pub(crate) fn careless() -> Self {
        Self { careless: true, ..Self::default() }
    }

    pub(crate) fn plan(&self, plan: Plan) {
        self.plans.lock().unwrap().push_back(plan);
    }

    /// Carries out what was late.
    pub(crate) async fn deliver(&self) -> Vec<Result<PutResult>> {
        let late = std::mem::take(&mut *self.late.lock().unwrap());
        let mut results = Vec::new();
        for (path, payload, options) in late {
            results.push(self.inner.put_opts(&path, payload, options).await);
        }
        results
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

fn lost() -> Error {
    Error::Generic { store: "Faulty", source: "the connection is lost".into() }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, path: &Path, payload: PutPayload, mut options: PutOptions) -> Result<PutResult> {
        if self.careless {
            options.mode = PutMode::Overwrite;
        }
        let plan = (path.as_ref() == HEAD).then(|| self.plans.lock().unwrap().pop_front()).flatten();
        let Some(plan) = plan else { return self.inner.put_opts(path, payload, options).await };
        if let Some(act) = plan.before {
            act.await;
        }
        let result = match plan.arrives {
            Arrives::Now => self.inner.put_opts(path, payload, options).await,
            Arrives::Never => Err(lost()),
            Arrives::Later => {
                self.late.lock().unwrap().push((path.clone(), payload, options));
                Err(lost())
            }
        };
        if let Some(act) = plan.after {
            act.await;
        }
        match plan.said {
            Said::Truth => result,
            Said::Nothing => Err(lost()),
            Said::Refused => {
                Err(Error::Precondition { path: path.to_string(), source: "it is another".into() })
            }
        }
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let deaf = || self.deaf.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if path.as_ref() == HEAD && deaf().is_ok() {
            return Err(lost());
        }
        self.inner.get_opts(path, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
