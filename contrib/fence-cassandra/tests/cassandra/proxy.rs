//! Stands between driver and server, and loses a batch or the answer to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The kind of a message that is a batch.
const BATCH: u8 = 0x0d;

/// What is lost.
const NOTHING: u8 = 0;
const ANSWER: u8 = 1;
const REQUEST: u8 = 2;

pub(crate) struct Proxy {
    pub(crate) place: String,
    lose: Arc<AtomicU8>,
}

impl Proxy {
    pub(crate) async fn before(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (place, lose) = (listener.local_addr().unwrap().to_string(), Arc::new(AtomicU8::new(NOTHING)));
        tokio::spawn({
            let lose = Arc::clone(&lose);
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    let server = TcpStream::connect(&server).await.unwrap();
                    tokio::spawn(pass(client, server, Arc::clone(&lose)));
                }
            }
        });
        Self { place, lose }
    }

    /// The server answers the next batch, and the connection breaks before anybody hears it.
    pub(crate) fn lose_answer(&self) {
        self.lose.store(ANSWER, Ordering::SeqCst);
    }

    /// The connection breaks before the server hears the next batch.
    pub(crate) fn lose_request(&self) {
        self.lose.store(REQUEST, Ordering::SeqCst);
    }
}

/// A message is nine bytes, of which the fifth is its kind and the last four are the length of what follows.
async fn pass(client: TcpStream, server: TcpStream, lose: Arc<AtomicU8>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let lost = Arc::new(AtomicBool::new(false));
    let answers = tokio::spawn({
        let lost = Arc::clone(&lost);
        async move {
            let mut buffer = vec![0; 65_536];
            while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
                if lost.load(Ordering::SeqCst) || to_client.write_all(&buffer[..count]).await.is_err() {
                    return;
                }
            }
        }
    });
    let mut head = [0; 9];
    while from_client.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let mut body = vec![0; usize::try_from(length).unwrap()];
        if from_client.read_exact(&mut body).await.is_err() {
            break;
        }
        let lose = if head[4] == BATCH { lose.swap(NOTHING, Ordering::SeqCst) } else { NOTHING };
        if lose == REQUEST {
            answers.abort();
            break;
        }
        lost.store(lose == ANSWER, Ordering::SeqCst);
        if to_server.write_all(&[&head[..], &body].concat()).await.is_err() || lose == ANSWER {
            break;
        }
    }
    // With an answer to lose, the connection ends when it has come.
    if lost.load(Ordering::SeqCst) {
        let _ = answers.await;
    }
}
